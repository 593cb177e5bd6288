"""The index of knowledge bases in Milvus: what finds their chunks by words and by meaning.

It can be wiped and made again from PostgreSQL, and nothing is ever shown from it: it answers with ids.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from services.errors import Unavailable
from services.platform.breaker import CircuitBreaker
from services.platform.milvus import CollectionMissing, Milvus
from services.search.collection import compare_model, make_collection
from services.search.shard import NewCollection, loaded, new_name, remove

if TYPE_CHECKING:
    from pymilvus import CollectionSchema

NAME = "kb_chunks"

_FLUSH_AFTER_ROWS = 64
"""Rows that are not flushed are looked through one by one in every search."""
_DELETED_AT_ONCE = 200
_CHECK_S = 5.0
_WARM_S = 60.0


@dataclass(frozen=True)
class ChunkRow:
    """A chunk as it is indexed."""

    chunk_id: UUID
    tenant_id: UUID
    base_id: UUID
    document_id: UUID
    version: int
    """Of its document."""
    terms: str
    embedding: Sequence[float]


@dataclass(frozen=True)
class ChunkHit:
    """A chunk that was found; `score` is of cosine similarity, or of BM25 within the collection."""

    chunk_id: UUID
    score: float


def as_entity(row: ChunkRow) -> dict[str, Any]:
    """The row's fields by their names in the collection."""
    return {
        "id": str(row.chunk_id),
        "tenant_id": str(row.tenant_id),
        "base_id": str(row.base_id),
        "document_id": str(row.document_id),
        "version": row.version,
        "terms": row.terms,
        "embedding": [float(value) for value in row.embedding],
    }


