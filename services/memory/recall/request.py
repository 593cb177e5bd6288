"""Requests of recall to a search, and their results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from services.memory.episodes.episode import StoredUnit, said_by_assistant
from services.memory.episodes.scope import Scope
from services.search.hits import Ranking, Unit
from services.search.index_terms import Marked
from services.search.parameters import RankingParameters
from services.search.queries import RecallQuery
from services.text.language import Language


@dataclass(frozen=True)
class SearchRequest:
    """A search: its queries and its scope.

    Attributes:
        scope: The owner of the memory, and the part to search.
        then: A part of the scope that is searched separately: the time that a message refers to.
        queries: At least one, the message first.
        vectors: Their embeddings; none if the embedding is unavailable or useless.
        nearest: Number of units to find by meaning for each query.
        quality: Quality of the embedding, by language.
        now: The time from which age is counted.
        depth: Maximum number of units returned with their texts, besides those of `then`.
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
    """The ranked results."""

    ranking: Ranking
    units: Mapping[str, StoredUnit] = field(default_factory=dict)
    """By their ids, as they are stored."""
    degraded: Sequence[str] = ()
    """Sources that did not answer."""


def unit_of(stored: StoredUnit, known: Marked, *, indexed: bool) -> Unit:
    """Return a unit in the form used by ranking."""
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
