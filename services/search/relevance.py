"""How far each unit is about what a question is about, in the same words or in others."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.search.columns import Concepts
from services.search.meaning import Nearness, WordMeanings, nearness
from services.search.passages import Passages
from services.search.queries import RecallQuery
from services.search.sequences import Places, beginnings
from services.search.term_matrix import Values, weighted
from services.text.concepts import Facet, facets
from services.text.language import language_of
from services.text.questions import asks

# A kind of what is asked for answers nearly as well as the thing itself; something broader hardly does.
_SAME_CONCEPT = 0.9
_KIND_OF_IT = 0.8
_BROADER = 0.4
_BESIDE = 0.15
# A Chinese word is cut differently from text to text: that its characters are there says something.
_BY_CHARACTERS = 0.4
_SMALLEST_STORE = 100
_OF_ITS_QUESTION = 0.8
_OF_WHAT_IT_REPLIES_TO = 0.6
_OF_WHAT_FOLLOWS = 0.4
_FAR = 0.4
"""Cosine that unrelated words often have."""
_NEAR = 1 / (1 - _FAR)
_CONCEPTS_OF_A_MESSAGE = 10
"""A text that speaks of more says less of each."""
_MOST_SENTENCES = 6
_TELLING = 1.2
"""A sentence about less is passed over: whatever holds its one word would meet it."""
_SENTENCE_END = re.compile(r"[。！？!?；;\n]+|\.\s")
_JOINT = re.compile(
    r",?\s{1,8}(?:and|or)\s{1,8}(?=(?:what|which|where|when|who|whose|how|why)\b)|[,，、]\s*(?:还有|以及|另外)?",
    re.IGNORECASE,
)
"""Between questions that are asked in one sentence."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """How far each unit is about what is asked, each value 0..1.

    The shares are those of the facets of the question, by weight, that one passage of the unit meets.
    """

    met: Values
    """Match by words or concepts, where it counts together with the message that a unit answers or replies to."""
    by_words: Values
    by_concept: Values
    by_meaning: Values
    """By its words' nearness in meaning."""
    likeness: Values
    """Similarity of the passage and the question as wholes."""
    around: Values
    """With what the messages beside it meet, which counts less: they often name what it is about."""
    meant_around: Values
    """The same by nearness in meaning."""
    in_talk: Values
    """By the whole conversation."""

    def joined(self, other: "Relevance") -> "Relevance":
        """The higher of both, value by value."""
        return Relevance(*(np.maximum(getattr(self, name), getattr(other, name)) for name in self.__slots__))


def relevance(
    queries: Sequence[RecallQuery],
    passages: Passages,
    spoken: Concepts,
    *,
    meanings: WordMeanings | None,
    previous: Places,
    talks: NDArray[np.int64],
    by_concept: float = 1.0,
    answers_of: Places | None = None,
    replies_to: Places | None = None,
) -> Relevance:
    """For each unit how far it is about a question.

    The question is the message or a sentence of it; where the message leaves its subject open, also what was said
    before. A facet weighs the more the fewer units meet it.

    Args:
        queries: those of the recall, the message first.
        passages: the units' passages.
        spoken: for each unit the concepts of which it speaks.
        meanings: of the passages' words; None where they are yet to be looked up.
        previous: for each unit the place of the message before it, or -1.
        talks: for each unit a number for its conversation.
        by_concept: how much it counts that a unit speaks of the same in other words.
        answers_of: for each unit the place of the one that it answers, or -1, where answers are asked for: such a
            unit is about what its question is about.
        replies_to: for each unit the place of the one that it replies to, or -1: "Fearnley Terrace" is about the
            address that the assistant had asked for.
    """
    questions = [asked for query in _telling(queries) for asked in _questions(query.text)]
    near = nearness(
        passages,
        meanings or WordMeanings.of(passages),
        [[facet.terms for facet in asked] for asked in questions],
    )
    units = _Units(passages, spoken, by_concept, _Beside(previous, talks), answers_of, replies_to)
    nothing = np.zeros(passages.size)
    best = Relevance(*(nothing for _ in Relevance.__slots__))
    for asked, by_meaning in zip(questions, near, strict=True):
        best = best.joined(_met(asked, by_meaning, units))
    return best


@dataclass(frozen=True, slots=True)
class _Units:
    """The data of units that `relevance` reads, as it takes them."""

    passages: Passages
    spoken: Concepts
    trusted: float
    beside: "_Beside"
    answers_of: Places | None
    replies_to: Places | None


class _Beside:
    """Neighbours of units within their conversations."""

    def __init__(self, previous: Places, talks: NDArray[np.int64]) -> None:
        self._previous = previous
        following = np.full(len(previous), -1, dtype=np.intp)
        later = (previous >= 0).nonzero()[0]
        following[previous[later]] = later
        before = np.where(previous >= 0, previous[previous], -1)
        self._near = (
            (previous, _OF_WHAT_IT_REPLIES_TO),
            (following, _OF_WHAT_FOLLOWS),
            (before, _OF_WHAT_FOLLOWS),
        )
        self._by_talk = talks.argsort(kind="stable")
        self._begins = beginnings(talks[self._by_talk])
        lengths = np.append(self._begins[1:], len(talks)) - self._begins
        self._talk = np.empty(len(talks), dtype=np.intp)
        self._talk[self._by_talk] = np.repeat(np.arange(len(self._begins)), lengths)

    def around(self, met: Values) -> Values:
        """The best match of each facet (column) by each unit (row) or its neighbours."""
        found = met.copy()
        for places, share in self._near:
            there = (places >= 0).nonzero()[0]
            found[there] = np.maximum(found[there], share * met[places[there]])
        return found

    def in_talk(self, met: Values) -> Values:
        """The best match of each facet by any unit of the same conversation."""
        highest: Values = np.maximum.reduceat(met[self._by_talk], self._begins, axis=0)
        return highest[self._talk]


