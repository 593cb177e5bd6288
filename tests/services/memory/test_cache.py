"""Core memory in Redis: never a value that is older than what the turn was opened with, and never needed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from services.bootstrap import Services
from services.engines import Engines
from services.memory.blocks import Owner
from services.memory.cache import KEEP_S, CoreMemoryCache, StoredCoreMemory
from services.memory.core import CoreMemory
from services.memory.operations import OperationLog, Trigger
from services.platform import redis
from services.platform.patience import CircuitBreaker
from services.platform.postgres import Database
from services.platform.redis import RedisClient
from state.prompt import CoreMemoryBlock, CoreMemorySections
from tests.support.ports import free_port
from tests.support.turns import exchange, owner_of

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

AGENT = Trigger("filing")


class SlowReader(Database):
    """Waits, with what it has read, until it may go on."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.has_read, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def read(self, *args: Any) -> Any:
        rows = await super().read(*args)
        self.has_read.set()
        await self.may_go_on.wait()
        return rows


@pytest.fixture(params=["embedded", "server"])
async def cache(request: pytest.FixtureRequest) -> AsyncIterator[RedisClient]:
    """Redis in this process, and a real one."""
    url = SecretStr(request.getfixturevalue("redis_server")) if request.param == "server" else None
    client = redis.connect(url)
    yield client
    await client.aclose()


def _core(database: Database, client: RedisClient) -> CoreMemory:
    return CoreMemory(
        database, CoreMemoryCache(client, CircuitBreaker("Redis"), vault=database.vault), OperationLog(database)
    )


async def _owner(services: Services) -> Owner:
    return owner_of(await exchange(services.turns, "Hello", "Hi"))


def _contents(sections: CoreMemorySections) -> dict[str, Any]:
    return {name: block["content"] for name, block in sections.items()}


async def test_a_slow_reader_does_not_put_back_what_it_read_before_a_change(
    services: Services, engines: Engines, cache: RedisClient
) -> None:
    owner = await _owner(services)
    writer = _core(services.database, cache)
    await writer.replace(owner, "human", {"name": "Wang"}, AGENT)
    await cache.flushall()
    slow = SlowReader(engines.database_url)
    await slow.open()
    reading = asyncio.create_task(_core(slow, cache).for_turn(owner, 1))
    async with asyncio.timeout(60):
        await slow.has_read.wait()
    await writer.replace(owner, "human", {"name": "Li"}, AGENT)
    slow.may_go_on.set()
    assert _contents(await reading) == {"human": {"name": "Wang"}}, "it had read that before"
    await slow.close()
    cached = await CoreMemoryCache(cache, CircuitBreaker("Redis"), vault=services.database.vault).get(
        owner.user_id, owner.expert_id
    )
    assert cached is not None
    assert (cached.generation, _contents(cached.sections)) == (2, {"human": {"name": "Li"}})


async def test_writes_that_reach_redis_in_the_wrong_order_leave_the_newer(
    services: Services, cache: RedisClient
) -> None:
    owner = await _owner(services)
    one, other = (CoreMemoryCache(cache, CircuitBreaker("Redis"), vault=services.database.vault) for _ in range(2))

    def memory(generation: int) -> StoredCoreMemory:
        block = CoreMemoryBlock(content={"generation": generation}, version=generation, rewritten_version=0)
        return StoredCoreMemory(generation, {"human": block})

    assert await one.put(owner.user_id, owner.expert_id, memory(9))
    assert await other.put(owner.user_id, owner.expert_id, memory(10)), "compared as numbers"
    assert not await one.put(owner.user_id, owner.expert_id, memory(9))
    assert await one.get(owner.user_id, owner.expert_id) == memory(10)
    assert 0 < await cache.ttl(f"core:{owner.user_id}:{owner.expert_id}") <= KEEP_S


async def test_a_change_that_redis_missed_is_seen_by_the_turns_after_it(
    services: Services, cache: RedisClient
) -> None:
    owner = await _owner(services)
    core = _core(services.database, cache)
    await core.replace(owner, "human", {"name": "Wang"}, AGENT)
    unreachable = redis.connect(SecretStr(f"redis://127.0.0.1:{free_port()}"))
    await _core(services.database, unreachable).replace(owner, "human", {"name": "Li"}, AGENT)
    await unreachable.aclose()
    turn = await exchange(services.turns, "And?", "Yes")
    assert turn.core_memory_generation == 2
    assert _contents(await core.for_turn(owner, turn.core_memory_generation)) == {"human": {"name": "Li"}}
    assert _contents(await core.for_turn(owner, 1)) == {"human": {"name": "Li"}}, "and is cached now"
