"""A user is removed from everywhere, and nobody else is."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from pydantic import SecretStr

from services.bootstrap import Services, open_services
from services.conversations.event_log import EventLog
from services.engines import Engines
from services.errors import NotFound
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.memory.removal.stores import RemovalStores
from services.memory.removal.tables import TABLES
from services.memory.removal.wholes import WholeErasure
from services.platform import redis
from services.platform.patience import CircuitBreaker
from services.platform.postgres import Database
from services.platform.redis import RedisClient
from services.platform.settings import Settings
from state.turn import OpenTurn
from tests.support.jobs import HURRIED, hurried_queue, statuses, until
from tests.support.milvus_server import MilvusServer, of_user
from tests.support.ports import free_port
from tests.support.turns import exchange, new_turn, remember

pytestmark = [pytest.mark.slow, pytest.mark.indexed, pytest.mark.untraced]


OF_NO_USER = {
    "experiments": "a tenant's own: set up by its operator",
    "experts": "a tenant's own: set up by its operator",
    "api_keys": "a tenant's own: made by its operator",
    "upkeep_policies": "a tenant's own: set by its operator",
    "retention_rules": "a tenant's own: set by its operator",
    "retention_runs": "a tenant's own: counts alone",
    "webhooks": "a tenant's own: set up by its operator",
}
"""Tables with a column that hints at a user, which stay, and why."""

# Every table that a row of `users` takes with it when it is deleted.
_REACHABLE = """
WITH RECURSIVE reached AS (
    SELECT 'users'::regclass::oid AS id
    UNION
    SELECT k.conrelid FROM pg_constraint k JOIN reached r ON k.confrelid = r.id
    WHERE k.contype = 'f' AND k.confdeltype = 'c'
)
SELECT id::regclass::text FROM reached
"""

_HINTS_AT_A_USER = """
SELECT DISTINCT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind IN ('r', 'p', 'm') AND c.relnamespace = 'public'::regnamespace AND NOT a.attisdropped
  AND (a.attname IN ('tenant_id', 'user_id', 'conversation_id', 'turn_id', 'message_id')
       OR a.attname LIKE '%\\_message\\_id')
