"""Which bases have a passage that speaks of what a message asks: one search over all bases of a tenant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from services.knowledge import chunk_sql as sql
from services.knowledge.index import ChunkIndex
from services.knowledge.ranking import Candidate, judged
from services.memory.terms import informative_terms, terms
from services.platform.milvus import CollectionMissing
from services.platform.postgres import Database

_DEPTH = 12
_MOST_TERMS = 60
_WITHIN_S = 0.3


@dataclass(frozen=True)
class Evidence:
    """The passage of a base that speaks most of what is asked."""

    coverage: float
    """The share of what is asked, by weight, of which it speaks; 0 to 1."""
    shared: int
    """How many informative terms of the message it has."""


@dataclass(frozen=True)
class _Held:
    chunk_id: UUID
    prefix: str
    terms: str


class DocumentEvidence:
    """Looks for passages in all bases at once."""

    def __init__(self, database: Database, index: ChunkIndex) -> None:
        self._database = database
        self._index = index

    async def of(self, tenant_id: UUID, message: str, vector: Sequence[float] | None) -> Mapping[str, Evidence]:
        """By prefix the best passage for a message; nothing while the index is being made.

        Raises:
            Unavailable: Milvus or the database does not answer, or not in time.
        """
        words = list(dict.fromkeys(terms(message)))[:_MOST_TERMS]
        if not words:
            return {}
        try:
            by_words, by_meaning = await self._index.search(
                tenant_id, None, words, vector or (), _DEPTH, within_s=_WITHIN_S
            )
        except CollectionMissing:
            return {}
        values = {"tenant_id": tenant_id, "chunk_ids": [hit.chunk_id for hit in (*by_words, *by_meaning)]}
        held = await self._database.fetch(tenant_id, sql.FOUND_ANYWHERE, values, class_row(_Held))
        prefixes = {one.chunk_id: one.prefix for one in held}
        found = {one.chunk_id: frozenset(one.terms.split()) for one in held}
        candidates = [Candidate(one.chunk_id, tuple(one.terms.split()), None) for one in held]
        about = informative_terms(message)
        best: dict[str, Evidence] = {}
        for one in judged(message, candidates, {}, by_words=True):
            prefix = prefixes[one.chunk_id]
            evidence = Evidence(one.coverage, len(about & found[one.chunk_id]))
            if prefix not in best or evidence.coverage > best[prefix].coverage:
                best[prefix] = evidence
        return best
