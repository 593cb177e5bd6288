"""How likely each unit of a user bears on a message: two legs, their neighbourhood, and one linear model.

The legs are BM25 over our terms and the cosine of embeddings. All units are looked at in one pass over arrays; the
model weighs a few numbers of the best of them. `training/recall_weights.py` learns its weights.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from services.search.queries import Heads, MessageKind, Query, of_length_1
from services.text.tokenizer import terms

Values = NDArray[np.float64]
Vectors = NDArray[np.float32]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]

CANDIDATES = 100
"""Units that the model looks at."""
_SEEDS = 3
_AROUND = 0.25
"""How much a neighbour's match, or that it is a preference, counts when candidates are chosen."""
_SURE = 3
"""Preferences take the place of visits as far as a message leaves a choice: its probability to this power."""
_FULL_MATCH = 1.3
"""Part of the highest possible score by words that counts as a full match, inverted."""
_ECHO = 0.1
_TOLD = 0.5
"""How much a sentence that tells something counts beside one that asks."""
_OTHERS, _USUAL, _USUAL_SPREAD = 20, 0.12, 0.1
"""Unrelated units supposed beside a user's, and their cosines, so that small memories are judged alike."""
_FEW, _MANY = 8, 50
"""Numbers of units below and above which it does not matter how many there are."""
_SPREAD = 5.0

FEATURES = (
    "words",  # its score by words, as a share of a full match
    "meaning",  # how far its cosine with what the message is turned to is above the average of the user's units
    "likeness",  # the same of its cosine with the message
    "association",  # what it shares with the best units beside the message's words, as far as these are sure
    "words_beside",  # the better score by words of its neighbours, as far as they are about the same
    "visit",  # the best score of its hours, where neighbours are alike; of choices, that it is a preference
    "answers",  # how well the question matches that it answers
    "by_assistant",  # the assistant said it, and the message is not about what the assistant said
    "asks",  # it asks something, and the message leaves no choice: a preference often stands beside a question
    "words_over_meaning",  # how much better its words match, as far as what stands beside it means the same
    "written",  # it is a memory that was written
    "then",  # it was said in the time that the message names
)
SHOWN = (
    "standing",  # its score by the features above, beyond the average of those found
    "words",
    "meaning",
    "asked",  # the message is a question
    "of_oneself",  # the message speaks of the user's own affairs
    "wants_work",  # the message orders something done or explained
    "few",  # how few units the user has: among few, one that bears on a message is likelier
    "chooses",  # the message leaves a choice
    "needs_nothing",  # the message needs nothing of memory
)
"""What the probability depends on."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What is known of each unit of a user, and who stands beside whom.

    Attributes:
        size: How many units there are; a removed one keeps its place for a while.
        previous: The place of the message before each in its conversation; -1 if there is none.
        following: The same of the message after it.
        answering: The places of answers of the assistant that follow a question.
        visit: A number for the hours in which it was said.
        visits: How many of these there are.
        coherence: How much neighbours are about the same, 0 to 1.
        by_assistant: Which the assistant said.
        asks: Which ask something.
        states_nothing: Which only ask, order or acknowledge.
        written: Which were written as memories.
    """

    size: int
    previous: Places
    following: Places
    answering: Places
    visit: Places
    visits: int
    coherence: float
    by_assistant: Mask
    asks: Mask
    states_nothing: Mask
    written: Mask


