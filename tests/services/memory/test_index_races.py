"""What changes while the index is written: nothing that was removed comes back, nothing that was said is missed.

The embeddings endpoint answers late, so that there is a while between reading the episodes and writing them.
"""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.engines import Engines
from services.erasure.erasure import Erasure
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.memory.blocks import Owner
from services.memory.episode import NewEpisode
from services.memory.indexing import Indexing
from services.memory.operations import Trigger
from services.platform.settings import Settings, load_settings
from tests.support.jobs import hurried_queue, statuses, until
from tests.support.milvus_server import MilvusServer, collections, indexed, of_user
from tests.support.model_server import EmbeddingsScript, ModelServer
from tests.support.service_process import ROOT
from tests.support.turns import exchange

pytestmark = pytest.mark.anyio

BY_USER = Trigger("user")
LATE = EmbeddingsScript(delay_s=2)

_INDEX_AND_HANG = """
import asyncio, sys
from services.bootstrap import open_services
from services.engines import Engines
from services.platform.settings import load_settings

async def main():
    engines = Engines(sys.argv[1], None, sys.argv[2])
    async with open_services(load_settings(), engines) as services:
        print("ready", flush=True)
        await services.memory.indexing.index_waiting()
        print("indexed", flush=True)

asyncio.run(main())
"""


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    """With an endpoint of embeddings."""
    return load_settings(
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api_key="secret-key",
        embedding_model="scripted-embeddings",
        embedding_dim=8,
    )


@pytest.fixture
def engines(engines: Engines, milvus_server: MilvusServer) -> Engines:
    """With a Milvus of the test's own."""
    return replace(engines, milvus_uri=milvus_server.uri)


@asynccontextmanager
async def removals(services: Services) -> AsyncIterator[JobQueue]:
    """A worker that does what a removal defers."""
    memory = services.memory
    async with hurried_queue(services.database) as jobs:
        Indexing(services.database, memory.index, services.embedder, jobs)
        Erasure(
            services.database,
            services.leases,
            services.events,
            memory.core_cache,
            memory.index,
            jobs,
            events_keep_s=600,
        )
        jobs.start_worker()
        yield jobs


async def _until_removed(services: Services, task: str) -> None:
    async def done() -> bool:
        return "succeeded" in await statuses(services.database, task)

    await until(done, seconds=30)


def _asked(model_server: ModelServer) -> int:
    return sum(request.path.endswith("embeddings") for request in model_server.requests)


async def _while_it_is_embedded(
    model_server: ModelServer, work: Coroutine[Any, Any, Any], meanwhile: Callable[[], Coroutine[Any, Any, Any]]
) -> None:
    """Do something when the work has read the episodes and waits for their vectors."""
    before, model_server.embeddings = _asked(model_server), LATE
    task = asyncio.create_task(work)

    async def asked() -> bool:
        return _asked(model_server) > before

    await until(asked)
    await meanwhile()
    assert not task.done()
    model_server.embeddings = EmbeddingsScript()
    await task


async def _unindexed(services: Services) -> int:
    statement = "SELECT count(*) FROM episodes WHERE indexed_at IS NULL"
    rows = await services.database.fetch(DEFAULT_TENANT, statement, {}, tuple_row)
    return int(rows[0][0])


async def _episodes(services: Services, turn: OpenTurn) -> list[UUID]:
    statement = "SELECT id FROM episodes WHERE user_id = %(user)s ORDER BY created_at, id"
    rows = await services.database.fetch(DEFAULT_TENANT, statement, {"user": turn.user_id}, tuple_row)
    return [row[0] for row in rows]


def _owner(turn: OpenTurn) -> Owner:
    return Owner(turn.tenant_id, turn.user_id, turn.expert_id)