class ChunkIndex:
    """Adds, finds and removes chunks."""

    def __init__(self, milvus: Milvus, *, model: str, dimension: int) -> None:
        """Take whose embeddings are indexed, and how many dimensions they have."""
        self._milvus = milvus
        self._model = model
        self._dimension = dimension
        self._unflushed = 0
        self._hurried = CircuitBreaker(
            "Milvus in time", counts=lambda error: not isinstance(error, CollectionMissing)
        )

    async def check(self) -> None:
        """See that what is there was made with this embedding model.

        Raises:
            ConfigurationError: it was made with another; says what to do.
            Unavailable: Milvus does not answer.
        """
        try:
            async with self._milvus.use() as client, asyncio.timeout(_CHECK_S):
                found = await client.describe_collection(NAME)
        except CollectionMissing:
            return
        self._compare(found)

    async def search(
        self,
        tenant_id: UUID,
        base_id: UUID | None,
        terms: Sequence[str],
        vector: Sequence[float],
        limit: int,
        *,
        within_s: float,
    ) -> tuple[list[ChunkHit], list[ChunkHit]]:
        """Chunks of a base (None = of all) by words and by meaning, the best first.

        Raises:
            CollectionMissing: the index is not there.
            Unavailable: Milvus does not answer, or not in time.
        """
        chosen = f'tenant_id == "{tenant_id}"' + (f' and base_id == "{base_id}"' if base_id else "")
        words = [" ".join(terms)] if terms else []
        vectors = [list(vector)] if vector else []
        cosine = {"metric_type": "COSINE", "params": {"ef": 2 * limit}}

        async def both() -> tuple[list[ChunkHit], list[ChunkHit]]:
            return await asyncio.gather(
                self._find(chosen, "sparse", words, {"metric_type": "BM25"}, limit),
                self._find(chosen, "embedding", vectors, cosine, limit),
            )

        async def search() -> tuple[list[ChunkHit], list[ChunkHit]]:
            try:
                return await both()
            except CollectionMissing:  # another may just have taken its place
                return await both()

        async with self._hurried.use():
            try:
                return await asyncio.wait_for(search(), within_s)
            except TimeoutError:
                raise Unavailable("Milvus does not answer in time.") from None

    async def _find(
        self, chosen: str, field: str, data: list[Any], params: dict[str, Any], limit: int
    ) -> list[ChunkHit]:
        if not data:
            return []
        async with self._milvus.use() as client:
            ask = partial(client.search, NAME, data, chosen, limit, ["id"], params, anns_field=field)
            found = await loaded(client, NAME, ask)
        return [ChunkHit(UUID(each["id"]), float(each["distance"])) for each in found[0]]

    async def upsert(self, rows: Sequence[ChunkRow], *, lost: Callable[[], Awaitable[None]]) -> None:
        """Add or replace chunks.

        Args:
            rows: the chunks.
            lost: called where the index is not there, before it is made: what it may have held is lost.

        Raises:
            ConfigurationError: the index was made with another embedding model.
            Unavailable: Milvus does not answer.
        """
        entities = [as_entity(row) for row in rows]
        try:
            await self._write(entities)
        except CollectionMissing:
            await lost()
            physical = await self._make()
            async with self._milvus.use() as client:
                await client.create_alias(physical, NAME)
            await self._write(entities)
        self._unflushed += len(entities)
        if self._unflushed >= _FLUSH_AFTER_ROWS:
            await self.flush()

    async def flush(self) -> None:
        """Make the newest rows part of the indexes.

        Raises:
            Unavailable: Milvus does not answer.
        """
        async with self._milvus.use() as client:
            await client.flush(NAME)
        self._unflushed = 0

    async def warm(self) -> None:
        """Let Milvus load what was written, with a search in no hurry: the first one behind it takes seconds.

        Raises:
            CollectionMissing: the index is not there.
            Unavailable: Milvus does not answer.
        """
        nobodys = f'base_id == "{UUID(int=0)}"'
        vector = [1.0, *[0.0] * (self._dimension - 1)]
        try:
            async with asyncio.timeout(_WARM_S):
                await self._find(nobodys, "sparse", ["a"], {"metric_type": "BM25"}, 1)
                await self._find(nobodys, "embedding", [vector], {"metric_type": "COSINE", "params": {"ef": 1}}, 1)
        except TimeoutError:
            raise Unavailable("Milvus does not answer in time.") from None

    async def forget_chunks(self, chunk_ids: Iterable[UUID]) -> None:
        """Remove these chunks; raises as `flush`."""
        ids = [f'"{chunk_id}"' for chunk_id in chunk_ids]
        groups = (ids[start : start + _DELETED_AT_ONCE] for start in range(0, len(ids), _DELETED_AT_ONCE))
        await self._delete(f"id in [{', '.join(group)}]" for group in groups)

    async def forget_document(self, base_id: UUID, document_id: UUID, *, before: int | None) -> None:
        """Remove a document's chunks, or those of its versions before this one; raises as `flush`."""
        older = "" if before is None else f" and version < {before}"
        await self._delete([f'base_id == "{base_id}" and document_id == "{document_id}"{older}'])

    async def forget_base(self, base_id: UUID) -> None:
        """Remove a base's chunks; raises as `flush`."""
        await self._delete([f'base_id == "{base_id}"'])

    async def begin_again(self) -> NewCollection:
        """Make an empty collection beside the present one, to be filled and then put in its place.

        Raises:
            Unavailable: Milvus does not answer.
        """
        return NewCollection(self._milvus, NAME, await self._make())

    async def remove(self) -> None:
        """Remove the index; raises as `begin_again`."""
        await remove(self._milvus, NAME)

    async def _write(self, entities: list[dict[str, Any]]) -> None:
        async with self._milvus.use() as client:
            found = await client.describe_collection(NAME)
        self._compare(found)
        async with self._milvus.use() as client:
            await client.upsert(NAME, entities)

    async def _delete(self, filters: Iterable[str]) -> None:
        try:
            async with self._milvus.use() as client:
                for chosen in filters:
                    await loaded(client, NAME, partial(client.delete, NAME, filter=chosen))
        except CollectionMissing:
            return

    def _compare(self, found: dict[str, Any]) -> None:
        compare_model(found.get("properties") or {}, self._model, self._dimension, of="knowledge bases")

    async def _make(self) -> str:
        physical = new_name(NAME)
        make = partial(
            make_collection,
            name=physical,
            model=self._model,
            dimension=self._dimension,
            add_own_fields=_add_fields_of_chunk,
        )
        await self._milvus.in_thread(make)
        return physical


def _add_fields_of_chunk(schema: "CollectionSchema") -> None:
    from pymilvus import DataType  # noqa: PLC0415 — imported by now

    schema.add_field("tenant_id", DataType.VARCHAR, max_length=36)
    schema.add_field("base_id", DataType.VARCHAR, max_length=36, is_partition_key=True)
    schema.add_field("document_id", DataType.VARCHAR, max_length=36)
    schema.add_field("version", DataType.INT64)
