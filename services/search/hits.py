"""Input and output of ranking: units, the lists of a search, and results that explain themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from services.text.features import Feature

SearchLeg = Literal["lexical", "dense"]
Leg = Literal["lexical", "dense", "relevance", "window", "window_dense", "visit", "association"]


NO_FEATURES: frozenset[Feature] = frozenset()


@dataclass(frozen=True, slots=True)
class Unit:
    """One message, or one memory, that can be recalled.

    `terms` are those of its indexed text (`services.text.tokenizer`). `previous` is the unit of the message
    before it in the same conversation, whether or not that was found. `importance` is between 0 and 1.
    A unit that is not `indexed` is in no list of the index, and is ranked by its terms. `by_assistant`: the
    assistant said it, not a person. `concepts` (`services.text.concepts`) and `features`
    (`services.text.features`) are those of its text. `sources` are the messages that a memory was written from.
    """

    id: str
    episode_id: str
    conversation_id: str
    created_at: datetime
    text: str
    terms: tuple[str, ...]
    previous: str | None = None
    message_id: str | None = None
    episode_type: str = "turn"
    importance: float = 0.5
    indexed: bool = True
    by_assistant: bool = False
    concepts: Mapping[str, float] = field(default_factory=dict)
    features: frozenset[Feature] = NO_FEATURES
    sources: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SearchList:
    """Result of one search: scores by unit id, higher is closer (BM25, or a cosine).

    `query` is the place of the query among those of the recall.
    """

    query: int
    leg: SearchLeg
    scores: Mapping[str, float]


class LegShare(NamedTuple):
    """Contribution of one leg to a result: `contribution` is in the units of the final score.

    `rank` counts from 1 among the units that the leg knows. `raw` is the search's own score. The legs that
    are derived from all queries together have neither a query nor a raw score.
    """

    leg: Leg
    query: int | None
    rank: int
    raw: float | None
    contribution: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A unit at its place (from 1): `score` is the sum of the contributions, times the factors.

    `relevance` (0..1) is the share, by weight, of what the question is about that the unit meets, in the same
    words or in others. `likelihood` is the probability that it bears on the message; what all of a ranking lack to
    1 is that of nothing doing so. `cosine` is the highest of its dense scores. Unlike the score all are absolute.
    `kind_factor` says how likely this kind of text answers the question. `duplicate_of` names the better placed
    unit with the same content, `version_of` a newer unit that gives another value for the same thing. An `echo` is
    a question that a query merely repeats. The `legs` are given for the first 40.
    """

    unit: Unit
    position: int
    score: float
    legs: tuple[LegShare, ...]
    importance_factor: float
    age_factor: float
    kind_factor: float
    relevance: float
    likelihood: float
    cosine: float | None
    duplicate_of: str | None = None
    version_of: str | None = None
    echo: bool = False

    @property
    def ranks(self) -> dict[str, int]:
        """Its place, from 1, in each list that counted for it, by the names of the list and the query."""
        return {
            leg.leg if leg.query is None else f"{leg.leg}:{leg.query}": leg.rank
            for leg in self.legs
            if leg.contribution > 0
        }


@dataclass(frozen=True, slots=True)
class Excluded:
    """A unit or episode that was left out, and why."""

    unit_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Results, best first. `coherence` (0..1) is the trust in neighbours.

    `found` counts all ranked units; `results` may hold only the best of them.
    """

    results: tuple[Ranked, ...]
    coherence: float
    found: int = 0
