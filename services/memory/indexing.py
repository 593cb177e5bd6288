"""Keeping the index up with the episodes: in batches, behind the answers, by one process at a time.

PostgreSQL says what is indexed. A crash between Milvus and PostgreSQL makes units be written again under the
same ids: nothing is lost, nothing is there twice.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import procrastinate
import structlog
from psycopg.rows import class_row, tuple_row

from services.errors import Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.llm.embeddings import Embedder
from services.memory import episode_sql as sql
from services.memory.episode import UnitToIndex
from services.memory.episodes import FORGET
from services.memory.index import SHARDS, EpisodeIndex, IndexRow, shard_of
from services.memory.terms import indexed_text, terms
from services.platform.metrics import UNITS_INDEXED
from services.platform.postgres import Database

INDEX = "index_episodes"

_EVERY = "* * * * * */5"
"""A cron expression, its last field the seconds."""
_EPISODES_AT_ONCE = 200
_FIRST = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))

log = structlog.get_logger(__name__)


class Indexing:
    """Puts episodes into the index, takes them out, and makes the index anew."""

    def __init__(self, database: Database, index: EpisodeIndex, embedder: Embedder, jobs: JobQueue) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self._jobs = jobs
        jobs.periodic(INDEX, _EVERY)(self._index_waiting)
        jobs.task(FORGET)(self._forget)

    async def index_waiting(self) -> int:
        """Index every episode that waits for it, of all tenants; return how many.

        Raises:
            Unavailable: Milvus, the embedding endpoint or the database does not answer.
            ConfigurationError: the index was made with another embedding model.
        """
        count = 0
        async with self._database.only_one(INDEX) as alone:
            if alone:
                for tenant_id in await self._tenants():
                    count += await self._index_tenant(tenant_id)
        return count

    async def _index_waiting(self, context: procrastinate.JobContext) -> None:
        try:
            await self.index_waiting()
        except Unavailable as error:  # they wait, are recalled all the same, and the next run is soon
            log.warning("episodes wait to be indexed", reason=error.message)
        await self._jobs.forget_older_runs(INDEX, context)

    async def _index_tenant(self, tenant_id: UUID) -> int:
        count = 0
        while True:
            values = {"tenant_id": tenant_id, "limit": _EPISODES_AT_ONCE}
            units = await self._database.fetch(tenant_id, sql.TO_INDEX, values, class_row(UnitToIndex))
            if not units:
                return count
            made = await self._index.upsert(await self._rows(tenant_id, units))
            if made:
                await self._lost(made)
            episodes = {unit.episode_id: unit.source_count for unit in units}
            marked = await self._mark(tenant_id, episodes)
            # What was removed or changed meanwhile must not come back, or not as it was.
            for unit in units:
                if unit.episode_id not in marked:
                    await self._index.forget(unit.user_id, [unit.episode_id])
            count += len(episodes)
            UNITS_INDEXED.inc(len(units))

    async def _rows(self, tenant_id: UUID, units: Sequence[UnitToIndex]) -> list[IndexRow]:
        full = [unit for unit in units if unit.text and terms(unit.text)]
        texts = [indexed_text(unit.speaker or "", unit.text) for unit in full]
        vectors = await self._embedder.embed(texts)
        return [
            IndexRow(
                unit_id=unit.unit_id,
                episode_id=unit.episode_id,
                tenant_id=tenant_id,
                user_id=unit.user_id,
                expert_id=unit.expert_id,
                conversation_id=unit.conversation_id,
                episode_type=unit.episode_type,
                importance=unit.importance,
                created_at=unit.created_at,
                terms=terms(text),
                embedding=vector,
            )
            for unit, text, vector in zip(full, texts, vectors, strict=True)
        ]

    async def _mark(self, tenant_id: UUID, episodes: dict[UUID, int]) -> set[UUID]:
        values = {"tenant_id": tenant_id, "episode_ids": list(episodes), "sources": list(episodes.values())}
        async with self._database.tenant(tenant_id) as connection:
            rows = await (await connection.execute(sql.INDEXED, values)).fetchall()
        return {row[0] for row in rows}

    async def _lost(self, shards: Sequence[int]) -> None:
        """Shards that had to be made were lost, or are new: whatever they had held is indexed again."""
        for each in await self._database.tenants():
            users = [user for user in await self._users(each) if shard_of(user) in shards]
            values = {"tenant_id": each, "user_ids": users}
            async with self._database.tenant(each) as connection:
                await connection.execute(sql.NOT_INDEXED, values)

    async def _forget(self, job: RunningJob, *, user_id: UUID, episode_ids: list[UUID]) -> None:
        await self._index.forget(user_id, episode_ids)

    async def count(self) -> int:
        """How many episodes there are, of all tenants."""
        count = 0
        for tenant_id in await self._database.tenants():
            rows = await self._database.fetch(
                tenant_id, "SELECT count(*) FROM episodes WHERE tenant_id = %(id)s", {"id": tenant_id}, tuple_row
            )
            count += rows[0][0]
        return count

    async def rebuild(self, on_progress: Callable[[int], None]) -> int:
        """Make the whole index anew from PostgreSQL, shard by shard, while it is in use; return the episodes.

        Each shard is filled beside the present one and takes its place when it is whole. Broken off, it is
        begun again without harm.

        Args:
            on_progress: called with how many more episodes are in it.

        Raises:
            Unavailable: Milvus, the embedding endpoint or the database does not answer.
        """
        users: dict[int, list[tuple[UUID, UUID]]] = {}
        for tenant_id in await self._database.tenants():
            for user_id in await self._users(tenant_id):
                users.setdefault(shard_of(user_id), []).append((tenant_id, user_id))
        count = 0
        for shard in range(SHARDS):
            async with self._database.only_one(INDEX, wait=True):
                count += await self._rebuild_shard(shard, users.get(shard, []), on_progress)
        return count

    async def _rebuild_shard(
        self, shard: int, users: Sequence[tuple[UUID, UUID]], on_progress: Callable[[int], None]
    ) -> int:
        if not users:
            await self._index.remove_shard(shard)
            return 0
        fresh = await self._index.begin_again(shard)
        done: list[tuple[UUID, dict[UUID, int]]] = []
        for tenant_id, user_id in users:
            async for units in self._of_user(tenant_id, user_id):
                await fresh.add(await self._rows(tenant_id, units))
                episodes = {unit.episode_id: unit.source_count for unit in units}
                done.append((tenant_id, episodes))
                on_progress(len(episodes))
        await fresh.put_in_place()
        for tenant_id, episodes in done:
            await self._mark(tenant_id, episodes)
        return sum(len(episodes) for _, episodes in done)

    async def _of_user(self, tenant_id: UUID, user_id: UUID) -> AsyncIterator[list[UnitToIndex]]:
        at, last = _FIRST
        while True:
            values = {
                "tenant_id": tenant_id,
                "user_id": user_id,
                "after_at": at,
                "after_id": last,
                "limit": _EPISODES_AT_ONCE,
            }
            units = await self._database.fetch(tenant_id, sql.OF_USER, values, class_row(UnitToIndex))
            if not units:
                return
            at, last = units[-1].episode_at, units[-1].episode_id
            yield units

    async def _tenants(self) -> list[UUID]:
        rows = await self._database.fetch_without_tenant("SELECT tenants_to_index()", {}, tuple_row)
        return [row[0] for row in rows]

    async def _users(self, tenant_id: UUID) -> list[UUID]:
        rows = await self._database.fetch(
            tenant_id, "SELECT id FROM users WHERE tenant_id = %(id)s ORDER BY id", {"id": tenant_id}, tuple_row
        )
        return [row[0] for row in rows]
