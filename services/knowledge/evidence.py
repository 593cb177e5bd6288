"""Evidence for routing: one search over all bases of a tenant shows which have passages for a message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from psycopg.rows import class_row

from services.knowledge import chunk_sql as sql
from services.knowledge.index import ChunkIndex
from services.knowledge.word_forms import Vocabulary, with_forms
from services.platform.milvus import CollectionMissing
from services.platform.postgres import Database
from services.platform.threads import beside_the_loop
from services.text.caches import text_cache
from services.text.concepts import concepts, telling_concepts, words_for
from services.text.tokenizer import terms

_DEPTH = 24
_MOST_CHARACTERS = 2_000
_MOST_TERMS = 120
_LONG = 5_000
"""Characters of passages from which a thread reads them."""
_MOST_KNOWN = 4_000
"""Passages whose concepts this process caches."""
_WITHIN_S = 0.3


@dataclass(frozen=True)
class Evidence:
    """A passage found."""

    prefix: str
    """Prefix of its base."""
    terms: tuple[str, ...]
    concepts: Mapping[str, float] = field(default_factory=dict)
    """The concepts in it, with their weights (`services.text.concepts`)."""

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Its terms and the concepts that it names, for comparison with a message."""
        return Vocabulary.of(self.terms, [concept for concept, weight in self.concepts.items() if weight == 1.0])


@dataclass(frozen=True)
class _Held:
    chunk_id: UUID
    prefix: str
    heading: str
    text: str
    terms: str


class DocumentEvidence:
    """Searches all bases at once."""

    def __init__(self, database: Database, index: ChunkIndex) -> None:
        self._database = database
        self._index = index

    async def of(self, tenant_id: UUID, message: str, vector: Sequence[float] | None) -> list[Evidence]:
        """The passages nearest to a message by words and meaning; none while the index is being built.

        Raises:
            Unavailable: Milvus or the database does not answer, or not in time.
        """
        message = message[:_MOST_CHARACTERS]
        words = with_forms(dict.fromkeys((*terms(message), *words_for(telling_concepts(message)))))[:_MOST_TERMS]
        if not words:
            return []
        try:
            by_words, by_meaning = await self._index.search(
                tenant_id, None, words, vector or (), _DEPTH, within_s=_WITHIN_S
            )
        except CollectionMissing:
            return []
        values = {"tenant_id": tenant_id, "chunk_ids": [hit.chunk_id for hit in (*by_words, *by_meaning)]}
        held = await self._database.fetch(tenant_id, sql.FOUND_ANYWHERE, values, class_row(_Held))

        def read() -> list[Evidence]:
            return [
                Evidence(one.prefix, tuple(one.terms.split()), concepts_in(f"{one.heading}\n{one.text}"))
                for one in held
            ]

        return await beside_the_loop(read, characters=sum(len(one.text) for one in held), most=_LONG)


@text_cache(_MOST_KNOWN)
def concepts_in(text: str) -> Mapping[str, float]:
    """The concepts of a passage, with their weights."""
    return concepts(text)
