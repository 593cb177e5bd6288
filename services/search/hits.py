"""Results of ranking: units with their probabilities."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class Unit(NamedTuple):
    """One message, or one memory, that was found.

    Attributes:
        states: Whether it states something.
        sources: Messages that a memory was written from.
        passage: Number of the passage that is nearest to the message.
    """

    id: str
    episode_id: str
    created_at: datetime
    text: str
    message_id: str | None = None
    episode_type: str = "turn"
    by_assistant: bool = False
    states: bool = True
    sources: frozenset[str] = frozenset()
    passage: int = 0


class Ranked(NamedTuple):
    """A unit at its place (from 1).

    Attributes:
        score: By which it is ordered; comparable within one search.
        likelihood: Probability that it bears on the message, 0 to 1.
        words: Its match by words, relative to the best one's, 0 to 1.
        cosine: The highest of its cosines; None where it has no embedding.
        ranks: Its places, from 1, by words and by meaning, among what was looked at.
        spoken_for: Whether words or meaning speak for it, and not only its neighbours and how few units there are.
    """

    unit: Unit
    position: int
    score: float
    likelihood: float
    words: float
    cosine: float | None
    ranks: dict[str, int]
    spoken_for: bool = True


class Excluded(NamedTuple):
    """A unit that was left out, and why."""

    unit_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Results, best first; `found` counts all units that were looked at."""

    results: tuple[Ranked, ...]
    found: int = 0
