"""Circuit breakers: a dependency that keeps failing is left alone for a while, so that it costs a turn nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from services.errors import Unavailable

_FAILURES = 3
_REST_S = 5.0


class CircuitBreaker:
    """After three failures in a row refuses every use for five seconds, then tries again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failing = False
        """Whether the dependency failed when it was used last."""
        self._breakers = AsyncCircuitBreakerFactory(
            default_threshold=_FAILURES, default_ttl=_REST_S, exclude=[asyncio.CancelledError]
        )

    @asynccontextmanager
    async def use(self) -> AsyncIterator[None]:
        """Use the dependency: an exception counts as its failure.

        Raises:
            Unavailable: it is left alone at the moment.
        """
        breaker = await self._breakers.get_breaker(self.name)
        try:
            async with breaker:
                yield
        except OpenedState:
            raise Unavailable(f"{self.name} does not answer; it is tried again in a few seconds.") from None
        except Exception:
            self.failing = True
            raise
        self.failing = False