class Searched(Protocol):
    """All units of a user as arrays; a unit keeps its place."""

    def by_words(self, texts: Sequence[Sequence[str]], mask: Mask) -> tuple[Values, Values]:
        """Return the BM25 score of each unit for the terms of each text (row), and the highest possible ones."""

    def by_rare_terms(self, seeds: Sequence[int], without: Sequence[str], places: Places) -> Values:
        """Return for each of some units (row) the share of its rare terms that units at some places have."""

    def by_meaning(self, vectors: NDArray[np.float32]) -> Values:
        """Return for each vector (row) its cosine with each unit; NaN where a unit has no embedding."""

    def by_neighbours(self, places: Places) -> Values:
        """Return how alike some units (columns) are to the messages before and after them: cosines, or 0."""

    def overview(self) -> Overview:
        """Return what is known of each unit, and who stands beside whom."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The likeliest units, best first.

    Attributes:
        places: Of the units.
        scores: By which they are ordered.
        probability: That each bears on the message.
        features: `FEATURES` (columns) of each.
        words: The score of each by words, relative to the best.
        cosines: The highest cosine of each; NaN where it has no embedding.
        found: How many units were looked at.
    """

    places: Places
    scores: Values
    probability: Values
    features: Values
    words: Values
    cosines: Values
    found: int


def score(
    query: Query,
    vectors: Sequence[Sequence[float]] | Vectors,
    units: Searched,
    mask: Mask,
    heads: Heads | None = None,
    kind: MessageKind | None = None,
    then: Mask | None = None,
) -> Scored:
    """Say how likely the units of a mask bear on a message.

    Args:
        query: the message.
        vectors: embeddings of `query.texts`; none = words alone decide.
        units: all units.
        mask: those that are looked at.
        heads: those of the encoder, if there are any.
        kind: what the message is like, if that is known already.
        then: those said in the time that the message names, if it names one.
    """
    asked = terms(query.text)
    known = units.overview()
    vectors = np.asarray(vectors, dtype=np.float32)
    words, full = _by_words(query, asked, units, mask)
    near = _by_meaning(query, vectors, units, mask, heads)
    cosines, average = near.cosines, near.average
    answers = _answers(known, words, full, near)
    kind = kind or kind_of(vectors, heads)
    chooses = kind.choice**_SURE
    prefers = chooses * near.prefers
    if query.asks:  # what only asks the same matches best of all, and answers nothing
        words = np.where(known.states_nothing, _ECHO * words, words)
        cosines = np.where(known.states_nothing, average + _ECHO * (cosines - average), cosines)
    relative = _relative(words)
    meaning = np.where(near.known, cosines, average)
    total = 0.5 * relative
    if len(vectors):
        total += 0.5 * _relative(np.maximum(meaning, 0.0))
    total[~mask] = -1.0
    with_none = np.concatenate([relative, [0.0]])
    before, after = with_none[known.previous], with_none[known.following]
    chosen = total + _AROUND * (known.coherence * (before + after) + prefers) + answers
    chosen[~mask] = -1.0
    places = _best(chosen, CANDIDATES)
    if then is not None:  # what was said then is looked at, wherever it stands
        more = _best(np.where(then, chosen, -1.0), CANDIDATES)
        places = np.concatenate([places, np.setdiff1d(more[then[more]], places)])
    places = places[mask[places]]
    of_visit = np.zeros(known.visits)
    np.maximum.at(of_visit, known.visit, total)
    seeds = _highest(total, _SEEDS)
    sure = (total[seeds] / max([1e-9, *total[seeds]])) ** 2
    by_words = np.minimum(words[places] / full * _FULL_MATCH, 1.0)
    by_meaning = (meaning[places] - average) / near.spread / _SPREAD
    like_previous, like_following = units.by_neighbours(places)
    columns = {
        "words": by_words,
        "meaning": by_meaning,
        "likeness": near.likeness(places),
        "association": (units.by_rare_terms(seeds, asked, places) * sure[:, np.newaxis]).max(axis=0, initial=0.0),
        "words_beside": np.maximum(before[places] * like_previous, after[places] * like_following),
        "visit": of_visit[known.visit[places]] * math.sqrt(known.coherence) * (1 - chooses) + prefers[places],
        "answers": answers[places],
        "by_assistant": known.by_assistant[places] & (not query.of_assistant),
        "asks": known.asks[places] * (1 - kind.choice),
        "words_over_meaning": ((by_words + relative[places]) / 2 - by_meaning)
        * np.sqrt((like_previous + like_following) / 2),
        "written": known.written[places],
        "then": 0.0 if then is None else then[places],
    }
    features = np.empty((len(places), len(FEATURES)))
    for at, name in enumerate(FEATURES):
        features[:, at] = columns[name]
    found = int(mask.sum())
    scores, probability = weighed(query, features, found, kind, with_meaning=len(vectors) > 0)
    order = np.argsort(-scores, kind="stable")
    places = places[order]
    return Scored(
        places,
        scores[order],
        probability[order],
        features[order],
        relative[places],
        cosines[places],
        found,
    )


