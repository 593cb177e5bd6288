"""Requests of recall to a search, and their results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from services.memory.episodes.episode import StoredUnit, said_by_assistant
from services.memory.episodes.index import Scope
from services.search.hits import Ranking, Unit
from services.search.index_terms import Marked
from services.search.parameters import RankingParameters
from services.search.queries import RecallQuery
from services.text.language import Language


@dataclass(frozen=True)
class SearchRequest:
    """What is sought, where.

    Attributes:
        scope: Whose memory, and which part of it.
        then: A part of that in which is searched as well: the time that a message refers to.
        queries: At least one, the message first.
        vectors: Their embeddings; none where the embedding is away, or not worth anything.
        nearest: How many units are found by meaning for each query.
        quality: How far the embedding is trusted, by language.
        now: From when age is counted.
        depth: How many units are answered with their texts, at the most; those of `then` besides.
        hurried: Whether a turn waits for it.
    """

    scope: Scope
    then: Scope | None
    queries: Sequence[RecallQuery]
    vectors: Sequence[Sequence[float]]
    nearest: int
    quality: Mapping[Language, float]
    now: datetime
    parameters: RankingParameters
    depth: int
    hurried: bool


@dataclass(frozen=True)
class SearchResult:
    """What was found, ranked."""

    ranking: Ranking
    units: Mapping[str, StoredUnit] = field(default_factory=dict)
    """By their ids, as they are stored."""
    degraded: Sequence[str] = ()
    """What did not answer."""


def unit_of(stored: StoredUnit, known: Marked, *, indexed: bool) -> Unit:
    """A unit as ranking knows it."""
    return Unit(
        id=str(stored.unit_id),
        episode_id=str(stored.episode_id),
        conversation_id=str(stored.conversation_id or ""),
        created_at=stored.created_at,
        text=stored.text,
        terms=known.terms,
        previous=str(stored.previous_id) if stored.previous_id else None,
        message_id=str(stored.message_id) if stored.message_id else None,
        episode_type=stored.episode_type,
        importance=stored.importance,
        indexed=indexed,
        by_assistant=said_by_assistant(stored.role, stored.speaker),
        concepts=known.concepts,
        features=known.features,
        sources=frozenset() if stored.message_id else frozenset(map(str, stored.source_message_ids)),
    )
