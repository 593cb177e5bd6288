"""The probability that a passage answers a message: from its cosine, common words, and the kind of message."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from services.search.collection import BM25_K1
from services.search.queries import Query
from services.search.units import Values
from services.text.tokenizer import is_weak


@dataclass(frozen=True, slots=True)
class _Weights:
    meaning: float
    words: float
    constant: float


# Learned on the messages of several sets of bases, half of which need no base. For each set the logit came from a
# head that was learned without it, because a head is surer of messages that it knows.
_WITH_HEAD, _HEAD = _Weights(meaning=13.2, words=12.8, constant=0.48), 1.13
_WITHOUT = _Weights(meaning=14.3, words=9.4, constant=2.7)
_WORDS_ALONE, _CONSTANT_ALONE = 17.4, -3.45
_TELLS, _ORDERS, _IN_GENERAL = -1.0, -4.7, -0.7
"""Addends if the message asks nothing; if it then orders work; and if it asks in general."""
_OF_ONESELF, _TELLS_OF_ONESELF = -0.3, -1.0
"""Addends if the message is about the user's own affairs, and if it then asks nothing."""
NAMED = 1.8
"""Addend if the caller named the base."""
_FLOOR = 0.5
"""Minimum probability of the best passage for it to be shown."""
_CLOSE = 0.06
"""Minimum odds of each further passage, as a share of the best one's odds."""
_LENGTH = 0.75
_OTHERS = 10
"""Number of passages without any of the words that are assumed beside those found, which may be few."""
_WEAK = 0.3
"""Weight of a general word."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that a search found.

    Attributes:
        terms: Of its text, and the keywords of its base.
        cosine: Of its embedding; None where it was not found by meaning.
        waiting: Whether the index has it not yet.
        prior: What its base adds: `NAMED` or nothing.
    """

    chunk_id: UUID
    terms: tuple[str, ...]
    cosine: float | None
    prior: float
    waiting: bool = False


def probabilities(
    words: Sequence[str],
    candidates: Sequence[Candidate],
    floor: float | None,
    query: Query,
    *,
    asks_documents: float | None,
    by_words: bool,
) -> Values:
    """Return the probability of each passage.

    Args:
        words: The message's terms, each once.
        floor: Minimum cosine of two texts about the same thing; None = only words decide.
        asks_documents: Logit that the message asks what documents answer; None = unknown.
        by_words: Whether words count; without an embedding they always do.
    """
    weights = _WITHOUT if asks_documents is None else _WITH_HEAD
    shares = _shares(words, candidates)
    known = [each.cosine for each in candidates if each.cosine is not None]
    alone = np.array([floor is None or not known or (each.waiting and each.cosine is None) for each in candidates])
    least = min(known, default=0.0)
    cosines = np.array([least if each.cosine is None else each.cosine for each in candidates])
    meant = weights.meaning * (cosines - (floor or 0.0)) + weights.words * shares * by_words + weights.constant
    kind = _of_kind(query)
    meant += kind if asks_documents is None else _HEAD * asks_documents
    logits = np.where(alone, _WORDS_ALONE * shares + _CONSTANT_ALONE + kind, meant)
    logits = logits + np.array([each.prior for each in candidates])
    found: Values = 1 / (1 + np.exp(-logits))
    return found


def _of_kind(query: Query) -> float:
    tells = not query.asks
    kind = _TELLS * tells + (_ORDERS if tells else _IN_GENERAL) * query.wants_work
    return kind + _OF_ONESELF * query.of_oneself + _TELLS_OF_ONESELF * (query.of_oneself and tells)


def shown(candidates: Sequence[Candidate], likely: Values) -> list[tuple[UUID, float]]:
    """Return the passages with their probabilities, best first, if the best one is likely enough."""
    best = float(likely.max(initial=0.0))
    if best < _FLOOR:
        return []
    odds = likely / np.maximum(1 - likely, 1e-9)
    close = np.flatnonzero(odds >= _CLOSE * odds.max()).tolist()
    order = sorted(close, key=lambda place: -likely[place])
    return [(candidates[place].chunk_id, float(likely[place])) for place in order]


def _shares(words: Sequence[str], candidates: Sequence[Candidate]) -> Values:
    """Return BM25 as a share of the highest possible score; words are weighted by their rarity among the
    passages."""
    held = [Counter(candidate.terms) for candidate in candidates]
    lengths = np.array([len(candidate.terms) for candidate in candidates], dtype=np.float64)
    relative = 1 - _LENGTH + _LENGTH * lengths / max(float(lengths.mean()) if len(lengths) else 1.0, 1.0)
    found, possible = np.zeros(len(candidates)), 1e-6
    for word in words:
        counts = np.array([each[word] for each in held], dtype=np.float64)
        having = float((counts > 0).sum())
        weight = np.log(1 + (len(held) + _OTHERS - having + 0.5) / (having + 0.5)) * (
            _WEAK if is_weak(word) else 1.0
        )
        found += weight * counts / (counts + BM25_K1 * relative)
        possible += weight
    return found / possible
