"""The index of knowledge bases in Milvus: finds chunks by words and by meaning.

It can be wiped and made again from PostgreSQL, and nothing is ever shown from it: it answers with ids.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from services.platform.milvus import Milvus, pymilvus
from services.search.shard import NewCollection, remove
from services.search.vector_index import Hits, VectorIndex, any_of

if TYPE_CHECKING:
    from pymilvus import CollectionSchema

NAME = "kb_chunks"

_WARM_S = 60.0


@dataclass(frozen=True)
class ChunkRow:
    """A chunk in the index."""

    chunk_id: UUID
    tenant_id: UUID
    base_id: UUID
    document_id: UUID
    version: int
    """Version of its document."""
    terms: str
    embedding: Sequence[float]


@dataclass(frozen=True)
class ChunkHit:
    """A hit; `score` is the cosine similarity, or BM25 within the collection."""

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


def vector_index(milvus: Milvus, *, model: str, dimension: int) -> VectorIndex:
    """Return the collection of chunks, for an embedding model and its dimensions."""
    return VectorIndex(
        milvus,
        model=model,
        dimension=dimension,
        of="knowledge bases",
        prefix=NAME,
        add_own_fields=_add_fields_of_chunk,
    )


class ChunkIndex:
    """Adds, finds and removes chunks; `Unavailable` where Milvus does not answer."""

    def __init__(self, milvus: Milvus, *, model: str, dimension: int) -> None:
        """Take the embedding model's name and dimensions."""
        self._milvus = milvus
        self._dimension = dimension
        self._vectors = vector_index(milvus, model=model, dimension=dimension)

    @property
    def is_outdated(self) -> bool:
        """Whether the last check found rows of another embedding model or an older version."""
        return self._vectors.is_outdated

    async def check(self) -> None:
        """Check whether the present index was made with this embedding model and by this version."""
        await self._vectors.check()

    async def search(
        self,
        tenant_id: UUID,
        base_ids: Collection[UUID],
        terms: Sequence[str],
        vector: Sequence[float],
        limit: int,
        *,
        within_s: float,
    ) -> tuple[list[ChunkHit], list[ChunkHit]]:
        """Chunks of some bases by words and by meaning, the best first.

        Raises:
            CollectionMissing: the index is not there.
            Unavailable: Milvus does not answer in time.
        """
        of_bases = ", ".join(f'"{each}"' for each in base_ids)
        chosen = f'tenant_id == "{tenant_id}" and base_id in [{of_bases}]'
        vectors = [list(vector)] if vector else []
        words, meaning = await self._vectors.search(
            NAME, chosen, [" ".join(terms)], vectors, (limit, limit), ["id"], within_s=within_s
        )
        return _hits(words), _hits(meaning)

    async def upsert(self, rows: Sequence[ChunkRow], *, lost: Callable[[], Awaitable[None]]) -> None:
        """Add or replace chunks.

        Args:
            lost: called where the index is not there, before it is made: what it may have held is lost.

        Raises:
            Unavailable: the index holds embeddings of another model.
        """
        await self._vectors.upsert(NAME, [as_entity(row) for row in rows], lost=lost)

    async def warm(self) -> None:
        """Make Milvus load new rows by a search, which takes seconds the first time.

        Raises:
            CollectionMissing: the index is not there.
        """
        nobodys = f'base_id == "{UUID(int=0)}"'
        vector = [1.0, *[0.0] * (self._dimension - 1)]
        cosine = {"metric_type": "COSINE", "params": {"ef": 1}}
        for field, data, params in (("sparse", ["a"], {"metric_type": "BM25"}), ("embedding", [vector], cosine)):
            await self._vectors.find(NAME, nobodys, field, data, params, 1, ["id"], timeout_s=_WARM_S)

    async def forget_chunks(self, chunk_ids: Iterable[UUID]) -> None:
        """Remove these chunks."""
        await self._vectors.delete(NAME, any_of("id", chunk_ids))

    async def forget_document(self, base_id: UUID, document_id: UUID, *, before: int | None) -> None:
        """Remove a document's chunks, or those of its versions before this one."""
        older = "" if before is None else f" and version < {before}"
        await self._vectors.delete(NAME, [f'base_id == "{base_id}" and document_id == "{document_id}"{older}'])

    async def forget_base(self, base_id: UUID) -> None:
        """Remove a base's chunks."""
        await self._vectors.delete(NAME, [f'base_id == "{base_id}"'])

    async def begin_again(self) -> NewCollection:
        """Create an empty collection beside the present one, to fill and then swap in."""
        return await self._vectors.begin_again(NAME)

    async def remove(self) -> None:
        """Remove the index."""
        await remove(self._milvus, NAME)


def _hits(found: Hits) -> list[ChunkHit]:
    return [ChunkHit(UUID(each["id"]), float(each["distance"])) for hits in found for each in hits]


def _add_fields_of_chunk(schema: "CollectionSchema") -> None:
    kinds = pymilvus().DataType
    schema.add_field("tenant_id", kinds.VARCHAR, max_length=36)
    schema.add_field("base_id", kinds.VARCHAR, max_length=36, is_partition_key=True)
    schema.add_field("document_id", kinds.VARCHAR, max_length=36)
    schema.add_field("version", kinds.INT64)
