"""Keeps the index in sync with the episodes: in batches, in the background, each lane by one process at a time.

PostgreSQL records what is indexed. After a crash between Milvus and PostgreSQL, units are written again under the
same ids: nothing is lost or duplicated.
"""

import asyncio
import random
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import structlog
from psycopg.rows import class_row, tuple_row

from services.errors import Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.llm.embeddings import Embedder
from services.memory.episodes import statements as sql
from services.memory.episodes.episode import FORGET, IndexedUnit, PassageId
from services.memory.episodes.index import EpisodeIndex, collection_name, shard_of
from services.platform.metrics import UNITS_INDEXED
from services.platform.postgres import Database
from services.search.collection import MOST_TERMS, indexed_terms
from services.search.vector_index import WRITING
from services.text.passages import passages_of
from services.text.tokenizer import embedded_text

INDEX = "index_episodes"

_EVERY = "* * * * * */5"
"""Schedule of the job: a cron expression whose last field is seconds."""
LANES = 8
"""Number of groups of users; each group is indexed by one process at a time, and a shard is in one group."""
_EPISODES_AT_ONCE, _TOLD_EVERY = 200, 5_000
_OF_TURNS = 128
"""A batch of at most this many texts counts as messages of turns, a larger one as an import."""
_OTHERS_S = 0.3
"""Seconds to pause between two shards, so that a waiting removal can run."""
_FIRST = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))

log = structlog.get_logger(__name__)


def lane_of(shard: int) -> str:
    """Return the name of the lock of the lane that has this shard."""
    return f"{WRITING} {shard % LANES}"


_Written = dict[UUID, tuple[int, str | None, bool]]
"""For each episode in the index: its number of sources, its hash, and whether it is valid."""


def _passages(unit: IndexedUnit) -> Iterator[tuple[IndexedUnit, str]]:
    """Yield a unit's passages that have terms, as rows of the index, each with the text to embed."""
    for number, each in enumerate(passages_of(unit.text)):
        text = unit.text[each.start : each.end]
        if words := indexed_terms(text, unit.speaker)[:MOST_TERMS]:
            yield replace(unit, terms=words, passage=number), embedded_text(unit.role, unit.speaker, text)


def _written(units: Sequence[IndexedUnit]) -> _Written:
    return {unit.episode_id: (unit.source_count, unit.content_hash, unit.is_living) for unit in units}


