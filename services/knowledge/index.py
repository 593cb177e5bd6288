"""The index of knowledge bases in Milvus: finds chunks by words and by meaning.

It can be deleted and rebuilt from PostgreSQL. It returns ids only, so nothing is ever shown from it.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from services.platform.milvus import Milvus, pymilvus
from services.search.vector_index import VectorIndex

if TYPE_CHECKING:
    from pymilvus import CollectionSchema

NAME = "kb_chunks"

_WARM_S = 60.0


class ChunkIndex(VectorIndex):
    """The collection of chunks, named `NAME`; methods raise `Unavailable` if Milvus does not answer."""

    def __init__(self, milvus: Milvus, *, model: str, dimension: int) -> None:
        """Take the embedding model's name and dimensions."""
        super().__init__(
            milvus,
            model=model,
            dimension=dimension,
            of="knowledge bases",
            prefix=NAME,
            add_own_fields=_add_fields_of_chunk,
        )
        self._nowhere = [1.0, *[0.0] * (dimension - 1)]

    async def find_chunks(
        self,
        tenant_id: UUID,
        base_ids: Collection[UUID],
        terms: Sequence[str],
        vector: Sequence[float],
        limit: int,
        *,
        within_s: float,
    ) -> tuple[list[UUID], dict[UUID, float]]:
        """Ids of chunks of some bases, found by words, and found by meaning with their cosines. Raises
        `CollectionMissing` if the index is not there, and `Unavailable` if Milvus does not answer in time."""
        of_bases = ", ".join(f'"{each}"' for each in base_ids)
        chosen = f'tenant_id == "{tenant_id}" and base_id in [{of_bases}]'
        vectors = [list(vector)] if vector else []
        words, meaning = await self.search(
            NAME, chosen, [" ".join(terms)], vectors, (limit, limit), ["id"], within_s=within_s
        )
        return (
            [UUID(each["id"]) for hits in words for each in hits],
            {UUID(each["id"]): float(each["distance"]) for hits in meaning for each in hits},
        )

    async def warm(self) -> None:
        """Make Milvus load new rows by a search, which takes seconds the first time. Raises `CollectionMissing`
        if the index is not there."""
        nobodys = f'base_id == "{UUID(int=0)}"'
        cosine = {"metric_type": "COSINE", "params": {"ef": 1}}
        await self.find(NAME, nobodys, "sparse", ["a"], {"metric_type": "BM25"}, 1, ["id"], timeout_s=_WARM_S)
        await self.find(NAME, nobodys, "embedding", [self._nowhere], cosine, 1, ["id"], timeout_s=_WARM_S)


def _add_fields_of_chunk(schema: "CollectionSchema") -> None:
    kinds = pymilvus().DataType
    schema.add_field("tenant_id", kinds.VARCHAR, max_length=36)
    schema.add_field("base_id", kinds.VARCHAR, max_length=36, is_partition_key=True)
    schema.add_field("document_id", kinds.VARCHAR, max_length=36)
    schema.add_field("version", kinds.INT64)
