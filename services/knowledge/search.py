"""Searches the knowledge bases of a tenant for passages that answer a message: all of them, with one threshold.

The index answers with ids. What is ranked and shown is read from PostgreSQL, so nothing can come up that was
removed, was replaced, or belongs to another tenant. Chunks that are not indexed yet are found by their words.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import structlog
from psycopg.rows import class_row

from services.errors import DatabaseUnavailable, Unavailable
from services.knowledge import chunk_sql as sql
from services.knowledge.index import ChunkIndex
from services.knowledge.passage_scores import NAMED, Candidate, probabilities, shown
from services.llm.embeddings import Embedder
from services.platform import span_names as names
from services.platform.milvus import CollectionMissing
from services.platform.patience import beside_the_loop
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.platform.tracing import span
from services.search.embedding_quality import EmbeddingQuality, measured, probe_texts
from services.search.queries import Heads, make_query
from services.text.language import Language, language_of
from services.text.tokenizer import is_weak, terms
from state.prompt import Passage
from state.turn import AgentType

_MOST_CHARACTERS = 2_000
"""Maximum characters of a question that are read."""
_MOST_TERMS = 120
_LONG = 5_000
"""Minimum characters of a question and its passages for which a thread ranks them."""
_MOST_TELLING_TERMS = 60
_DEPTH = 50
_BY_WORDS = 30
_NEWLY_GIVEN = 4
"""Number of passages that are shown from the beginning of documents that came with the message."""
_GIVEN_SCORE = 0.5
_LOOKED_THROUGH = 5_000
"""Maximum chunks compared one by one when the index is not available."""
_EMBEDDING_S = 1.5
_BELIEVED = 0.5
"""Minimum quality of an embedding for it to decide."""
_MILVUS_S = 1.5

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Found:
    """Result of a search."""

    passages: list[Passage] = field(default_factory=list)
    """Passages, best first."""
    base: "Answering | None" = None
    """The base that was named, or that of the best passage."""
    degraded: list[str] = field(default_factory=list)
    """`milvus` or `embedding` if it did not answer; the search used the rest."""


@dataclass(frozen=True)
class Answering:
    """A base, and its rules for answers from it."""

    id: UUID
    prefix: str
    keywords: list[str]
    handler: str | None
    system_prompt: str
    of_conversation: bool
    """Whether its documents were given in the conversation itself."""


@dataclass(frozen=True)
class _Shown:
    chunk_id: UUID
    base_id: UUID
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
    base_ids: list[UUID]
    words: list[str]
    telling: list[str]
    """Informative words, for comparing chunks one by one."""
    vector: list[float]
    by_words: bool
    degraded: list[str] = field(default_factory=list)

    def values(self, hits: Sequence[UUID] = ()) -> dict[str, object]:
        return {
            "tenant_id": self.tenant_id,
            "base_ids": self.base_ids,
            "chunk_ids": list(hits),
            # No term holds a quotation mark or another sign.
            "terms": [f"'{word}'" for word in self.telling],
            "limit": _BY_WORDS,
            "most": _LOOKED_THROUGH,
        }


class KnowledgeSearch:
    """Finds passages."""

    def __init__(self, database: Database, index: ChunkIndex, embedder: Embedder) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self._quality: asyncio.Task[dict[Language, EmbeddingQuality]] | None = None

    async def close(self) -> None:
        """Stop the background work."""
        if self._quality is not None:
            self._quality.cancel()
            await asyncio.wait({self._quality})

    async def search(
        self,
        tenant_id: UUID,
        prefix: str | None,
        query: str,
        *,
        conversation_id: UUID | None = None,
        vector: Sequence[float] | None = None,
        agent_type: AgentType = "hybrid_agent",
        limit: int = 8,
    ) -> Found:
        """Return passages that answer a message; empty if there are none, or no such base.

        Args:
            prefix: Prefix of the base; None = all bases.
            conversation_id: Conversation whose own documents are searched too; those added since its last answer
                are found whatever the message asks.
            vector: Embedding of the query, if it is already known.
            agent_type: `hybrid_agent` searches by words and by meaning, `naive_rag_agent` only by meaning.
        """
        about = {names.OPERATION: "retrieval", names.DATA_SOURCE: prefix or "all"}
        with span(f"retrieval {prefix or 'of all bases'}", about) as current:
            values: dict[str, object] = {
                "tenant_id": tenant_id,
                "prefix": prefix,
                "conversation_id": conversation_id,
            }
            read = await self._database.fetch(tenant_id, sql.ANSWERING, values, class_row(Answering))
            bases = {base.id: base for base in read}
            question = query[:_MOST_CHARACTERS]
            found = await self._ranked(tenant_id, prefix, question, bases, vector, agent_type, limit)
            own = next((base for base in read if base.of_conversation), None)
            if own and all(passage["kb_prefix"] != own.prefix for passage in found.passages):
                values |= {"base_id": own.id, "limit": _NEWLY_GIVEN}
                given = await self._database.fetch(tenant_id, sql.NEWLY_GIVEN, values, class_row(_Shown))
                passages = [*(_passage(each, own.prefix, _GIVEN_SCORE) for each in given), *found.passages][:limit]
                found = Found(passages, found.base or (own if given else None), found.degraded)
            if current.is_recording():
                current.set_attribute(names.DEGRADED, found.degraded)
            return found

    async def _ranked(
        self,
        tenant_id: UUID,
        prefix: str | None,
        question: str,
        bases: Mapping[UUID, Answering],
        vector: Sequence[float] | None,
        agent_type: AgentType,
        limit: int,
    ) -> Found:
        named = next((base for base in bases.values() if not base.of_conversation), None) if prefix else None
        words = list(dict.fromkeys(terms(question)))[:_MOST_TERMS]
        sought = make_query(question)
        if not bases or not words or sought is None:
            return Found(base=named)
        telling = [word for word in words if len(word) > 1 and not is_weak(word)] or words
        by_words = agent_type == "hybrid_agent"
        asked = _Asked(tenant_id, list(bases), words, telling[:_MOST_TELLING_TERMS], [], by_words=by_words)
        asked.vector = list(vector) if vector else await self._embedded(question, asked)
        floor = await self._floor(language_of([question])) if asked.vector else None
        read, cosines = await self._find(asked)
        keywords = {
            base.id: [term for keyword in base.keywords for term in terms(keyword)] for base in bases.values()
        }
        candidates = [
            Candidate(
                one.chunk_id,
                (*one.terms.split(), *keywords[one.base_id]),
                cosines.get(one.chunk_id),
                NAMED if named or bases[one.base_id].of_conversation else 0.0,
            )
            for one in read.values()
            if one.base_id in bases
        ]

        heads = Heads.of(self._embedder.model) if asked.vector else None
        asks_documents = heads.asks_documents.logit(asked.vector) if heads else None

        def ranked() -> list[tuple[UUID, float]]:
            likely = probabilities(
                words, candidates, floor, sought, asks_documents=asks_documents, by_words=by_words
            )
            return shown(candidates, likely)[:limit]

        best = await beside_the_loop(
            ranked, characters=len(question) + sum(len(one.terms) for one in read.values()), most=_LONG
        )
        passages = [
            _passage(read[chunk_id], bases[read[chunk_id].base_id].prefix, score) for chunk_id, score in best
        ]
        main = named or (bases[read[best[0][0]].base_id] if best else None)
        return Found(passages, main, asked.degraded)

    async def _floor(self, language: Language) -> float | None:
        """Return the minimum cosine of texts about the same thing; None if this embedding cannot be trusted."""
        if self._quality is None or (self._quality.done() and self._quality.exception()):
            self._quality = asyncio.create_task(self._measure(), name="quality of the embedding")
        await asyncio.wait({self._quality}, timeout=_EMBEDDING_S)
        if not self._quality.done() or self._quality.exception():
            return None
        found = self._quality.result()[language]
        return found.cosine_floor if found.quality >= _BELIEVED else None

    async def _measure(self) -> dict[Language, EmbeddingQuality]:
        return measured(np.asarray(await self._embedder.embed_documents(probe_texts())))

    async def _embedded(self, question: str, asked: _Asked) -> list[float]:
        if self._embedder.by_words_alone:
            return []
        try:
            async with asyncio.timeout(_EMBEDDING_S):
                return await self._embedder.embed_query(question)
        except (Unavailable, TimeoutError):
            asked.degraded.append("embedding")
            return []

    async def _find(self, asked: _Asked) -> tuple[dict[UUID, _Shown], dict[UUID, float]]:
        """Return the current texts of the hits, and their similarities."""
        by_words, cosines, complete = await self._ask_index(asked)
        shown = await self._read(asked, [*by_words, *cosines], complete=complete)
        if complete and not {*by_words, *cosines} <= shown.keys():
            # Chunks were replaced or removed; the index may hold their successors by now.
            by_words, cosines, _ = await self._ask_index(asked)
            shown = await self._read(asked, [*by_words, *cosines], complete=False)
        return shown, cosines

    async def _ask_index(self, asked: _Asked) -> tuple[list[UUID], dict[UUID, float], bool]:
        """Return the hits of the index by words and by meaning, and whether it answered completely."""
        # Without an embedding, search only by words.
        words = asked.words if asked.by_words or not asked.vector else []
        try:
            found = await self._index.find_chunks(
                asked.tenant_id, asked.base_ids, words, asked.vector, _DEPTH, within_s=_MILVUS_S
            )
        except CollectionMissing:  # the collection was lost, or nothing was ever indexed
            if await self._index_again(asked):
                asked.degraded.append("milvus")
            return [], {}, False
        except DatabaseUnavailable:
            raise
        except Unavailable as error:
            if "milvus" not in asked.degraded:
                log.warning("knowledge is searched without its index", reason=error.message)
                asked.degraded.append("milvus")
            return [], {}, False
        return *found, True

    async def _read(self, asked: _Asked, hits: Sequence[UUID], *, complete: bool) -> dict[UUID, _Shown]:
        """Return the hits, and chunks that only PostgreSQL finds by words, in one snapshot."""
        values = asked.values(hits)
        others = sql.WAITING_BY_WORDS if complete else sql.ALL_BY_WORDS
        found, beside = await self._database.fetch_each(
            asked.tenant_id, Query(sql.FOUND, values, class_row(_Shown)), Query(others, values, class_row(_Shown))
        )
        return {one.chunk_id: one for one in (*found, *beside)}

    async def _index_again(self, asked: _Asked) -> bool:
        """Mark the base to be indexed again; return whether any of it was indexed."""
        values = {"tenant_id": asked.tenant_id, "base_ids": asked.base_ids}
        async with self._database.tenant(asked.tenant_id) as connection:
            return (await connection.execute(sql.NOT_INDEXED, values)).rowcount > 0


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
