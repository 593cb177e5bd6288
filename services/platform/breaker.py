"""Circuit breakers: a dependency that keeps failing is not asked for a while, so that it does not delay turns."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from services.errors import Unavailable

REST_S = 5.0


class CircuitBreaker:
    """Refuses every use for `rest_s` seconds after consecutive failures, then tries again."""

    def __init__(
        self,
        name: str,
        *,
        failures: int = 3,
        rest_s: float = REST_S,
        counts: Callable[[Exception], bool] = lambda _: True,
    ) -> None:
        """Take the number of consecutive failures to tolerate, and the exceptions that count as failures."""
        self.name = name
        self.failing = False
        """Whether the dependency failed when it was used last."""
        self._counts = counts
        self._breakers = AsyncCircuitBreakerFactory(
            default_threshold=failures,
            default_ttl=rest_s,
            exclude=[asyncio.CancelledError, (Exception, lambda error: not counts(error))],
        )

    @asynccontextmanager
    async def use(self) -> AsyncIterator[None]:
        """Use the dependency; an exception in the block counts as its failure.

        Raises:
            Unavailable: it is currently not asked.
        """
        breaker = await self._breakers.get_breaker(self.name)
        try:
            async with breaker:
                yield
        except OpenedState:
            raise Unavailable(f"{self.name} does not answer; it is tried again in a few seconds.") from None
        except Exception as error:
            self.failing = self._counts(error)
            raise
        self.failing = False
