"""Search knowledge bases for passages that answer a question.

The index answers with ids; what is ranked and shown is read from PostgreSQL, so that nothing that was removed or
replaced, or is another tenant's, can come up. What is not indexed yet is found by its words.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from psycopg.rows import class_row

from services.errors import DatabaseUnavailable, Unavailable
from services.knowledge import chunk_sql as sql
from services.knowledge.document_store import DocumentStore
from services.knowledge.evidence import concepts_in
from services.knowledge.index import ChunkHit, ChunkIndex
from services.knowledge.ranking import Candidate, Judged, judged, relevant
from services.llm.embeddings import Embedder
from services.platform import span_names as names
from services.platform.milvus import CollectionMissing
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.platform.threads import beside_the_loop
from services.platform.tracing import span
from services.search.embedding_quality import EmbeddingQuality
from services.text.language import Language
from services.text.tokenizer import is_weak, terms
from state.conversation import AgentType
from state.prompt import Passage

Quality = Callable[[], Awaitable[Mapping[Language, EmbeddingQuality]]]

_MOST_CHARACTERS = 2_000
"""Characters of a question that are read."""
_MOST_TERMS = 120
_LONG = 5_000
"""Characters of a question and its passages from which a thread ranks them."""
_MOST_TELLING_TERMS = 60
_DEPTH = 50
_BY_WORDS = 30
_LOOKED_THROUGH = 5_000
"""Chunks compared one by one when the index is not available."""
_NEAR_THE_BEST = 0.25
"""Score from which on a passage is one of the best that are given in any case."""
_EMBEDDING_S = 1.5
_MILVUS_S = 1.5

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Found:
    """Result of a search."""

    passages: list[Passage] = field(default_factory=list)
    """Best first."""
    degraded: list[str] = field(default_factory=list)
    """`milvus` or `embedding` if it did not answer; the search used the rest."""


@dataclass(frozen=True)
class _Shown:
    chunk_id: UUID
    document_id: UUID
    document: str
    position: int
    heading: str
    page: int | None
    text: str
    terms: str
    waiting: bool


@dataclass
class _Asked:
    """A question to a base, and the faults met while answering it."""

    tenant_id: UUID
    base_id: UUID
    words: list[str]
    telling: list[str]
    """Informative words, for comparing chunks one by one."""
    vector: list[float]
    by_words: bool
    degraded: list[str] = field(default_factory=list)

    def values(self, hits: Sequence[UUID] = ()) -> dict[str, object]:
        return {
            "tenant_id": self.tenant_id,
            "base_id": self.base_id,
            "chunk_ids": list(hits),
            # No term holds a quotation mark or any other sign.
            "terms": [f"'{word}'" for word in self.telling],
            "limit": _BY_WORDS,
            "most": _LOOKED_THROUGH,
        }


class KnowledgeSearch:
    """Finds passages."""

    def __init__(
        self, database: Database, store: DocumentStore, index: ChunkIndex, embedder: Embedder, quality: Quality
    ) -> None:
        """Take the embedding's measured quality by language."""
        self._database = database
        self._store = store
        self._index = index
        self._embedder = embedder
        self._quality = quality

    async def search(
        self,
        tenant_id: UUID,
        prefix: str,
        query: str,
        *,
        vector: Sequence[float] | None = None,
        agent_type: AgentType = "hybrid_agent",
        limit: int = 8,
        least: int = 0,
    ) -> Found:
        """Passages of a base that answer a question; empty if there are none, or no such base.

        Args:
            tenant_id: whose base it is.
            prefix: of the base.
            query: the question.
            vector: its embedding, if that is known already.
            agent_type: `hybrid_agent` searches by words and by meaning, `naive_rag_agent` by meaning alone.
            limit: how many passages at the most.
            least: how many of the best are given even where nothing shows by itself that they are relevant, unless
                they are far behind the first: for a base that probably has the answer.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        with span(f"retrieval {prefix}", {names.OPERATION: "retrieval", names.DATA_SOURCE: prefix}) as current:
            found = await self._search(tenant_id, prefix, query, vector, agent_type, limit, least)
            if current.is_recording():
                current.set_attribute(names.DEGRADED, found.degraded)
            return found

    async def _search(
        self,
        tenant_id: UUID,
        prefix: str,
        query: str,
        vector: Sequence[float] | None,
        agent_type: AgentType,
        limit: int,
        least: int,
    ) -> Found:
        question = query[:_MOST_CHARACTERS]
        base_id = await self._store.base_id(tenant_id, prefix)
        words = list(dict.fromkeys(terms(question)))[:_MOST_TERMS]
        if base_id is None or not words:
            return Found()
        telling = [word for word in words if len(word) > 1 and not is_weak(word)] or words
        asked = _Asked(
            tenant_id, base_id, words, telling[:_MOST_TELLING_TERMS], [], by_words=agent_type == "hybrid_agent"
        )
        asked.vector = list(vector) if vector else await self._embedded(question, asked)
        quality = await self._quality()
        shown, cosines = await self._find(asked)
        candidates = [
            Candidate(
                one.chunk_id,
                tuple(one.terms.split()),
                cosines.get(one.chunk_id),
                one.waiting,
                concepts_in(f"{one.heading}\n{one.text}"),
            )
            for one in shown.values()
        ]

        def ranked() -> list[Judged]:
            found = judged(question, candidates, quality, by_words=asked.by_words)
            near = [one for one in found[:least] if one.score >= _NEAR_THE_BEST]
            fitting = {one.chunk_id for one in (*relevant(found, question, quality), *near)}
            return [one for one in found if one.chunk_id in fitting][:limit]

        characters = len(question) + sum(len(one.terms) for one in shown.values())
        best = await beside_the_loop(ranked, characters=characters, most=_LONG)
        return Found([_passage(shown[one.chunk_id], prefix, one.score) for one in best], asked.degraded)

    async def _embedded(self, question: str, asked: _Asked) -> list[float]:
        try:
            async with asyncio.timeout(_EMBEDDING_S):
                return await self._embedder.embed_query(question)
        except (Unavailable, TimeoutError):
            asked.degraded.append("embedding")
            return []

    async def _find(self, asked: _Asked) -> tuple[dict[UUID, _Shown], dict[UUID, float]]:
        """The current text of the hits, with similarities."""
        by_words, by_meaning, complete = await self._ask_index(asked)
        shown = await self._read(asked, [*by_words, *by_meaning], complete=complete)
        hits = {hit.chunk_id for hit in (*by_words, *by_meaning)}
        if complete and not hits <= shown.keys():
            # Chunks were replaced or removed: their successors may be in the index by now.
            by_words, by_meaning, _ = await self._ask_index(asked)
            shown = await self._read(asked, [*by_words, *by_meaning], complete=False)
        return shown, {hit.chunk_id: hit.score for hit in by_meaning}

    async def _ask_index(self, asked: _Asked) -> tuple[list[ChunkHit], list[ChunkHit], bool]:
        """Hits of the index by words and meaning, and whether it answered completely."""
        # Without an embedding, search by words.
        words = asked.words if asked.by_words or not asked.vector else []
        try:
            found = await self._index.search(
                asked.tenant_id, asked.base_id, words, asked.vector, _DEPTH, within_s=_MILVUS_S
            )
        except CollectionMissing:  # it was lost, or nothing was ever in it
            if await self._index_again(asked):
                asked.degraded.append("milvus")
            return [], [], False
        except DatabaseUnavailable:
            raise
        except Unavailable as error:
            if "milvus" not in asked.degraded:
                log.warning("knowledge is searched without its index", reason=error.message)
                asked.degraded.append("milvus")
            return [], [], False
        return *found, True

    async def _read(self, asked: _Asked, hits: Sequence[ChunkHit], *, complete: bool) -> dict[UUID, _Shown]:
        """The hits, and chunks that only PostgreSQL finds by words, in one snapshot."""
        values = asked.values([hit.chunk_id for hit in hits])
        others = sql.WAITING_BY_WORDS if complete else sql.ALL_BY_WORDS
        found, beside = await self._database.fetch_each(
            asked.tenant_id,
            Query(sql.FOUND, values, class_row(_Shown)),
            Query(others, values, class_row(_Shown)),
        )
        return {one.chunk_id: one for one in (*found, *beside)}

    async def _index_again(self, asked: _Asked) -> bool:
        """Have the base indexed again; return whether any of it was indexed."""
        values = {"tenant_id": asked.tenant_id, "base_id": asked.base_id}
        async with self._database.tenant(asked.tenant_id) as connection:
            return (await connection.execute(sql.BASE_NOT_INDEXED, values)).rowcount > 0


def _passage(one: _Shown, prefix: str, score: float) -> Passage:
    return Passage(
        kb_prefix=prefix,
        chunk_id=str(one.chunk_id),
        document_id=str(one.document_id),
        document=one.document,
        position=one.position,
        heading=one.heading,
        page=one.page,
        text=one.text,
        score=round(score, 4),
    )