"""


async def _rows(database: Database, table: str) -> int:
    async with database.tenant(DEFAULT_TENANT) as connection:
        row = await (await connection.execute(f"SELECT count(*) FROM {table}")).fetchone()
    return int(row[0]) if row else 0


def _erasure(services: Services, jobs: JobQueue, client: RedisClient | None = None) -> WholeErasure:
    events = EventLog(client or services.redis, CircuitBreaker("Redis"), keep_s=600)
    memory = services.memory
    stores = RemovalStores(
        services.database,
        services.leases.stop_all,
        events.delete,
        memory.index,
        memory.operations,
        jobs,
        events_keep_s=600,
    )
    return WholeErasure(stores)


async def _open_stream(services: Services, turn: OpenTurn) -> None:
    await services.redis.xadd(f"turn:{turn.turn_id}:events", {"data": "text"})


async def test_every_table_with_something_of_a_user_falls_with_the_user_and_is_counted(engines: Engines) -> None:
    with psycopg.connect(engines.database_url) as connection:
        reachable = {row[0] for row in connection.execute(_REACHABLE).fetchall()}
        hinting = {row[0] for row in connection.execute(_HINTS_AT_A_USER).fetchall()}
    assert hinting - reachable == set(OF_NO_USER)
    assert reachable == set(TABLES)


async def test_a_user_is_removed_with_everything_and_it_is_told(services: Services) -> None:
    for number in range(2):
        turn = await exchange(services.turns, "Hello", "Hi", session_id=f"s-{number}", space=f"space {number}")
        await _open_stream(services, turn)
        await remember(services.database, turn)
    running = await services.turns.open(new_turn(session_id="s-2"))
    await _open_stream(services, running)
    other = await exchange(services.turns, "Hello", "Hi", user_id="u-2", space="space 0")
    await _open_stream(services, other)
    await remember(services.database, other)
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        for ids in (
            {"conversation_id": turn.conversation_id},
            {"turn_ids": [uuid4(), turn.turn_id]},
            {"user_id": turn.user_id},
            {"conversation_id": other.conversation_id},
        ):
            await services.jobs.defer(connection, "look", tenant_id=DEFAULT_TENANT, **ids)

    erased = await services.erasure.user(DEFAULT_TENANT, "u-1")
    assert erased.pending == []
    assert erased.removed == {
        "postgresql": {
            "users": 1,
            "conversations": 3,
            "messages": 5,
            "turns": 3,
            "conversation_summaries": 2,
            "summary_parts": 2,
            "topics": 2,
            "context_epochs": 2,
            "core_memory_blocks": 2,
            "core_memory_history": 2,
            "core_memory_generations": 1,
            "memory_generations": 1,
            "episodes": 4,
            "memory_operations": 2,
            "visits": 2,
            "daily_summaries": 1,
            "upkeep_runs": 2,
            "upkeep_changes": 2,
            "upkeep_nights": 1,
            "core_memory_pins": 2,
            "feedback": 2,
            "conversation_branches": 2,
            "usage": 1,
            "spaces": 2,
            "recall_exclusions": 2,
            "forget_receipts": 2,
            "forgotten_words": 2,
            "memory_versions": 2,
            "store_items": 2,
            "promises": 0,
            "user_events": 4,
            "webhook_deliveries": 0,
            "tool_accounts": 2,
            "knowledge_bases": 0,
            "kb_documents": 0,
            "kb_chunks": 0,
        },
        "queue": {"jobs": 3},
        "milvus": {"units": 0},
        "redis": {"turn_events": 3},
    }
    assert [await _rows(services.database, table) for table in TABLES] == [
        1,
        1,
        2,
        *[1] * 9,
        2,
        *[1] * 16,
        0,
        2,
        0,
        1,
        0,
        0,
        0,
    ]
    assert await services.redis.keys() == [f"turn:{other.turn_id}:events"]
    assert await statuses(services.database, "look") == ["todo"]
    with pytest.raises(NotFound):
        await services.erasure.user(DEFAULT_TENANT, "u-1")


async def test_an_erasure_is_completed_though_redis_is_away_at_that_moment(
    services: Services, redis_server: str
) -> None:
    turn = await exchange(services.turns, "Hello", "Hi")
    there, away = (
        redis.connect(SecretStr(redis_server)),
        redis.connect(SecretStr(f"redis://127.0.0.1:{free_port()}/0")),
    )
    await there.xadd(f"turn:{turn.turn_id}:events", {"data": "Hello"})
    async with hurried_queue(services.database) as jobs:
        erased = await _erasure(services, jobs, away).user(DEFAULT_TENANT, "u-1")
    assert erased.pending == ["redis"]
    assert "redis" not in erased.removed
    assert await _rows(services.database, "users") == 0

    async with hurried_queue(services.database) as jobs:
        _erasure(services, jobs, there)
        jobs.start_worker()
        await until(lambda: _done(services.database))
    assert await there.exists(f"turn:{turn.turn_id}:events") == 0
    for client in (there, away):
        await client.aclose()


async def _done(database: Database) -> bool:
    return await statuses(database, "erase_traces") == ["succeeded"]


async def test_while_milvus_is_away_an_erasure_is_completed_by_its_job(
    settings: Settings, engines: Engines, milvus_server: MilvusServer
) -> None:
    async with open_services(settings, replace(engines, milvus_uri=milvus_server.uri)) as services:
        turn = await exchange(services.turns, "My dog is Bruno", "A good dog")
        await services.memory.indexing.index_waiting()
        assert of_user(milvus_server.uri, turn.user_id).total() == 2
        await asyncio.to_thread(milvus_server.stop)
        async with hurried_queue(services.database, replace(HURRIED, store_away_s=0.5)) as jobs:
            erased = await _erasure(services, jobs).user(DEFAULT_TENANT, "u-1")
            assert erased.pending == ["milvus"]
            assert "milvus" not in erased.removed
            jobs.start_worker()

            async def tried() -> bool:
                return (await statuses(services.database, "erase_traces"))[:1] == ["succeeded"]

            await until(tried)  # it gives up no sooner than Milvus is there
            await asyncio.to_thread(milvus_server.start)

            async def completed() -> bool:
                return set(await statuses(services.database, "erase_traces")) == {"succeeded"}

            await until(completed, seconds=60)
        assert of_user(milvus_server.uri, turn.user_id) == {}
