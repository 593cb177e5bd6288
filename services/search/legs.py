"""The two legs of recall: how well each unit of a user matches a message by words, and by meaning."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from services.search.queries import Head, Heads, Query, of_length_1
from services.search.units import Mask, Places, Searched, Values, Vectors
from services.text.tokenizer import terms

_FULL_MATCH = 1.3
"""Highest possible score by words divided by the score that counts as a full match."""
_TOLD = 0.5
"""Weight of a sentence that states something, relative to one that asks."""
OTHERS, _USUAL, _USUAL_SPREAD = 20, 0.12, 0.1
"""Number of unrelated units assumed beside a user's own, and mean and spread of their cosines, so that small
memories are judged like large ones."""
_SPREAD = 5.0
_ECHO = 0.1
"""Share that remains of the match with a repeated question: it matches best of all, and answers nothing."""


@dataclass(frozen=True, slots=True)
class ByWords:
    """How units match a message by words.

    Attributes:
        scores: BM25 of each, with the message and with its best part.
        full: The highest possible score.
        whole: BM25 of each with the message alone.
    """

    scores: Values
    full: float
    whole: Values

    def shares(self, places: Places) -> Values:
        """Return the scores of some units as shares of a full match."""
        return np.minimum(self.scores[places] / self.full * _FULL_MATCH, 1.0)

    def without_echo(self, states_nothing: Mask) -> "ByWords":
        """Return the scores with little left for units that state nothing."""
        return replace(self, scores=np.where(states_nothing, _ECHO * self.scores, self.scores))


def by_words(query: Query, asked: Sequence[str], units: Searched, mask: Mask) -> ByWords:
    """Compare units with the message, and equally with its best part.

    The rest of the message must not hide that part, but other sentences often name its subject.

    Args:
        query: The message.
        asked: Its terms.
        units: All units.
        mask: The units to look at.
    """
    found, possible = units.by_words([asked, *map(terms, query.parts)], mask)
    words, full = found[0], float(possible[0])
    if query.context:
        [more], [fuller] = units.by_words([[term for said in query.context for term in terms(said)]], mask)
        own = 1 - query.context_share
        words = (
            full * (own * relative(words) + query.context_share * relative(more)) * _top(words, full, more, fuller)
        )
    if not query.parts:
        return ByWords(words, full, words)
    parts = possible[1:]
    counts = full / parts * np.minimum(1.0, 2 * parts / parts.max()) * np.where(query.asking, 1.0, _TOLD)
    best = np.maximum(words, (found[1:] * counts[:, np.newaxis]).max(axis=0))
    return ByWords((words + best) / 2, full, words)


def _top(words: Values, full: float, more: Values, fuller: float) -> float:
    """Return the better of two best matches, as a share of a full match."""
    if not len(words):
        return 0.0
    return max(float(words.max()) / full, float(more.max()) / fuller)


@dataclass(frozen=True, slots=True)
class ByMeaning:
    """How units lie to what the message or its best part is turned to, and to the message itself.

    Attributes:
        cosines: With the message and with its best part, on average; NaN where it has no embedding.
        known: Which of the units that are looked at have one.
        average: Of the cosines.
        spread: Of the cosines.
        to_message: The cosine of each with the message.
        usual: Average and spread of these.
        to_likings: The cosine of each with what tells likings; None where nothing tells.
        likings: The head that makes probabilities of these.
    """

    cosines: Values
    known: Mask
    average: float
    spread: float
    to_message: Values
    usual: tuple[float, float]
    to_likings: Values | None = None
    likings: Head | None = None

    @property
    def prefers(self) -> Values:
        """Return the probability that each unit states what its author likes, wants or avoids; 0 if unknown."""
        if self.to_likings is None or self.likings is None:
            return np.zeros(len(self.cosines))
        return np.fmax(self.likings.probabilities(self.to_likings), 0.0)

    def likeness(self, places: Places) -> Values:
        """Return how far the cosines of some units with the message are above the average."""
        average, spread = self.usual
        return np.where(self.known[places], (self.to_message[places] - average) / spread / _SPREAD, 0.0)

    @property
    def supposed(self) -> Values:
        """Return the cosines, with the average for units that have none or are not looked at."""
        return np.where(self.known, self.cosines, self.average)

    def standing(self, cosines: Values) -> Values:
        """Return how far cosines are above the average, in units of their spread."""
        return (cosines - self.average) / self.spread / _SPREAD

    def without_echo(self, states_nothing: Mask) -> "ByMeaning":
        """Return the cosines with little left for units that state nothing."""
        near = self.average + _ECHO * (self.cosines - self.average)
        return replace(self, cosines=np.where(states_nothing, near, self.cosines))


def by_meaning(query: Query, vectors: Vectors, units: Searched, mask: Mask, heads: Heads | None) -> ByMeaning:
    """Compare all units in one pass over their embeddings."""
    if not len(vectors):
        nothing, none = np.full(len(mask), np.nan), np.zeros(len(mask))
        return ByMeaning(nothing, none.astype(np.bool_), 0.0, 1.0, nothing, (0.0, 1.0))
    every = sought(query, vectors)
    rows = [heads.prefers.direction[np.newaxis], heads.turned(every)] if heads else [every]
    found = units.by_meaning(np.concatenate([*rows, every[:1]]))
    to_likings, found = (found[0], found[1:]) if heads else (None, found)
    known = mask & ~np.isnan(found[0])
    # A user with few units is assumed to have more units about other things.
    both = found[[0, -1]] if known.all() else found[[0, -1]].compress(known, axis=1)
    size = both.shape[1] + OTHERS
    averages = (both.sum(axis=1) + OTHERS * _USUAL) / size
    both -= averages[:, np.newaxis]
    squares = np.einsum("ij,ij->i", both, both) + OTHERS * _USUAL_SPREAD**2
    (average, usual), (spread, deviation) = averages.tolist(), ((squares / size) ** 0.5).tolist()
    if not all(query.asking):
        told = 1 + np.flatnonzero(~np.array(query.asking))
        found[told] = average + _TOLD * (found[told] - average)
    cosines = (found[0] + found[:-1].max(axis=0)) / 2
    likings = heads.prefers if heads else None
    return ByMeaning(cosines, known, average, spread, found[-1], (usual, deviation), to_likings, likings)


def sought(query: Query, vectors: Sequence[Sequence[float]] | Vectors) -> Vectors:
    """Return what units are compared with: the message with the talk before it, and its parts, of length 1. A
    message of several sentences lies amid them; what it asks counts at least half."""
    every = of_length_1(vectors)
    said = 1 + len(query.recent)
    if not all(query.asking):
        asking = sum(query.asking)
        told = min(1.0, asking / (len(query.asking) - asking))
        every[0] = np.where(query.asking, 1.0, told) @ every[said:]
        every[:1] = of_length_1(every[:1])
    if not query.recent:
        return every
    before = of_length_1(every[1:said].mean(axis=0, keepdims=True))
    blended = (1 - query.context_share) * every[:1] + query.context_share * before
    return np.concatenate([of_length_1(blended), every[said:]])


def relative(values: Values) -> Values:
    """Return values as shares of the highest."""
    most = float(values.max()) if len(values) else 0.0
    return values / most if most > 0 else values


def fused(words: ByWords, near: ByMeaning, mask: Mask) -> Values:
    """Return the mean of both legs for the whole message, as shares of the best; -1 outside the mask."""
    found = relative(words.whole)
    if near.known.any():
        known = near.to_message if (every := near.known.all()) else near.to_message[near.known]
        least, most = float(known.min()), float(known.max())
        share = (near.to_message - least) / max(most - least, 1e-9)
        found = (found + (share if every else np.where(near.known, share, 0.0))) / 2
    return found if mask.all() else np.where(mask, found, -1.0)