class EpisodeIndexSync:
    """Adds episodes to the index, removes them, and rebuilds it."""

    def __init__(
        self,
        database: Database,
        index: EpisodeIndex,
        embedder: Embedder,
        jobs: JobQueue,
        *,
        on_indexed: Callable[[Sequence[IndexedUnit]], Awaitable[None]] | None = None,
    ) -> None:
        """Register the jobs; `on_indexed` is called with what this process has indexed."""
        self._on_indexed = on_indexed
        self._database = database
        self._index = index
        self._embedder = embedder
        self._jobs = jobs
        self._indexes = False
        # Turns do not need it: working sets hold what waits.
        jobs.periodic(INDEX, _EVERY, can_wait=True)(self._index_waiting)
        jobs.task(FORGET)(self._forget)

    async def index_waiting(self) -> int:
        """Index the waiting episodes of all tenants, newest first; return their number. A lane is locked for one
        batch at a time, so that removals can run in between; a lane that another process has is skipped. Raises
        `Unavailable` if Milvus, the embedding endpoint or the database does not answer."""
        count = 0
        waiting = await self._database.fetch_without_tenant("SELECT tenants_to_index()", {}, tuple_row)
        for (tenant_id,) in waiting:
            held: set[int] = set()
            while lanes := await self._lanes_waiting(tenant_id) - held:
                for lane in random.sample(sorted(lanes), len(lanes)):
                    async with self._database.only_one(lane_of(lane), part_of=WRITING) as alone:
                        if alone:
                            before, count = count, count + await self._index_batch(tenant_id, lane)
                            if count // _TOLD_EVERY > before // _TOLD_EVERY:
                                log.info("episodes are being indexed", done=count, left=await self._waiting())
                        else:
                            held.add(lane)
        await self._index.vectors.flush_written()
        return count

    async def _lanes_waiting(self, tenant_id: UUID) -> set[int]:
        values = {"tenant_id": tenant_id, "lanes": LANES}
        return {row[0] for row in await self._database.fetch(tenant_id, sql.LANES_TO_INDEX, values, tuple_row)}

    async def _index_waiting(self) -> None:
        if self._indexes:  # another lane is for another process
            return
        self._indexes = True
        try:
            await self.index_waiting()
        except Unavailable as error:
            # They can be recalled anyway, and the next run is soon.
            log.warning("episodes wait to be indexed", reason=error.message)
        finally:
            self._indexes = False

    async def _index_batch(self, tenant_id: UUID, lane: int) -> int:
        values = {"tenant_id": tenant_id, "lane": lane, "lanes": LANES, "limit": _EPISODES_AT_ONCE}
        units = await self._database.fetch(tenant_id, sql.TO_INDEX, values, class_row(IndexedUnit))
        if not units:
            return 0
        rows = await self._rows(units)
        await self._note_passages(tenant_id, rows)
        await self._index.upsert(rows, lost=self._lost)
        await self._forget_passages(units, rows)
        if self._on_indexed is not None:
            await self._on_indexed(rows)
        marked = await self._mark(tenant_id, _written(units))
        # What was removed or changed meanwhile must not come back.
        written = {row.unit_id for row in rows}
        stale: dict[UUID, set[UUID]] = {}
        for unit in units:
            if unit.episode_id not in marked or (unit.message_id is None and unit.unit_id not in written):
                stale.setdefault(unit.user_id, set()).add(unit.episode_id)
        for user_id, episode_ids in stale.items():
            await self._index.forget(user_id, sorted(episode_ids))
        UNITS_INDEXED.inc(len(rows))
        return len(marked)

    async def _rows(self, units: Sequence[IndexedUnit]) -> list[IndexedUnit]:
        # In a thread, so that turns of the same process go on.
        full = await asyncio.to_thread(lambda: [each for unit in units if unit.text for each in _passages(unit)])
        texts = [text for _, text in full]
        vectors = await self._embedder.embed_documents(texts, again=len(texts) <= _OF_TURNS)
        return [
            replace(row, embedding=array("f", vector.tobytes()))
            for (row, _), vector in zip(full, vectors, strict=True)
        ]

    async def _note_passages(self, tenant_id: UUID, rows: Sequence[IndexedUnit]) -> None:
        """Record how many passages each episode of long units will have in the index, before they are written."""
        most: dict[UUID, int] = {}
        for row in rows:
            if row.passage >= row.indexed_passages:
                most[row.episode_id] = max(most.get(row.episode_id, 0), row.passage + 1)
        if most:
            values = {"tenant_id": tenant_id, "episode_ids": list(most), "passages": list(most.values())}
            await self._database.fetch(tenant_id, sql.NOTE_PASSAGES, values, tuple_row)

    async def _forget_passages(self, units: Sequence[IndexedUnit], rows: Sequence[IndexedUnit]) -> None:
        """Remove passages of units that were longer when they were indexed before."""
        written: dict[UUID, dict[UUID, list[PassageId]]] = {}
        for unit in units:
            if unit.indexed_passages > 1:
                written.setdefault(unit.user_id, {})[unit.episode_id] = []
        for row in rows:
            if row.indexed_passages > 1:
                written[row.user_id][row.episode_id].append((row.unit_id, row.passage))
        for user_id, episodes in written.items():
            await self._index.forget_passages(user_id, episodes)

    async def _mark(self, tenant_id: UUID, written: _Written) -> set[UUID]:
        sources, contents, living = map(list, zip(*written.values(), strict=True))
        values = {
            "tenant_id": tenant_id,
            "episode_ids": list(written),
            "sources": sources,
            "contents": contents,
            "living": living,
        }
        return {row[0] for row in await self._database.fetch(tenant_id, sql.INDEXED, values, tuple_row)}

    async def _lost(self, shard: int, shards: int) -> None:
        """Index the episodes of a missing shard again. The shard was lost, or is new."""
        for tenant_id, users in (await self._users_of(shard, shards)).items():
            values = {"tenant_id": tenant_id, "user_ids": users}
            async with self._database.tenant(tenant_id) as connection:
                await connection.execute(sql.NOT_INDEXED, values)

    async def _forget(self, job: RunningJob, *, user_id: UUID, episode_ids: list[UUID]) -> None:
        left = "removed episodes are left in the index"
        async with self._jobs.until_done(job, FORGET, left, user_id=user_id, episode_ids=list(episode_ids)):
            await self._index.forget(user_id, episode_ids)
            # A current writer may have read what was removed: once more when it has ended.
            lane = lane_of(shard_of(user_id))
            async with self._database.only_one(lane, wait=True, part_of=WRITING):
                await self._index.forget(user_id, episode_ids)

    async def _waiting(self) -> int:
        rows = [
            await self._database.fetch(tenant_id, sql.ALL_WAITING, {"tenant_id": tenant_id}, tuple_row)
            for tenant_id in await self._database.tenants()
        ]
        return sum(count for ((count,),) in rows)

    async def begin_anew(self) -> None:
        """Remove the index, so that everything is indexed in the background, the newest first. Raises
        `Unavailable` if Milvus or the database does not answer."""
        shards = await self._index.shards()
        async with self._database.only_one(WRITING, wait=True):
            for shard in range(shards):
                await self._index.remove_shard(shard)
                await self._lost(shard, shards)

    async def count(self, shard: int = 0, shards: int = 1) -> int:
        """Count the episodes of all tenants, or of a shard."""
        count = 0
        for tenant_id in await self._database.tenants():
            values = {"tenant_id": tenant_id, "shard": shard, "shards": shards}
            count += (await self._database.fetch(tenant_id, sql.COUNT, values, tuple_row))[0][0]
        return count

    async def rebuild(self, on_progress: Callable[[int], None], *, everything: bool = True) -> int:
        """Rebuild the index from PostgreSQL, shard by shard, while it is in use; return how many episodes.

        Each shard is filled beside the current one and replaces it when it is complete. An interrupted rebuild can
        simply be repeated.

        Args:
            on_progress: called with the number of further episodes indexed.
            everything: False = only the shards that the index's last check found outdated.

        Raises:
            Unavailable: Milvus, the embedding endpoint or the database does not answer.
        """
        count = 0
        shards = await self._index.shards()
        for shard in range(shards):
            if everything or collection_name(shard, shards) in self._index.vectors.outdated:
                count += await self._rebuild_shard(shard, shards, on_progress)
            else:
                on_progress(await self.count(shard, shards))
        return count

    async def _rebuild_shard(self, shard: int, shards: int, on_progress: Callable[[int], None]) -> int:
        lane, whole = (WRITING, None) if shards == 1 else (lane_of(shard), WRITING)
        async with self._database.only_one(lane, wait=True, part_of=whole):
            # Read under the lock: later users are indexed once the new collection is in place.
            users = await self._users_of(shard, shards)
            if not users:
                await self._index.remove_shard(shard)
                return 0
            fresh = await self._index.begin_again(shard)
            done: list[tuple[UUID, _Written]] = []
            for tenant_id, user_id in ((tenant, user) for tenant, ids in users.items() for user in ids):
                async for units in self._of_user(tenant_id, user_id):
                    rows = await self._rows(units)
                    await self._note_passages(tenant_id, rows)
                    await fresh.add(await self._index.entities(rows))
                    done.append((tenant_id, _written(units)))
                    on_progress(len(done[-1][1]))
            await fresh.put_in_place()
            for tenant_id, written in done:
                await self._mark(tenant_id, written)
        await asyncio.sleep(_OTHERS_S)
        return sum(len(written) for _, written in done)

    async def _of_user(self, tenant_id: UUID, user_id: UUID) -> AsyncIterator[list[IndexedUnit]]:
        at, last = _FIRST
        while True:
            values = {
                "tenant_id": tenant_id,
                "user_id": user_id,
                "after_at": at,
                "after_id": last,
                "limit": _EPISODES_AT_ONCE,
            }
            units = await self._database.fetch(tenant_id, sql.OF_USER, values, class_row(IndexedUnit))
            if not units:
                return
            at, last = units[-1].episode_at, units[-1].episode_id
            yield units

    async def _users_of(self, shard: int, shards: int) -> dict[UUID, list[UUID]]:
        """Return the users of a shard, by tenant."""
        found: dict[UUID, list[UUID]] = {}
        for tenant_id in await self._database.tenants():
            values = {"tenant_id": tenant_id, "shard": shard, "shards": shards}
            rows = await self._database.fetch(tenant_id, sql.USERS_OF_SHARD, values, tuple_row)
            if rows:
                found[tenant_id] = [row[0] for row in rows]
        return found
