"""Requests of recall to a search, and their results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.memory.episodes.episode import Scope, StoredUnit
from services.search.heads import Heads, MessageKind
from services.search.hits import Ranking
from services.search.queries import Query
from services.search.ranking import Vectors


@dataclass(frozen=True)
class SearchRequest:
    """A search: what is sought, and where.

    Attributes:
        scope: The owner of the memory, and the part to search.
        then: A part of the scope whose units come first: the time that a message refers to.
        query: The message.
        vectors: Embeddings of `query.texts`; none = words alone decide.
        heads: Those of the encoder, if there are any.
        kind: What the message is like.
        depth: Maximum number of units returned with their texts.
        hurried: Whether a turn waits for it.
        least: Where no unit has this probability, none is read.
    """

    scope: Scope
    then: Scope | None
    query: Query
    vectors: Vectors
    heads: Heads | None
    kind: MessageKind
    depth: int
    hurried: bool
    least: float = 0.0


@dataclass(frozen=True)
class SearchResult:
    """The ranked results."""

    ranking: Ranking
    units: Mapping[str, StoredUnit] = field(default_factory=dict)
    """By their ids, as they are stored."""
    degraded: Sequence[str] = ()
    """Sources that did not answer."""
