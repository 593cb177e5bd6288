"""Keeps the index up to date with the chunks: in batches after uploads, by one process at a time.

PostgreSQL says what is indexed. After a crash between Milvus and PostgreSQL, chunks are written again under the
same ids, so nothing is lost or doubled.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from uuid import UUID

import structlog
from psycopg.rows import DictRow, dict_row, tuple_row

from services.errors import Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.knowledge import chunk_sql as sql
from services.knowledge.documents import text_to_index
from services.knowledge.index import NAME, ChunkIndex
from services.llm.embeddings import Embedder
from services.platform.postgres import Database
from services.search.shard import remove
from services.search.vector_index import FORGET_PASSAGES, WRITING, any_of

INDEX = "index_passages"

_EVERY = "* * * * * */5"
"""Cron expression; the last field is seconds."""
_CHUNKS_AT_ONCE = 200
_FIRST = UUID(int=0)

log = structlog.get_logger(__name__)


class ChunkIndexSync:
    """Adds chunks to the index, removes them, and rebuilds it."""

    def __init__(self, database: Database, index: ChunkIndex, embedder: Embedder, jobs: JobQueue) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self._jobs = jobs
        jobs.periodic(INDEX, _EVERY)(self._index_waiting)
        jobs.task(FORGET_PASSAGES)(self._forget)

    async def index_waiting(self) -> int:
        """Index all waiting chunks of all tenants; return how many. Who else writes into Milvus gets in between
        two batches. Raises `Unavailable` if Milvus, the embedding endpoint or the database does not answer."""
        count = 0
        rows = await self._database.fetch_without_tenant("SELECT tenants_with_passages_to_index()", {}, tuple_row)
        for tenant_id in [row[0] for row in rows]:
            while True:
                async with self._database.only_one(WRITING, wait=True):
                    indexed = await self._index_batch(tenant_id)
                if not indexed:
                    break
                count += indexed
        if count:
            await self._index.flush_written()
            await self._index.warm()
        return count

    async def _index_waiting(self) -> None:
        try:
            await self.index_waiting()
        except Unavailable as error:
            # They stay waiting: searches find them by words, and the next run comes soon.
            log.warning("passages wait to be indexed", reason=error.message)

    async def _index_batch(self, tenant_id: UUID) -> int:
        values = {"tenant_id": tenant_id, "limit": _CHUNKS_AT_ONCE}
        chunks = await self._database.fetch(tenant_id, sql.TO_INDEX, values, dict_row)
        if not chunks:
            return 0
        await self._index.upsert(NAME, await self._entities(tenant_id, chunks), lost=self._lost)
        ids = [chunk["chunk_id"] for chunk in chunks]
        marked = await self._mark(tenant_id, ids)
        # A chunk that was replaced or removed meanwhile must not come back.
        if stale := set(ids) - marked:
            await self._index.delete(NAME, any_of("id", stale))
        return len(chunks)

    async def _entities(self, tenant_id: UUID, chunks: Sequence[DictRow]) -> list[dict[str, Any]]:
        """Return the rows of the index, by the names of their fields."""
        texts = [text_to_index(chunk["title"], chunk["heading"], chunk["text"]) for chunk in chunks]
        vectors = await self._embedder.embed_documents(texts)
        return [
            {
                "id": str(chunk["chunk_id"]),
                "tenant_id": str(tenant_id),
                "base_id": str(chunk["base_id"]),
                "document_id": str(chunk["document_id"]),
                "version": chunk["version"],
                "terms": chunk["terms"],
                "embedding": vector.tolist(),
            }
            for chunk, vector in zip(chunks, vectors, strict=True)
        ]

    async def _mark(self, tenant_id: UUID, chunk_ids: Sequence[UUID]) -> set[UUID]:
        values = {"tenant_id": tenant_id, "chunk_ids": list(chunk_ids)}
        rows = await self._database.fetch(tenant_id, sql.INDEXED, values, tuple_row)
        return {row[0] for row in rows}

    async def _lost(self) -> None:
        """Index everything again, because a missing index is new or was lost."""
        for tenant_id in await self._database.tenants():
            async with self._database.tenant(tenant_id) as connection:
                await connection.execute(sql.NOT_INDEXED, {"tenant_id": tenant_id, "base_ids": None})

    async def _forget(self, job: RunningJob, *, base_id: UUID, document_ids: list[UUID]) -> None:
        left = "removed passages are left in the index"
        ids: dict[str, Any] = {"base_id": base_id, "document_ids": list(document_ids)}
        async with (
            self._jobs.until_done(job, FORGET_PASSAGES, left, **ids),
            # A process that writes now may have read removed chunks, so it must finish first.
            self._database.only_one(WRITING, wait=True),
        ):
            of_base = f'base_id == "{base_id}"'
            values = {"tenant_id": job.tenant_id, "document_ids": list(document_ids)}
            rows = await self._database.fetch(job.tenant_id, sql.VERSIONS, values, tuple_row)
            # Of a replaced document the present version stays.
            older = {row[0]: f" and version < {row[1]}" for row in rows}
            filters = [f'{of_base} and document_id == "{each}"{older.get(each, "")}' for each in document_ids]
            await self._index.delete(NAME, filters or [of_base])

    async def count(self) -> int:
        """Return the number of chunks of all tenants."""
        count = 0
        for tenant_id in await self._database.tenants():
            rows = await self._database.fetch(tenant_id, sql.COUNT, {"tenant_id": tenant_id}, tuple_row)
            count += rows[0][0]
        return count

    async def begin_anew(self) -> None:
        """Remove the index, so that everything is indexed in the background."""
        async with self._database.only_one(WRITING, wait=True):
            await remove(self._index.milvus, NAME)
            await self._lost()

    async def rebuild(self, on_progress: Callable[[int], None], *, everything: bool = True) -> int:
        """Rebuild the whole index from PostgreSQL while it is in use; return the number of chunks.

        A new index is filled beside the present one, and replaces it when complete. If that is interrupted, it can
        begin again without harm.

        Args:
            on_progress: Called with the number of chunks added since the last call.
            everything: Whether to rebuild even if the last check found the index current.

        Raises:
            Unavailable: Milvus, the embedding endpoint or the database does not answer.
        """
        if not everything and not self._index.outdated:
            on_progress(await self.count())
            return 0
        async with self._database.only_one(WRITING, wait=True):
            # Read under the lock: later chunks are indexed once the new collection is in place.
            tenants = await self._database.tenants()
            if not await self.count():
                await remove(self._index.milvus, NAME)
                return 0
            fresh = await self._index.begin_again(NAME)
            done: list[tuple[UUID, list[UUID]]] = []
            for tenant_id in tenants:
                async for chunks in self._all_of(tenant_id):
                    await fresh.add(await self._entities(tenant_id, chunks))
                    done.append((tenant_id, [chunk["chunk_id"] for chunk in chunks]))
                    on_progress(len(chunks))
            await fresh.put_in_place()
            await self._index.warm()
            for tenant_id, ids in done:
                if stale := set(ids) - await self._mark(tenant_id, ids):
                    await self._index.delete(NAME, any_of("id", stale))
        return sum(len(ids) for _, ids in done)

    async def _all_of(self, tenant_id: UUID) -> AsyncIterator[list[DictRow]]:
        last = _FIRST
        while True:
            values = {"tenant_id": tenant_id, "after": last, "limit": _CHUNKS_AT_ONCE}
            chunks = await self._database.fetch(tenant_id, sql.ALL, values, dict_row)
            if not chunks:
                return
            last = chunks[-1]["chunk_id"]
            yield chunks
