"""When it is sure enough which base a message belongs to. Pure; the numbers are tuned on questions of our own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.knowledge.matching import Hit
from services.knowledge.profile import BaseProfile

_SURE = 0.65
_AHEAD = 0.2
_MOST_KEYWORDS = 2.0
_KEYWORD = 0.4
_MEANING = 0.5
"""What a cosine beyond the floor counts, where the embedding is not known to understand the language."""
_MEANING_BELIEVED = 1.5
_TALK = 0.3
"""Who speaks of himself and asks nothing wants no document."""
_OWN_AFFAIRS = 0.15


@dataclass(frozen=True)
class Decision:
    """A base, how sure it is, and why."""

    profile: BaseProfile
    confidence: float
    reason: str


@dataclass(frozen=True)
class Manner:
    """How a message speaks."""

    asks: bool
    own: bool
    """Of the user's own affairs."""


@dataclass(frozen=True)
class Closeness:
    """How close a message is to the bases by meaning."""

    cosines: Mapping[str, float]
    """By prefix the greatest cosine similarity of the message and a text of the profile."""
    floor: float
    """From which cosine on two texts are about the same, with this embedding."""
    believed: bool
    """Whether the embedding is known to understand the language."""


def decide(hits: Sequence[Hit], manner: Manner, closeness: Closeness | None = None) -> Decision | None:
    """The base that a message belongs to; None where none is sure, or two are nearly as close.

    Args:
        hits: the bases as they were compared with the message.
        manner: of the message.
        closeness: where it is known; without it only words decide, and a keyword has to be among them.
    """
    scores = sorted(((_score(hit, closeness), hit) for hit in hits), key=lambda scored: -scored[0])
    if not scores:
        return None
    score, best = scores[0]
    next_score = scores[1][0] if len(scores) > 1 else 0.0
    score -= (_OWN_AFFAIRS if manner.asks else _TALK) if manner.own else 0.0
    if score < _SURE or score - next_score < _AHEAD or (closeness is None and not best.keywords):
        return None
    confidence = round(min(0.99, 0.5 + score / 3), 2)
    return Decision(best.profile, confidence, _reason(best))


def _score(hit: Hit, closeness: Closeness | None) -> float:
    score = hit.coverage + _KEYWORD * min(hit.weight, _MOST_KEYWORDS)
    if closeness:
        beyond = closeness.cosines.get(hit.profile.prefix, 0.0) - closeness.floor
        score += max(0.0, beyond) * (_MEANING_BELIEVED if closeness.believed else _MEANING)
    return score


def _reason(hit: Hit) -> str:
    if hit.keywords:
        return f"keywords: {', '.join(hit.keywords[:3])}"
    return "close to its description, questions and headings"
