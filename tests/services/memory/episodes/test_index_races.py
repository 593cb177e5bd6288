"""What changes while the index is written: nothing that was removed comes back, nothing that was said is missed.

The embeddings endpoint answers late, so that there is a while between reading the episodes and writing them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.memory.episodes.episode import NewEpisode
from services.memory.episodes.index import shard_of
from services.memory.episodes.index_sync import EpisodeIndexSync, lane_of
from services.memory.operations import Trigger
from services.memory.removal.stores import RemovalStores
from services.memory.removal.wholes import WholeErasure
from services.search.vector_index import WRITING
from state.turn import OpenTurn
from tests.support.jobs import hurried_queue, statuses, until
from tests.support.milvus_server import MilvusServer, collections, indexed, of_user
from tests.support.model_server import EmbeddingsScript, ModelServer
from tests.support.turns import exchange, owner_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.untraced,
    pytest.mark.own_milvus,
    pytest.mark.settings(embedding_model="scripted-embeddings", embedding_dim=8),
]

BY_USER = Trigger("user")
LATE = EmbeddingsScript(delay_s=50)


@asynccontextmanager
async def removals(services: Services) -> AsyncIterator[JobQueue]:
    """A worker that does what a removal defers."""
    memory = services.memory
    async with hurried_queue(services.database) as jobs:
        EpisodeIndexSync(services.database, memory.index, services.embedder, jobs)
        WholeErasure(
            RemovalStores(
                services.database,
                services.leases.stop_all,
                services.events.delete,
                memory.index,
                memory.operations,
                jobs,
                events_keep_s=600,
            )
        )
        jobs.start_worker()
        yield jobs


async def _until_removed(services: Services, task: str) -> None:
    async def done() -> bool:
        return "succeeded" in await statuses(services.database, task)

    await until(done)


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
        await memory.archive.remove(owner_of(gone), removed, BY_USER)

    async with removals(services):
        await _while_it_is_embedded(model_server, work, remove)
        await _until_removed(services, "forget_episodes")
    expected = {kept.user_message_id: 1, kept.answer_message_id: 1}
    assert of_user(milvus_server.uri, kept.user_id) == expected
    assert await _unindexed(services) == 0


async def test_while_a_lane_is_held_the_others_are_indexed_and_removals_reach_the_index(
    services: Services, milvus_server: MilvusServer
) -> None:
    memory, uri = services.memory, milvus_server.uri
    mine = other = await exchange(services.turns, "My dog is Bruno", "A good dog", user_id="u-0")
    lane = lane_of(shard_of(mine.user_id))
    while lane_of(shard_of(other.user_id)) == lane:
        other = await exchange(services.turns, "My cat is Minka", "A good cat", user_id=str(other.user_id))
    async with services.database.only_one(lane, part_of=WRITING):
        await memory.indexing.index_waiting()
        assert (len(of_user(uri, mine.user_id)), len(of_user(uri, other.user_id))) == (0, 2)
    await memory.indexing.index_waiting()
    assert len(of_user(uri, mine.user_id)) == 2

    async def gone() -> bool:
        return not of_user(uri, mine.user_id)

    async with removals(services), services.database.only_one(lane, part_of=WRITING):
        await memory.archive.remove(owner_of(mine), (await _episodes(services, mine))[0], BY_USER)
        await until(gone)


async def test_a_user_who_is_erased_while_it_is_written_does_not_come_back(
    services: Services, milvus_server: MilvusServer, model_server: ModelServer
) -> None:
    memory = services.memory
    gone = await exchange(services.turns, "My dog is Bruno", "A good dog")
    await memory.indexing.index_waiting()
    work = memory.indexing.rebuild(lambda _: None)

    async def erase() -> None:
        await services.erasure.user(DEFAULT_TENANT, "u-1")

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
        await services.erasure.user(DEFAULT_TENANT, "u-1")
        await _until_removed(services, "erase_traces")
    assert len(collections(milvus_server.uri)) == 1
    assert indexed(milvus_server.uri) == []


@pytest.mark.in_clear
async def test_a_memory_that_is_changed_while_it_is_written_is_written_again(
    services: Services, milvus_server: MilvusServer, model_server: ModelServer
) -> None:
    memory = services.memory
    owner = owner_of(await exchange(services.turns, "Good weather", "Sunny weather"))
    new = NewEpisode("likes red wine", "preference", 0.8, "user_said")
    episode_id = await memory.archive.insert(owner, new, BY_USER)
    work = memory.indexing.index_waiting()

    async def change() -> None:
        await memory.catalog.edit(DEFAULT_TENANT, "u-1", episode_id, BY_USER, content="likes green tea")

    await _while_it_is_embedded(model_server, work, change)
    await memory.indexing.index_waiting()
    assert await _unindexed(services) == 0
    found = [unit.terms for unit in indexed(milvus_server.uri) if unit.id == episode_id]
    assert len(found) == 1
    assert "tea" in found[0].split()
    assert "wine" not in found[0].split()
    # And to something that has no word at all: the old words are not left behind.
    await memory.catalog.edit(DEFAULT_TENANT, "u-1", episode_id, BY_USER, content="…")
    await memory.indexing.index_waiting()
    assert of_user(milvus_server.uri, owner.user_id)[episode_id] == 0
