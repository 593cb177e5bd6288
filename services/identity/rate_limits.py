"""Rate limits: requests per tenant, and turns per user.

Redis holds the counts, so all processes share them. When Redis does not answer in time, each process counts for
itself; Redis never causes the refusal of an allowed request.
"""

import math
import time
from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import structlog
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage, Storage
from limits.aio.strategies import RateLimiter, SlidingWindowCounterRateLimiter
from redis.exceptions import RedisError

from services.errors import RateLimited
from services.platform.patience import Patience
from services.platform.redis import RedisClient
from services.platform.settings import Settings

log = structlog.get_logger(__name__)

_PATIENCE_S = 0.1
_MINUTE_S = 60

_Count = tuple[RateLimitItem, tuple[str, ...]]
"""A limit, and the names of the counter that it limits."""


class RateLimits:
    """Counts requests and turns, and refuses those over a limit."""

    def __init__(
        self,
        settings: Settings,
        cache: RedisClient,
        *,
        without_redis_s: float = 5.0,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """Take the limits. This process keeps the counts if Redis is embedded, and for `without_redis_s`
        seconds after Redis did not answer within `patience_s`."""
        self._without_redis_s = without_redis_s
        self._patience_s = patience_s
        self._shared: RateLimiter | None = None
        self._without_shared_until = 0.0
        per_user, per_tenant = settings.turns_per_minute, settings.requests_per_minute
        self._user = RateLimitItemPerMinute(per_user, namespace="user") if per_user else None
        self._tenant = RateLimitItemPerMinute(per_tenant, namespace="tenant") if per_tenant else None
        self._own: RateLimiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        if settings.redis_url is not None:
            self._shared = SlidingWindowCounterRateLimiter(_storage_over(cache))

    async def count_turn(self, tenant_id: UUID, user_id: str) -> None:
        """Count a turn that a user starts, for the user and for the tenant. Raises `RateLimited` if the turn is
        over a limit."""
        counts: list[_Count] = []
        if self._user is not None:  # first, because a refused turn of a user does not count for the tenant
            counts.append((self._user, (str(tenant_id), user_id)))
        if self._tenant is not None:
            counts.append((self._tenant, (str(tenant_id),)))
        if counts:
            await self._ask("hit", counts)

    async def count_request(self, tenant_id: UUID) -> None:
        """Count any other request, for the tenant. Raises `RateLimited` if the request is over the limit."""
        if self._tenant is not None:
            await self._ask("hit", [(self._tenant, (str(tenant_id),))])

    async def check_tenant(self, tenant_id: UUID) -> None:
        """Check whether another request of the tenant is allowed, without counting it. Raises `RateLimited` if
        the request would be over the limit."""
        if self._tenant is not None:
            await self._ask("test", [(self._tenant, (str(tenant_id),))])

    async def _ask(self, how: Literal["hit", "test"], counts: Sequence[_Count]) -> None:
        """Use the shared counts, or the counts of this process while Redis does not answer."""
        now = time.monotonic()
        if self._shared is None or now < self._without_shared_until:
            await _ask(self._own, how, counts)
            return
        after_failure = self._without_shared_until > 0
        if after_failure:  # this request tries Redis again; others do not wait for it
            self._without_shared_until = now + self._without_redis_s
        try:
            async with Patience(self._patience_s):
                await _ask(self._shared, how, counts)
        except (RedisError, OSError, TimeoutError) as error:
            self._without_shared_until = time.monotonic() + self._without_redis_s
            if not after_failure:
                log.warning("rate limits counted in this process", reason=type(error).__name__)
            await _ask(self._own, how, counts)
        else:
            self._without_shared_until = 0.0


def _storage_over(cache: RedisClient) -> Storage:
    """Return counters on the service's own Redis connections: one server, a Sentinel or a cluster."""
    storage = RedisStorage("async+redis://", implementation="redispy", key_prefix="limits")
    storage.bridge.connection_getter = lambda _: cache  # type: ignore[attr-defined]  # instead of its own connection
    storage.bridge.register_scripts()
    return storage


async def _ask(limiter: RateLimiter, how: Literal["hit", "test"], counts: Sequence[_Count]) -> None:
    for limit, whose in counts:
        allowed = limiter.hit(limit, *whose) if how == "hit" else limiter.test(limit, *whose)
        if not await allowed:
            free_at, _ = await limiter.get_window_stats(limit, *whose)
            raise RateLimited(min(_MINUTE_S, max(1, math.ceil(free_at - time.time()))))