@pytest.mark.parametrize("how", ["index", "rebuild"])
async def test_an_episode_that_is_removed_while_it_is_written_does_not_come_back(
    services: Services, milvus_server: MilvusServer, model_server: ModelServer, how: str
) -> None:
    memory = services.memory
    kept, gone = [await exchange(services.turns, f"My dog is Bruno {n}", "A good dog") for n in range(2)]
    if how == "rebuild":
        await memory.indexing.index_waiting()
    work = memory.indexing.index_waiting() if how == "index" else memory.indexing.rebuild(lambda _: None)
    removed = (await _episodes(services, gone))[1]

    async def remove() -> None:
        await memory.archive.remove(_owner(gone), removed, BY_USER)

    async with removals(services):
        await _while_it_is_embedded(model_server, work, remove)
        await _until_removed(services, "forget_episodes")
    expected = {kept.user_message_id: 1, kept.answer_message_id: 1}
    assert of_user(milvus_server.uri, kept.user_id) == expected
    assert await _unindexed(services) == 0


@pytest.mark.parametrize("how", ["index", "rebuild"])
async def test_a_user_who_is_erased_while_it_is_written_does_not_come_back(
    services: Services, milvus_server: MilvusServer, model_server: ModelServer, how: str
) -> None:
    memory = services.memory
    gone = await exchange(services.turns, "My dog is Bruno", "A good dog")
    if how == "rebuild":
        await memory.indexing.index_waiting()
    work = memory.indexing.index_waiting() if how == "index" else memory.indexing.rebuild(lambda _: None)

    async def erase() -> None:
        await services.erasure.erase(DEFAULT_TENANT, "u-1")

    async with removals(services):
        await _while_it_is_embedded(model_server, work, erase)
        await _until_removed(services, "erase_traces")
    assert of_user(milvus_server.uri, gone.user_id) == {}


async def test_what_a_broken_rebuild_had_written_of_an_erased_user_is_gone_too(
    services: Services, milvus_server: MilvusServer, model_server: ModelServer
) -> None:
    await exchange(services.turns, "My dog is Bruno", "A good dog")
    await services.memory.indexing.index_waiting()
    model_server.embeddings = EmbeddingsScript(delay_s=60)
    before = _asked(model_server)
    broken = asyncio.create_task(services.memory.indexing.rebuild(lambda _: None))

    async def asked() -> bool:
        return _asked(model_server) > before

    await until(asked)
    assert len(collections(milvus_server.uri)) == 2
    broken.cancel()
    await asyncio.wait({broken})
    async with removals(services):
        await services.erasure.erase(DEFAULT_TENANT, "u-1")
        await _until_removed(services, "erase_traces")
    assert len(collections(milvus_server.uri)) == 1
    assert indexed(milvus_server.uri) == []


@pytest.mark.parametrize("how", ["index", "rebuild"])
async def test_a_memory_that_is_changed_while_it_is_written_is_written_again(
    services: Services, milvus_server: MilvusServer, model_server: ModelServer, how: str
) -> None:
    memory = services.memory
    owner = _owner(await exchange(services.turns, "Good weather", "Sunny weather"))
    new = NewEpisode("likes red wine", "preference", 0.8, "user_said")
    episode_id = await memory.archive.insert(owner, new, BY_USER)
    if how == "rebuild":
        await memory.indexing.index_waiting()
    work = memory.indexing.index_waiting() if how == "index" else memory.indexing.rebuild(lambda _: None)

    async def change() -> None:
        await memory.archive.change(owner, episode_id, "likes green tea", BY_USER)

    await _while_it_is_embedded(model_server, work, change)
    await memory.indexing.index_waiting()
    assert await _unindexed(services) == 0
    found = [unit.terms for unit in indexed(milvus_server.uri) if unit.id == episode_id]
    assert len(found) == 1
    assert "tea" in found[0].split()
    assert "wine" not in found[0].split()
    # And to something that has no word at all: the old words are not left behind.
    await memory.archive.change(owner, episode_id, "…", BY_USER)
    await memory.indexing.index_waiting()
    assert of_user(milvus_server.uri, owner.user_id)[episode_id] == 0


