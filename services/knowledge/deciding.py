"""When it is sure enough which base a message belongs to. Pure; the numbers are tuned on questions of our own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.knowledge.evidence import Evidence
from services.knowledge.matching import Hit
from services.knowledge.profile import BaseProfile

_MOST_KEYWORDS = 2.0

# By words alone: one keyword is worth a word, and decides where the message is about little else.
_KEYWORD = 0.4
_SURE_BY_WORDS = 1.0
_AHEAD_BY_WORDS = 0.4

# With all that is known, a passage that speaks of what is asked counts most.
_KEYWORD_BESIDE = 0.2
_PROFILE = 0.4
_PASSAGE = 1.3
_PASSAGE_OF_ONE_TERM = 0.4
_MEANING = 0.5
"""What a cosine beyond the floor counts, where the embedding is not known to understand the language."""
_MEANING_BELIEVED = 1.5
_SURE = 0.65
_AHEAD = 0.2

_SEVERAL_TERMS = 2
_OWN_AFFAIRS = 0.3
"""Who asks about himself asks his memory rather than a document."""
_TELLS = 0.15
"""Who asks nothing may still name a fault; who tells of himself wants no document."""
_TELLS_OF_HIMSELF = 0.5


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
    defines: bool = False
    """It asks what a word means."""

    @property
    def penalty(self) -> float:
        """By how much a base must be the closer."""
        if self.own:
            return _OWN_AFFAIRS if self.asks else _TELLS_OF_HIMSELF
        return 0.0 if self.asks else _TELLS


@dataclass(frozen=True)
class Closeness:
    """How close a message is to the bases by meaning, and by what their documents say."""

    cosines: Mapping[str, float] = field(default_factory=dict)
    """By prefix the greatest cosine similarity of the message and a text of the profile."""
    floor: float = 1.0
    """From which cosine on two texts are about the same, with this embedding."""
    believed: bool = False
    """Whether the embedding is known to understand the language."""
    passages: Mapping[str, Evidence] = field(default_factory=dict)
    """By prefix the passage that speaks most of what is asked."""


def by_words(hits: Sequence[Hit], manner: Manner) -> Decision | None:
    """The base whose keywords a message has, where it is about little else; None where that is not sure."""
    scores = {hit.profile.prefix: hit.coverage + _KEYWORD * min(hit.weight, _MOST_KEYWORDS) for hit in hits}
    best, score, next_score = _best(hits, scores)
    if best is None or score - manner.penalty < _SURE_BY_WORDS or score - next_score < _AHEAD_BY_WORDS:
        return None
    if not best.keywords or (manner.defines and len(best.keywords) == 1):
        return None
    return _decision(best, score - manner.penalty, f"keywords: {', '.join(best.keywords[:3])}")


def by_closeness(hits: Sequence[Hit], manner: Manner, closeness: Closeness) -> Decision | None:
    """The base that a message is close to by all that is known; None where none is, or two are nearly as close."""
    best, score, next_score = _best(hits, {hit.profile.prefix: _score(hit, closeness) for hit in hits})
    if best is None or score - manner.penalty < _SURE or score - next_score < _AHEAD:
        return None
    passage = closeness.passages.get(best.profile.prefix)
    near = "its documents" if passage and passage.shared else "its description, questions and headings"
    return _decision(best, score - manner.penalty, f"close to {near}")


def _score(hit: Hit, closeness: Closeness) -> float:
    score = _PROFILE * hit.coverage + _KEYWORD_BESIDE * min(hit.weight, _MOST_KEYWORDS)
    beyond = closeness.cosines.get(hit.profile.prefix, 0.0) - closeness.floor
    score += max(0.0, beyond) * (_MEANING_BELIEVED if closeness.believed else _MEANING)
    if (passage := closeness.passages.get(hit.profile.prefix)) and passage.shared:
        score += passage.coverage * (_PASSAGE if passage.shared >= _SEVERAL_TERMS else _PASSAGE_OF_ONE_TERM)
    return score


def _best(hits: Sequence[Hit], scores: Mapping[str, float]) -> tuple[Hit | None, float, float]:
    """The best base, its score, and that of the next."""
    ordered = sorted(hits, key=lambda hit: -scores[hit.profile.prefix])
    best, following = [*ordered, None, None][:2]
    return (
        best,
        scores[best.profile.prefix] if best else 0.0,
        scores[following.profile.prefix] if following else 0.0,
    )


def _decision(hit: Hit, score: float, reason: str) -> Decision:
    return Decision(hit.profile, round(min(0.99, 0.5 + score / 3), 2), reason)