def weighed(
    query: Query, features: Values, found: int, kind: MessageKind, *, with_meaning: bool
) -> tuple[Values, Values]:
    """Return the score of each row of features, and the probability.

    Args:
        query: the message.
        features: `FEATURES` (columns) of units.
        found: how many units were looked at.
        kind: what the message is like.
        with_meaning: the units have embeddings.
    """
    by = "meaning" if with_meaning else "words"
    # Without the library of linear algebra: its threads would wait for each other longer than the sum takes.
    scores: Values = np.einsum("ij,j->i", features, _weights(by, "order", FEATURES))
    logits = np.einsum(
        "ij,j->i",
        shown_features(query, features, scores, found, kind),
        _weights(by, "shown", (*SHOWN, "constant")),
    )
    return scores, 1 / (1 + np.exp(-logits))


def shown_features(query: Query, features: Values, scores: Values, found: int, kind: MessageKind) -> Values:
    """Return `SHOWN` (columns) of each row, and a column of ones; `found` units were looked at."""
    rows = np.empty((len(scores), len(SHOWN) + 1))
    rows[:, 0] = scores - scores.sum() / (len(scores) + _OTHERS)
    rows[:, 1] = features[:, FEATURES.index("words")]
    rows[:, 2] = features[:, FEATURES.index("meaning")]
    few = max(0.0, 1 - math.log1p(max(found, _FEW)) / math.log1p(_MANY))
    rows[:, 3:] = (query.asks, query.of_oneself, query.wants_work, few, *kind, 1.0)
    return rows


@cache
def _weights(kind: str, part: str, names: Sequence[str]) -> Values:
    stored: Mapping[str, Mapping[str, Mapping[str, float]]] = json.loads(
        (files(__package__) / "weights.json").read_text(encoding="utf-8")
    )
    return np.array([stored[kind][part][name] for name in names])


def _by_words(query: Query, asked: Sequence[str], units: Searched, mask: Mask) -> tuple[Values, float]:
    """The scores of the message, or of its best part: what it says besides must not hide that."""
    found, possible = units.by_words([asked, *map(terms, query.parts)], mask)
    words, full = found[0], float(possible[0])
    if query.context:
        [more], [fuller] = units.by_words([[term for said in query.context for term in terms(said)]], mask)
        own = 1 - query.context_share
        words = (
            full
            * (own * _relative(words) + query.context_share * _relative(more))
            * _top(words, full, more, fuller)
        )
    if query.parts:
        parts = possible[1:]
        counts = full / parts * np.minimum(1.0, 2 * parts / parts.max()) * np.where(query.asking, 1.0, _TOLD)
        words = np.maximum(words, (found[1:] * counts[:, np.newaxis]).max(axis=0))
    return words, full


def _answers(known: Overview, words: Values, full: float, near: "_Near") -> Values:
    """For answers of the assistant, how well the question matches, by its words and its meaning."""
    found = np.zeros(len(words))
    asked = known.previous[known.answering]
    meaning = np.fmax((near.cosines[asked] - near.average) / near.spread / _SPREAD, 0.0)  # 0 where there is none
    found[known.answering] = (np.minimum(words[asked] / full * _FULL_MATCH, 1.0) + meaning) / 2
    return found


