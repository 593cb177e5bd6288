"""Milvus or the embedding endpoint goes away, hangs, or loses everything: answers go on, and the index heals."""

import asyncio
import signal
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.errors import Unavailable
from services.identity.tenants import DEFAULT_TENANT
from services.memory.episodes.episode import Scope
from services.memory.episodes.index import shard_of
from services.memory.recall.recall import RecallResult
from state.turn import OpenTurn
from tests.support.jobs import until
from tests.support.milvus_server import MilvusServer, of_user
from tests.support.model_server import EmbeddingsScript, ModelServer
from tests.support.turns import exchange

pytestmark = [
    pytest.mark.slow,
    pytest.mark.untraced,
    pytest.mark.own_milvus,
    pytest.mark.settings(embedding_model="scripted-embeddings", embedding_dim=8, memory_recall_budget_ms=3000),
]


def scope(turn: OpenTurn) -> Scope:
    return Scope(turn.tenant_id, turn.user_id, turn.expert_id)


async def search(services: Services, turn: OpenTurn, text: str) -> RecallResult:
    return await services.memory.recall.search(scope(turn), text, now=datetime.now(UTC))


async def recall(services: Services, turn: OpenTurn, text: str) -> RecallResult:
    """As a turn of a new conversation would."""
    asking = await exchange(services.turns, text, "I will see", session_id="asking")
    return await services.memory.recall.for_turn(replace(asking, memory_generation=None))


def texts(found: RecallResult) -> set[str]:
    return {result.unit.text for result in found.ranking.results}


async def waiting(services: Services) -> int:
    rows = await services.database.fetch(
        DEFAULT_TENANT, "SELECT count(*) FROM episodes WHERE indexed_at IS NULL", {}, tuple_row
    )
    return int(rows[0][0])


async def index_soon(services: Services) -> None:
    """As the periodic job does: try until nothing waits any more."""

    async def done() -> bool:
        try:
            await services.memory.indexing.index_waiting()
        except Unavailable:
            await asyncio.sleep(0.2)
            return False
        return await waiting(services) == 0

    await until(done, seconds=60)


async def said(services: Services, count: int = 3, **values: Any) -> list[OpenTurn]:
    return [
        await exchange(services.turns, f"My dog number {number} is Bruno", "Nice", **values)
        for number in range(count)
    ]


def units(turns: list[OpenTurn]) -> dict[UUID, int]:
    """Every message once."""
    return {message: 1 for turn in turns for message in (turn.user_message_id, turn.answer_message_id)}


async def test_stopped_and_started_again_nothing_is_lost_and_nothing_there_twice(
    services: Services, milvus_server: MilvusServer
) -> None:
    turns = await said(services)
    await index_soon(services)
    milvus_server.stop()
    turns.append(await exchange(services.turns, "My cat is called Minka", "Lovely"))
    for found in (await recall(services, turns[0], "Minka the cat"), await search(services, turns[0], "Minka")):
        assert list(found.degraded) == ["milvus"]
        assert "My cat is called Minka" in texts(found)
    with pytest.raises(Unavailable):
        await services.memory.indexing.index_waiting()
    milvus_server.start()
    await index_soon(services)
    asking = await exchange(services.turns, "The weather is sunny", "Good weather")
    await index_soon(services)
    indexed = of_user(milvus_server.uri, turns[0].user_id)
    assert units([*turns, asking]).items() <= indexed.items()
    assert set(indexed.values()) == {1}

    async def whole() -> bool:
        found = await search(services, turns[0], "Bruno the dog")
        return list(found.degraded) == [] and "My dog number 0 is Bruno" in texts(found)

    await until(whole)


async def test_paused_it_is_left_alone_and_what_waits_is_recalled(
    services: Services, milvus_server: MilvusServer
) -> None:
    turns = await said(services)
    await index_soon(services)
    await exchange(services.turns, "My cat is called Minka", "Lovely")
    milvus_server.send(signal.SIGSTOP)
    for _ in range(4):
        services.memory.working_sets.forget(turns[0].user_id)  # as after a restart
        found = await recall(services, turns[0], "Minka the cat and Bruno the dog")
        assert list(found.degraded) == ["milvus"]
        assert texts(found) >= {"My cat is called Minka", "My dog number 0 is Bruno"}
        assert found.loading_milliseconds < 2_000
    with pytest.raises(Unavailable):
        await services.memory.index.search(scope(turns[0]), [["dog"]], [], 5, within_s=1)
    milvus_server.send(signal.SIGCONT)

    async def answers() -> bool:
        found = await recall(services, turns[0], "Bruno the dog")
        return list(found.degraded) == [] and "My dog number 0 is Bruno" in texts(found)

    await until(answers)


async def test_an_index_that_was_lost_heals_by_being_asked_and_by_being_written(
    services: Services, milvus_server: MilvusServer
) -> None:
    turns = await said(services, user_id="asks")
    others = {name: await said(services, user_id=name) for name in [f"silent-{number}" for number in range(24)]}
    await index_soon(services)
    before = texts(await search(services, turns[0], "Bruno the dog"))
    milvus_server.restart(empty=True)

    async def seen() -> bool:
        services.memory.working_sets.forget(turns[0].user_id)  # as by a process that has none of them yet
        found = await search(services, turns[0], "Bruno the dog")
        return list(found.degraded) == ["milvus"] and await waiting(services) == len(turns)

    await until(seen)  # the client has to find the new server first
    await index_soon(services)
    found = await search(services, turns[0], "Bruno the dog")
    assert (list(found.degraded), texts(found)) == ([], before)
    healed = {shard_of(turns[0].user_id)}
    for other in others.values():
        user_id = other[0].user_id
        assert of_user(milvus_server.uri, user_id) == (units(other) if shard_of(user_id) in healed else {})
    # One of them says something: the whole shard is made, for all who are in it.
    speaker = next(other for other in others.values() if shard_of(other[0].user_id) not in healed)
    name = next(name for name, other in others.items() if other is speaker)
    speaker.append(
        await exchange(services.turns, "The weather is sunny", "Good weather", user_id=name, session_id="s-2")
    )
    await index_soon(services)
    healed.add(shard_of(speaker[0].user_id))
    for other in others.values():
        user_id = other[0].user_id
        assert of_user(milvus_server.uri, user_id) == (units(other) if shard_of(user_id) in healed else {})


async def test_without_embeddings_words_find_and_indexing_waits(
    services: Services, model_server: ModelServer
) -> None:
    turns = await said(services)
    await index_soon(services)
    model_server.embeddings = EmbeddingsScript(status=500)
    found = await recall(services, turns[0], "Bruno the dog")
    assert list(found.degraded) == ["embedding"]
    assert "My dog number 0 is Bruno" in texts(found)
    assert list((await search(services, turns[0], "Bruno the dog")).degraded) == ["embedding"]
    with pytest.raises(Unavailable):
        await services.memory.indexing.index_waiting()
    assert await waiting(services) == 1
