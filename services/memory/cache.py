"""Core memory in Redis, so that a turn need not ask PostgreSQL for it.

Each change of a user's core memory has a number, its generation, which is cached with it. What is cached is
replaced by the same or a newer generation only, so that a slow reader cannot put back what it read before a
change; and who asks names the generation that it must at least be, so that what Redis missed is not believed.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from redis.exceptions import RedisError

from services.encryption.data_key import DataKey
from services.encryption.vault import Vault
from services.errors import Unavailable
from services.platform.patience import CircuitBreaker
from services.platform.redis import RedisClient
from state.prompt import CoreMemorySections

KEEP_S = 3600
_WITHIN_S = 0.2
"""PostgreSQL is quicker than a Redis that takes longer."""

_PUT = """
local there = redis.call('HGET', KEYS[1], ARGV[4])
if there and tonumber(there) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[4], ARGV[1], ARGV[5], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""


@dataclass(frozen=True)
class StoredCoreMemory:
    """All sections of a user with an expert at one time; `generation` grows with every change."""

    generation: int
    sections: CoreMemorySections


class CoreMemoryCache:
    """Reads and writes core memory in Redis. Losing it costs a query of PostgreSQL and nothing else."""

    def __init__(self, redis: RedisClient, breaker: CircuitBreaker, *, vault: Vault | None = None) -> None:
        self._vault = vault
        self._redis = redis
        self._breaker = breaker
        self._put = redis.register_script(_PUT)

    async def get(self, user_id: UUID, expert_id: UUID, space_id: UUID | None = None) -> StoredCoreMemory | None:
        """What is cached for a space, or for none; None when nothing is, or Redis does not answer at once."""
        try:
            async with self._breaker.use(), asyncio.timeout(_WITHIN_S):
                found: Any = await self._redis.hmget(_key(user_id, expert_id), *_fields(space_id))
        except (RedisError, OSError, TimeoutError, Unavailable):
            return None
        generation, sections = found
        if not generation or not sections:
            return None
        if self._vault is not None and (sections := self._vault.open_bytes(sections)) is None:
            return None
        return StoredCoreMemory(int(generation), orjson.loads(sections))

    async def put(
        self,
        user_id: UUID,
        expert_id: UUID,
        memory: StoredCoreMemory,
        space_id: UUID | None = None,
        *,
        key: DataKey | None = None,
    ) -> bool:
        """Cache it, encrypted with the user's key if there is one, unless something newer is there.

        Returns:
            Whether it is cached now.
        """
        sections = orjson.dumps(memory.sections)
        values: list[int | bytes | str] = [
            memory.generation,
            key.seal(sections) if key else sections,
            KEEP_S,
            *_fields(space_id),
        ]
        try:
            async with self._breaker.use(), asyncio.timeout(_WITHIN_S):
                return bool(await self._put(keys=[_key(user_id, expert_id)], args=values))
        except (RedisError, OSError, TimeoutError, Unavailable):
            return False

    async def delete(self, user_id: UUID, expert_ids: Iterable[UUID]) -> int:
        """Delete what is cached of a user, in all spaces; return of how many experts there was anything.

        Raises:
            Unavailable: Redis does not answer.
        """
        keys = [_key(user_id, each) for each in expert_ids]
        if not keys:
            return 0
        try:
            async with self._breaker.use():
                return int(await self._redis.delete(*keys))
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable("Redis does not answer.") from error


def _fields(space_id: UUID | None) -> tuple[str, str]:
    """The fields of one hash, so that all spaces are deleted together."""
    return ("generation", "sections") if space_id is None else (f"generation:{space_id}", f"sections:{space_id}")


def _key(user_id: UUID, expert_id: UUID) -> str:
    return f"core:{user_id}:{expert_id}"