def kind_of(vectors: Sequence[Sequence[float]] | Vectors, heads: Heads | None) -> MessageKind:
    """Return what a message with these embeddings is like."""
    return heads.kind_of(vectors[0]) if heads and len(vectors) else MessageKind()


def _top(words: Values, full: float, more: Values, fuller: float) -> float:
    """The better of two best matches, as a share of the full one."""
    if not len(words):
        return 0.0
    return max(float(words.max()) / full, float(more.max()) / fuller)


@dataclass(frozen=True, slots=True)
class _Near:
    """How units lie to what the message or its best part is turned to, and to the message itself.

    Attributes:
        cosines: The highest of each; NaN where it has no embedding.
        known: Which of the units that are looked at have one.
        average: Of the cosines.
        spread: Of the cosines.
        to_message: The cosine of each with the message.
        usual: Average and spread of these.
        prefers: The probability that each states what its author likes, wants or avoids; 0 where nothing tells.
    """

    cosines: Values
    known: Mask
    average: float
    spread: float
    to_message: Values
    usual: tuple[float, float]
    prefers: Values

    def likeness(self, places: Places) -> Values:
        """Return how far the cosines of some units with the message are above the average."""
        average, spread = self.usual
        return np.where(self.known[places], (self.to_message[places] - average) / spread / _SPREAD, 0.0)


def _by_meaning(query: Query, vectors: Vectors, units: Searched, mask: Mask, heads: Heads | None) -> _Near:
    """Compare all units in one pass over their embeddings."""
    if not len(vectors):
        nothing, none = np.full(len(mask), np.nan), np.zeros(len(mask))
        return _Near(nothing, none.astype(np.bool_), 0.0, 1.0, nothing, (0.0, 1.0), none)
    every = sought(query, vectors)
    rows = [heads.prefers.direction[np.newaxis], heads.turned(every)] if heads else [every]
    found = units.by_meaning(np.concatenate([*rows, every[:1]]))
    prefers = np.zeros(len(mask))
    if heads:
        prefers, found = np.fmax(heads.prefers.probabilities(found[0]), 0.0), found[1:]
    known = mask & ~np.isnan(found[0])
    # A user with few units is supposed to have more that are about other things.
    both = found[[0, -1]] if known.all() else found[[0, -1]].compress(known, axis=1)
    size = both.shape[1] + _OTHERS
    averages = (both.sum(axis=1) + _OTHERS * _USUAL) / size
    both -= averages[:, np.newaxis]
    squares = np.einsum("ij,ij->i", both, both) + _OTHERS * _USUAL_SPREAD**2
    (average, usual), (spread, deviation) = averages.tolist(), ((squares / size) ** 0.5).tolist()
    if not all(query.asking):
        told = 1 + np.flatnonzero(~np.array(query.asking))
        found[told] = average + _TOLD * (found[told] - average)
    return _Near(found[:-1].max(axis=0), known, average, spread, found[-1], (usual, deviation), prefers)


def sought(query: Query, vectors: Sequence[Sequence[float]] | Vectors) -> Vectors:
    """Return what units are compared with: the message with the talk before it, and its parts, of length 1.

    A message of several sentences lies amid them; what it asks counts at least half.
    """
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


def _relative(values: Values) -> Values:
    most = float(values.max()) if len(values) else 0.0
    return values / most if most > 0 else values


def _highest(values: Values, most: int) -> list[int]:
    """The same for a few, without those below 0."""
    left = values[::-1].copy()
    found: list[int] = []
    while len(found) < min(most, len(left)) and left[at := int(left.argmax())] >= 0:
        found.append(len(left) - 1 - at)
        left[at] = -1.0
    return found


def _best(values: Values, most: int) -> Places:
    """The places of the highest values, best first; of equal ones the last."""
    least = np.partition(values, -most)[-most] if len(values) > most else -np.inf
    places: Places = (values >= least).nonzero()[0][::-1]
    return places[np.argsort(-values[places], kind="stable")[:most]]
