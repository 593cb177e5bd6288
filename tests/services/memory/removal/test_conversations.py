"""A conversation is removed with what was made of it, and what came from elsewhere stays."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb
from pydantic import SecretStr

from services.bootstrap import Services, open_services
from services.conversations.turn import TurnRequest
from services.engines import Engines
from services.errors import NotFound
from services.identity.tenants import DEFAULT_TENANT
from services.memory.episodes.episode import NewEpisode, Scope
from services.memory.operations import Trigger
from services.memory.removal.stores import ERASE_TRACES
from services.memory.removal.wholes import Erased
from services.platform.postgres import Database
from services.platform.settings import Settings
from state.turn import OpenTurn, TurnInput
from tests.support.application import running_turns
from tests.support.core_memory import know
from tests.support.model_server import ModelServer, Reply
from tests.support.ports import free_port
from tests.support.single_changes import supersede
from tests.support.turns import events_of, exchange, owner_of, remember

pytestmark = pytest.mark.indexed


async def _erase(services: Services, turn: OpenTurn, **options: Any) -> Erased:
    return await services.erasure.conversation(DEFAULT_TENANT, turn.conversation_id, **options)


async def _rows(database: Database, statement: Any, *values: Any) -> list[Any]:
    async with database.tenant(DEFAULT_TENANT) as connection:
        return await (await connection.execute(statement, values)).fetchall()


def _by_model(turn: OpenTurn) -> Trigger:
    return Trigger("model", turn.user_message_id, turn.conversation_id, turn.turn_id)


async def _write(services: Services, turn: OpenTurn, content: str, *more: UUID) -> UUID:
    new = NewEpisode(content, "preference", 0.8, "user_said", (turn.user_message_id, *more), turn.conversation_id)
    return await services.memory.archive.insert(owner_of(turn), new, _by_model(turn))


async def _found(services: Services, turn: OpenTurn, query: str) -> list[str]:
    scope = Scope(turn.tenant_id, turn.user_id, turn.expert_id)
    found = await services.memory.archive.search(scope, query, top_k=10, now=datetime.now(UTC))
    assert found.degraded == []
    return [item.content for item in found.items]


async def _two(services: Services) -> tuple[OpenTurn, OpenTurn]:
    doomed = await exchange(services.turns, "I bought a red kayak.", "Enjoy the river.")
    other = await exchange(services.turns, "My kayak club is in Kiel.", "A fine place.", session_id="s-2")
    return doomed, other


async def test_nothing_of_a_removed_conversation_is_left_in_any_table(services: Services) -> None:
    doomed, other = await _two(services)
    await remember(services.database, doomed, "a red kayak")
    await services.memory.indexing.index_waiting()
    erased = await _erase(services, doomed)
    assert erased.pending == []
    assert erased.removed["postgresql"] == {
        "conversations": 1, "messages": 2, "turns": 1, "conversation_summaries": 1, "topics": 1, "visits": 1,
        "feedback": 1, "turn_episodes": 1, "memories": 1, "core_memory_sections": 1, "daily_summaries": 0,
        "promises": 0, "jobs": 0,
    }  # fmt: skip
    tables = await _rows(
        services.database,
        "SELECT table_name FROM information_schema.columns JOIN information_schema.tables USING (table_name)"
        " WHERE columns.table_schema = 'public' AND column_name = 'tenant_id' AND table_type = 'BASE TABLE'",
    )
    for (table,) in tables:
        if table in {"daily_summaries", "store_items", "tool_accounts"}:  # of the user, by hand
            continue
        for (row,) in await _rows(services.database, f"SELECT {table}::text FROM {table}"):
            assert "red kayak" not in row, table
            if table != "memory_operations":  # which says that it was removed
                assert str(doomed.conversation_id) not in row, table
    assert await _found(services, other, "kayak") == ["user: My kayak club is in Kiel.\nassistant: A fine place."]
    with pytest.raises(NotFound):
        await _erase(services, doomed)
    [entry] = await _rows(
        services.database,
        "SELECT field, old_value, new_value, results->'removed'->>'messages' FROM memory_operations"
        " WHERE type = 'conversation_delete'",
    )
    assert entry == (str(doomed.conversation_id), None, None, "2")


async def test_memories_that_are_kept_stay_and_are_found(services: Services) -> None:
    doomed, _ = await _two(services)
    await _write(services, doomed, "owns a red kayak")
    await know(services, owner_of(doomed), "human", {"boat": "red kayak"}, _by_model(doomed))
    await services.memory.indexing.index_waiting()
    erased = await _erase(services, doomed, keep_memories=True)
    assert (erased.removed["postgresql"]["memories"], erased.removed["postgresql"]["core_memory_sections"]) == (
        0,
        0,
    )
    assert erased.removed["postgresql"]["turn_episodes"] == 1
    await services.memory.indexing.index_waiting()
    assert "owns a red kayak" in await _found(services, doomed, "red kayak")
    assert not any("I bought" in content for content in await _found(services, doomed, "red kayak"))
    [block] = await services.memory.core.read(owner_of(doomed))
    assert block.content == {"boat": "red kayak"}
    operations = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=10)
    assert [each.type for each in operations] == ["conversation_delete", "core_memory_change", "episode_insert"]


async def test_core_memory_loses_only_what_the_conversation_brought_in(services: Services) -> None:
    doomed, other = await _two(services)
    core, owner = services.memory.core, owner_of(doomed)
    await know(services, owner, "human", {"allergies": ["peanuts"]}, _by_model(other))
    await know(services, owner, "human", {"allergies": ["cats"], "boat": "kayak"}, _by_model(doomed))
    await know(services, owner, "human", {"city": "Kiel"}, _by_model(other))
    await know(services, owner, "plans", {"next": "Elba"}, _by_model(doomed))
    before = await core.for_turn(owner)
    await _erase(services, doomed)
    [block] = await core.read(owner)
    assert (block.section, block.content) == ("human", {"allergies": ["peanuts"], "city": "Kiel"})
    assert block.version > before["human"]["version"]
    history = await core.history(owner, "human", limit=10)
    operations = await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=20)
    assert "cats" not in str([history, operations])
    assert (await core.for_turn(owner))["human"]["content"] == block.content
    rolled = await core.rollback(owner, "human", 1, Trigger("user"))
    assert rolled.content == {"allergies": ["peanuts"]}


async def test_what_a_removed_memory_had_superseded_holds_again(services: Services) -> None:
    doomed, other = await _two(services)
    old, new = await _write(services, other, "lives in Kiel"), await _write(services, doomed, "lives in Bonn")
    await supersede(services, owner_of(other), old, new, _by_model(doomed))
    await services.memory.indexing.index_waiting()
    await _erase(services, doomed)
    assert "lives in Kiel" in await _found(services, other, "where does she live: lives in")


async def test_the_summary_of_a_day_goes_and_is_made_again_where_there_were_other_visits(
    services: Services,
) -> None:
    doomed, other = await _two(services)
    today = datetime.now(UTC).date()
    visits = await _rows(services.database, "SELECT id, conversation_id FROM visits")
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(
            "INSERT INTO daily_summaries (user_id, expert_id, date, tenant_id, timezone, summary, key_topics,"
            " session_count, message_count, visit_ids) VALUES (%s, %s, %s, %s, 'UTC', 'A kayak.', %s, 2, 4, %s)",
            [
                doomed.user_id, doomed.expert_id, today, DEFAULT_TENANT, Jsonb([]),
                [visit_id for visit_id, _ in visits],
            ],
        )  # fmt: skip
    erased = await _erase(services, doomed)
    assert erased.removed["postgresql"]["daily_summaries"] == 1
    assert await _rows(services.database, "SELECT FROM daily_summaries") == []
    [(arguments,)] = await _rows(
        services.database, "SELECT args FROM procrastinate_jobs WHERE task_name = 'summarise_days'"
    )
    assert arguments["visit_ids"] == [
        str(visit_id) for visit_id, conversation_id in visits if conversation_id == other.conversation_id
    ]


async def test_a_turn_under_way_is_cancelled_first(services: Services, model_server: ModelServer) -> None:
    model_server.default = lambda _: Reply(["One ", "two ", "three"], delay_s=50)
    async with running_turns(services) as runner:
        asked = TurnInput(user_id="u-1", session_id="s-1", message="Count slowly.", images=[])
        turn_id = await runner.start(TurnRequest(DEFAULT_TENANT, asked))
        following = asyncio.create_task(events_of(runner, turn_id))
        stored = await services.turns.get(DEFAULT_TENANT, turn_id)
        erased = await services.erasure.conversation(DEFAULT_TENANT, stored.conversation_id)
        assert erased.removed["postgresql"]["turns"] == 1
        events = await following
    assert (events[-1].status, events[-1].content["code"]) == ("error", "cancelled")
    assert await _rows(services.database, "SELECT FROM messages") == []


async def test_stores_that_are_away_are_told_and_caught_up(
    services: Services, settings: Settings, engines: Engines
) -> None:
    doomed, _ = await _two(services)
    await services.redis.xadd(f"turn:{doomed.turn_id}:events", {"data": "text"})
    nowhere = settings.model_copy(update={"redis_url": SecretStr(f"redis://127.0.0.1:{free_port()}/0")})
    apart = replace(engines, milvus_uri=f"http://127.0.0.1:{free_port()}")
    async with open_services(nowhere, apart) as without_stores:
        erased = await _erase(without_stores, doomed)
    assert erased.pending == ["redis", "milvus"]
    waiting = await _rows(services.database, "SELECT task_name FROM procrastinate_jobs ORDER BY id")
    assert {task for (task,) in waiting} >= {ERASE_TRACES, "forget_episodes"}