async def test_a_message_that_joins_an_episode_while_it_is_written_is_written_too(
    services: Services, milvus_server: MilvusServer, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "My dog is Bruno", "A good dog")
    (episode_id,) = await _episodes(services, turn)
    later = await exchange(services.turns, "He is brown", "A brown dog", session_key="s-2")
    (second,) = (each for each in await _episodes(services, turn) if each != episode_id)

    async def join() -> None:
        async with services.database.tenant(DEFAULT_TENANT) as connection:
            await connection.execute("DELETE FROM episodes WHERE id = %s", [second])
            await connection.execute(
                "UPDATE episodes SET source_message_ids = source_message_ids || %s, indexed_at = NULL"
                " WHERE id = %s",
                [[later.user_message_id], episode_id],
            )

    await _while_it_is_embedded(model_server, services.memory.indexing.index_waiting(), join)
    assert await _unindexed(services) == 0
    expected = (turn.user_message_id, turn.answer_message_id, later.user_message_id)
    assert of_user(milvus_server.uri, turn.user_id) == dict.fromkeys(expected, 1)


async def test_users_who_come_during_a_rebuild_are_in_the_index(
    services: Services, milvus_server: MilvusServer, model_server: ModelServer
) -> None:
    await exchange(services.turns, "My dog is Bruno", "A good dog")
    await services.memory.indexing.index_waiting()
    turns: list[OpenTurn] = []

    async def come() -> None:
        for number in range(100):
            user = f"new-{number}"
            turns.append(await exchange(services.turns, "My cat is Minka", "A good cat", external_user_id=user))

    rebuilding = services.memory.indexing.rebuild(lambda _: None)
    await _while_it_is_embedded(model_server, rebuilding, come)
    await services.memory.indexing.index_waiting()
    assert await _unindexed(services) == 0
    messages = {message for turn in turns for message in (turn.user_message_id, turn.answer_message_id)}
    assert messages <= {unit.id for unit in indexed(milvus_server.uri)}


async def test_a_process_that_dies_between_milvus_and_postgresql_leaves_nothing_twice(
    services: Services, engines: Engines, milvus_server: MilvusServer, settings: Settings
) -> None:
    turns = [await exchange(services.turns, f"My dog is Bruno {n}", "A good dog") for n in range(3)]
    await services.memory.indexing.index_waiting()
    await services.memory.episodes.index_again(DEFAULT_TENANT, turns[0].user_id)
    async with services.database.pool.connection() as holding, holding.transaction():
        # The rows are locked, so that the mark has to wait behind what was written into Milvus.
        await holding.execute("SELECT set_config('anamnesis.tenant_id', %s, true)", [str(DEFAULT_TENANT)])
        await holding.execute("SELECT 1 FROM episodes FOR UPDATE")
        process = await asyncio.to_thread(_process, engines, settings)
        await asyncio.to_thread(_until_it_marks, engines)
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
    assert await _unindexed(services) == len(turns)
    expected = dict.fromkeys((m for t in turns for m in (t.user_message_id, t.answer_message_id)), 1)
    assert of_user(milvus_server.uri, turns[0].user_id) == expected

    async def indexed_again() -> bool:
        await services.memory.indexing.index_waiting()
        return await _unindexed(services) == 0

    await until(indexed_again, seconds=30)
    assert of_user(milvus_server.uri, turns[0].user_id) == expected


def _process(engines: Engines, settings: Settings) -> "subprocess.Popen[str]":
    assert settings.llm_base_url
    process = subprocess.Popen(
        [sys.executable, "-c", _INDEX_AND_HANG, engines.database_url, engines.milvus_uri],
        stdout=subprocess.PIPE,
        text=True,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "ANAMNESIS_LLM_MODEL": "scripted",
            "ANAMNESIS_LLM_BASE_URL": settings.llm_base_url,
            "ANAMNESIS_EMBEDDING_MODEL": "scripted-embeddings",
            "ANAMNESIS_EMBEDDING_DIM": "8",
        },
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.stdout.close()
    return process


def _until_it_marks(engines: Engines) -> None:
    assert engines.owner_url
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
    with psycopg.connect(engines.owner_url, autocommit=True) as connection:
        end = time.monotonic() + 30
        while connection.execute(waits).fetchone() == (0,):
            assert time.monotonic() < end
            time.sleep(0.05)
