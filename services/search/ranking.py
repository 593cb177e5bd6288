"""How likely each unit of a user bears on a message: two legs, their neighbourhood, and one linear model.

The legs are BM25 over our terms and the cosine of embeddings. All units are looked at in one pass over arrays; the
model weighs a few numbers of the best of them. `training/recall_weights.py` learns its weights. What was learned
gives the probabilities; the order is held to what the legs say by themselves (`order.py`).
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from services.search.legs import OTHERS, ByMeaning, ByWords, by_meaning, by_words, fused, relative
from services.search.order import apart, in_turns
from services.search.queries import Heads, MessageKind, Query
from services.search.units import Mask, Overview, Places, Searched, Values, Vectors
from services.text.tokenizer import terms

CANDIDATES = 100
"""Units that the model looks at."""
_OF_THE_LEGS = 10
"""The first units by the legs alone, looked at in any case."""
_SEEDS = 3
_AROUND = 0.25
"""How much a neighbour's match, or that it is a preference, counts when candidates are chosen."""
_SURE = 3
"""Preferences count by the probability that the message leaves a choice, raised to this power."""
_LEAST_CHOICE = 0.001
"""Preferences are sought if that power is above this."""
_BEST_BY_WORDS = 3.0
"""How much the order counts a match by words as a share of the best one, beside what was learned."""
_HELD = {"words_over_meaning": 0.3}
"""Shares of learned weights that the order uses: what short talk teaches is too much for long messages."""
_HELD_FOR_SEVERAL = {"visit": 0.3, "meaning": 0.7}
"""Bounds for a message of several sentences: one of them may be like all of an unrelated visit."""
_ABOVE, _PREFERS = 0.2, 0.5
"""The meaning that speaks for a unit without a word of the message, one deviation above the average; and the
probability that it states a preference."""
_FEW, _MANY = 8, 50
"""Numbers of units below and above which it does not matter how many there are."""

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
"""Features that the probability depends on."""


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
        spoken_for: For which of them a leg speaks: it shares a word with the message, or means much the same.
        found: How many units were looked at.
    """

    places: Places
    scores: Values
    probability: Values
    features: Values
    words: Values
    cosines: Values
    spoken_for: Mask
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
    vectors = np.asarray(vectors, dtype=np.float32)
    kind = kind or kind_of(vectors, heads)
    asked = terms(query.text)
    words, near = by_words(query, asked, units, mask), by_meaning(query, vectors, units, mask, heads)
    matches = _Matches(query, kind, units.overview(), words, near, mask)
    places = matches.candidates(then)
    features = matches.features(units, asked, places, then)
    found = int(mask.sum())
    learned, probability = weighed(query, features, found, kind, with_meaning=len(vectors) > 0)
    scores = learned
    if len(vectors):
        scores = np.einsum("ij,j->i", features, _held(several=bool(query.parts)))
        scores += _BEST_BY_WORDS * (1 - query.context_share) * matches.relative[places]
    order = in_turns(scores, matches.fused[places], several=bool(query.parts))
    order = order[apart(matches.exchanges[places[order]], matches.leads[places[order]])]
    scores = np.sort(scores)[::-1]
    places = places[order]
    by_word, cosines = matches.relative[places], matches.near.cosines[places]
    speaks = matches.speak_for(features[order], places)
    return Scored(places, scores, probability[order], features[order], by_word, cosines, speaks, found)


@cache
def _held(*, several: bool) -> Values:
    shares = _HELD | (_HELD_FOR_SEVERAL if several else {})
    return _weights("meaning", "order", FEATURES) * [shares.get(name, 1.0) for name in FEATURES]


class _Matches:
    """How all units match a message, and what of it stands beside each."""

    def __init__(
        self, query: Query, kind: MessageKind, known: Overview, words: ByWords, near: ByMeaning, mask: Mask
    ) -> None:
        self._query, self._kind, self._known, self._mask = query, kind, known, mask
        self._answers = _answers(known, words, near)
        self.fused, self.exchanges = fused(words, near, mask), known.exchange
        by_answer = known.states_nothing[known.exchange] | query.of_assistant
        self.leads = known.by_assistant == by_answer
        if query.asks:
            words, near = words.without_echo(known.states_nothing), near.without_echo(known.states_nothing)
        self._words, self.near = words, near
        self.relative, self._meaning = relative(words.scores), near.supposed
        self._total = 0.5 * self.relative + 0.5 * relative(np.maximum(self._meaning, 0.0))
        self._total[~mask] = -1.0
        with_none = np.concatenate([self.relative, [0.0]])
        self._before, self._after = with_none[known.previous], with_none[known.following]
        self._chooses = kind.choice**_SURE
        self._prefers = self._chooses * near.prefers if self._chooses > _LEAST_CHOICE else np.zeros(len(mask))

    def candidates(self, then: Mask | None) -> Places:
        """Return the best units, by their own match and what stands beside them."""
        beside = self._known.coherence * (self._before + self._after)
        chosen = self._total + _AROUND * (beside + self._prefers) + self._answers
        best = chosen.max(initial=0.0)
        chosen[_best(self.fused, _OF_THE_LEGS)] += best
        chosen[~self._mask] = -1.0
        places = _best(chosen, CANDIDATES)
        if then is not None:  # what was said then is looked at, wherever it stands
            more = _best(np.where(then, chosen, -1.0), CANDIDATES)
            places = np.concatenate([places, np.setdiff1d(more[then[more]], places)])
        return places[self._mask[places]]

    def speak_for(self, features: Values, places: Places) -> Mask:
        """Return for which units a leg, the time that is named or, of choices, a preference speaks."""
        words, meaning, then = (features[:, FEATURES.index(each)] for each in ("words", "meaning", "then"))
        found: Mask = (words > 0) | (meaning > _ABOVE) | (then > 0) | (self._prefers[places] > _PREFERS)
        return found

    def features(self, units: Searched, asked: Sequence[str], places: Places, then: Mask | None) -> Values:
        """Return `FEATURES` (columns) of units at some places."""
        known, total = self._known, self._total
        of_visit = np.zeros(known.visits)
        np.maximum.at(of_visit, known.visit, total)
        seeds = _highest(total, _SEEDS)
        sure = (total[seeds] / max([1e-9, *total[seeds]])) ** 2
        shared = units.by_rare_terms(seeds, asked, places) * sure[:, np.newaxis]
        words, meaning = self._words.shares(places), self.near.standing(self._meaning[places])
        like_previous, like_following = units.by_neighbours(places)
        columns = {
            "words": words,
            "meaning": meaning,
            "likeness": self.near.likeness(places),
            "association": shared.max(axis=0, initial=0.0),
            "words_beside": np.maximum(self._before[places] * like_previous, self._after[places] * like_following),
            "visit": of_visit[known.visit[places]] * math.sqrt(known.coherence) * (1 - self._chooses)
            + self._prefers[places],
            "answers": self._answers[places],
            "by_assistant": known.by_assistant[places] & (not self._query.of_assistant),
            "asks": known.asks[places] * (1 - self._kind.choice),
            "words_over_meaning": ((words + self.relative[places]) / 2 - meaning)
            * np.sqrt((like_previous + like_following) / 2),
            "written": known.written[places],
            "then": 0.0 if then is None else then[places],
        }
        features = np.empty((len(places), len(FEATURES)))
        for at, name in enumerate(FEATURES):
            features[:, at] = columns[name]
        return features


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
    rows[:, 0] = scores - scores.sum() / (len(scores) + OTHERS)
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


def _answers(known: Overview, words: ByWords, near: ByMeaning) -> Values:
    """For answers of the assistant, how well the question matches, by its words and its meaning."""
    found = np.zeros(len(words.scores))
    asked = known.previous[known.answering]
    meaning = np.fmax(near.standing(near.cosines[asked]), 0.0)  # 0 where there is none
    found[known.answering] = (words.shares(asked) + meaning) / 2
    return found


def kind_of(vectors: Sequence[Sequence[float]] | Vectors, heads: Heads | None) -> MessageKind:
    """Return what a message with these embeddings is like."""
    return heads.kind_of(vectors[0]) if heads and len(vectors) else MessageKind()


def _highest(values: Values, most: int) -> list[int]:
    """Return the places of the highest few, without those below 0."""
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