def _telling(queries: Sequence[RecallQuery]) -> list[RecallQuery]:
    message = queries[0]
    return [
        query
        for query in queries
        if query is message or (query.kind == "context" and query.weight > message.weight)
    ]


def _questions(text: str) -> list[tuple[Facet, ...]]:
    whole = facets(text)
    sentences = _SENTENCE_END.split(text)[-_MOST_SENTENCES:]
    parts = [*sentences, *(part for sentence in sentences for part in _joint_questions(sentence))]
    several = [asked for asked in map(facets, parts) if sum(facet.weight for facet in asked) > _TELLING]
    return [asked for asked in (whole, *(asked for asked in several if asked != whole)) if asked]


def _joint_questions(sentence: str) -> list[str]:
    """The questions of a sentence that asks for several things; none of one that asks for a single thing."""
    parts = _JOINT.split(sentence)
    asking = [part for part in parts if asks(part, language_of([part]))] if len(parts) > 1 else []
    return asking if len(asking) > 1 else []


def _met(asked: Sequence[Facet], by_meaning: Nearness, units: _Units) -> Relevance:
    passages, beside = units.passages, units.beside
    by_words = _by_words(asked, passages)
    by_concept = (units.trusted * _by_concept(asked, units.spoken))[passages.unit]
    met = np.maximum(by_words, by_concept)
    nearest = np.maximum(_NEAR * (by_meaning.of_words - _FAR).clip(min=0), by_words)
    both = passages.best_of(np.concatenate([met, np.maximum(nearest, met)], axis=1))
    whole, meant = both[:, : len(asked)], both[:, len(asked) :]
    size = max(passages.size, _SMALLEST_STORE)
    found = (whole >= _KIND_OF_IT).sum(axis=0)
    weights: Values = np.log(1 + (size - found + 0.5) / (found + 0.5)) * np.array(
        [facet.weight for facet in asked]
    )
    shares = weights * (1.0 / float(weights.sum()))
    of_passages = [*(weighted(each, shares) for each in (met, by_words, by_concept, nearest)), by_meaning.of_whole]
    by_itself, words, concepts, meaning, likeness = passages.best_of(np.stack(of_passages, axis=1)).T
    return Relevance(
        met=_with_others(whole, by_itself, shares, units),
        by_words=words,
        by_concept=concepts,
        by_meaning=meaning,
        likeness=likeness,
        around=weighted(beside.around(whole), shares),
        meant_around=weighted(beside.around(meant), shares),
        in_talk=weighted(beside.in_talk(meant), shares),
    )


def _with_others(whole: Values, by_itself: Values, shares: Values, units: _Units) -> Values:
    """The match of each unit by itself, or together with the message that it answers or replies to."""
    around = whole.copy()
    for near, share in ((units.answers_of, _OF_ITS_QUESTION), (units.replies_to, _OF_WHAT_IT_REPLIES_TO)):
        if near is not None:
            there = (near >= 0).nonzero()[0]
            around[there] = np.maximum(around[there], share * whole[near[there]])
    linked = np.zeros(len(whole), dtype=np.bool_) if units.replies_to is None else units.replies_to >= 0
    if units.answers_of is not None:
        linked[:] = True
    return np.where(linked, np.maximum(by_itself, weighted(around, shares)), by_itself)


def _by_concept(asked: Sequence[Facet], spoken: Concepts) -> Values:
    names = list({concept: None for facet in asked for concept in facet.concepts})
    said = spoken.weights_of(names)
    found = np.zeros((spoken.names.size, len(asked)))
    for at, facet in enumerate(asked):
        for concept, weight in facet.concepts.items():
            its = said[:, names.index(concept)]
            named, broader = (_SAME_CONCEPT, _KIND_OF_IT) if weight == 1.0 else (_BROADER, _BESIDE)
            met = np.where(its == 1.0, named, np.where(its > 0, broader, 0.0))
            np.maximum(found[:, at], met, out=found[:, at])
    breadth = np.minimum(1.0, _CONCEPTS_OF_A_MESSAGE / np.maximum(spoken.names.lengths, 1))
    return found * breadth[:, np.newaxis]


def _by_words(asked: Sequence[Facet], passages: Passages) -> Values:
    names = sorted({part for facet in asked for term in facet.terms for part in (term, *_characters(term))})
    places = {name: at for at, name in enumerate(names)}
    held = passages.frequencies_of(names) > 0
    found = np.zeros((len(held), len(asked)))
    for at, facet in enumerate(asked):
        found[:, at] = held[:, [places[term] for term in facet.terms]].all(axis=1)
        characters = [places[character] for term in facet.terms for character in _characters(term)]
        if characters:
            np.maximum(found[:, at], _BY_CHARACTERS * held[:, characters].mean(axis=1), out=found[:, at])
    return found


def _characters(term: str) -> tuple[str, ...]:
    return tuple(term) if len(term) > 1 and not term[0].isascii() and not term[0].islower() else ()
