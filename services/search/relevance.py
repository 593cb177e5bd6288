"""How far each unit is about what a question is about, in the same words or in others."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.search.passages import Passages
from services.search.queries import RecallQuery
from services.search.sequences import Places
from services.search.term_matrix import Values, weighted
from services.text.concepts import Facet, facets
from services.text.word_vectors import Vectors, word_vectors

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


@dataclass(frozen=True, slots=True)
class Relevance:
    """How far each unit is about what is asked, each value 0..1.

    The shares are those of the facets of the question, by weight, that one passage of the unit meets.
    """

    met: Values
    """In the same words or by a concept, with what it answers or replies to where that counts."""
    by_words: Values
    by_concept: Values
    by_meaning: Values
    """By its words' nearness in meaning."""
    likeness: Values
    """Of the passage and the question as wholes."""
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
    spoken: Sequence[Mapping[str, float]],
    *,
    previous: Places,
    talks: Places,
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
        previous: for each unit the place of the message before it, or -1.
        talks: for each unit the number of its conversation.
        by_concept: how much it counts that a unit speaks of the same in other words.
        answers_of: for each unit the place of the one that it answers, or -1, where answers are asked for: such a
            unit is about what its question is about.
        replies_to: for each unit the place of the one that it replies to, or -1: "Fearnley Terrace" is about the
            address that the assistant had asked for.
    """
    meanings = _Meanings(passages)
    nothing = np.zeros(passages.size)
    best = Relevance(*(nothing for _ in Relevance.__slots__))
    beside = _Beside(previous, talks)
    for asked in (asked for query in _telling(queries) for asked in _questions(query.text)):
        best = best.joined(_met(asked, passages, meanings, beside, spoken, by_concept, answers_of, replies_to))
    return best


class _Meanings:
    """The vectors of the words of passages."""

    def __init__(self, passages: Passages) -> None:
        self._known = word_vectors()
        names, places = passages.distinct()
        rows = self._known.rows(names)
        self._occurrences = passages.occurrences(places, rows >= 0)
        rows = rows[rows >= 0]
        self._of_terms = self._known.at(rows)
        weighed = self._of_terms * self._known.weights_at(rows)[:, np.newaxis]
        self._whole = _unit_length(self._occurrences.sums_of(weighed))

    def nearness(self, asked: Sequence[Facet]) -> Values:
        """For each passage (row) and facet how near its nearest word is."""
        facets = np.stack([self._vector(facet.terms) for facet in asked])
        return self._occurrences.highest_of(self._of_terms @ facets.T).astype(np.float64)

    def likeness(self, asked: Sequence[Facet]) -> Values:
        """For each passage how like it is to the question."""
        question = self._vector([term for facet in asked for term in facet.terms])
        found: Values = np.maximum(self._whole @ question, 0.0).astype(np.float64)
        return found

    def _vector(self, terms: Sequence[str]) -> Vectors:
        rows = self._known.rows(terms)
        rows = rows[rows >= 0]
        return _unit_length(self._known.weights_at(rows) @ self._known.at(rows))


class _Beside:
    """Which units stand beside one another in a conversation."""

    def __init__(self, previous: Places, talks: Places) -> None:
        self._previous = previous
        following = np.full(len(previous), -1, dtype=np.intp)
        later = np.flatnonzero(previous >= 0)
        following[previous[later]] = later
        before = np.where(previous >= 0, previous[previous], -1)
        self._near = (
            (previous, _OF_WHAT_IT_REPLIES_TO),
            (following, _OF_WHAT_FOLLOWS),
            (before, _OF_WHAT_FOLLOWS),
        )
        self._talks = talks

    def around(self, met: Values) -> Values:
        """What each unit (row) meets of each facet, or those beside it."""
        found = met.copy()
        for places, share in self._near:
            there = np.flatnonzero(places >= 0)
            found[there] = np.maximum(found[there], share * met[places[there]])
        return found

    def in_talk(self, met: Values) -> Values:
        """What any unit of its conversation meets of each facet."""
        highest = np.zeros((int(self._talks.max(initial=0)) + 1, met.shape[1]))
        np.maximum.at(highest, self._talks, met)
        return highest[self._talks]


def _unit_length(vectors: Vectors) -> Vectors:
    found: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6)
    return found


def _telling(queries: Sequence[RecallQuery]) -> list[RecallQuery]:
    message = queries[0]
    return [
        query
        for query in queries
        if query is message or (query.kind == "context" and query.weight > message.weight)
    ]


def _questions(text: str) -> list[tuple[Facet, ...]]:
    whole = facets(text)
    sentences = [facets(sentence) for sentence in _SENTENCE_END.split(text)[-_MOST_SENTENCES:]]
    several = [asked for asked in sentences if sum(facet.weight for facet in asked) > _TELLING]
    return [asked for asked in (whole, *several) if asked]


def _met(
    asked: Sequence[Facet],
    passages: Passages,
    meanings: _Meanings,
    beside: "_Beside",
    spoken: Sequence[Mapping[str, float]],
    trusted: float,
    answers_of: Places | None,
    replies_to: Places | None,
) -> Relevance:
    names = sorted({part for facet in asked for term in facet.terms for part in (term, *_characters(term))})
    places = {name: at for at, name in enumerate(names)}
    held = passages.frequencies_of(names) > 0
    by_words = np.stack([_by_words(facet, held, places) for facet in asked], axis=1)
    by_concept = trusted * _by_concept(asked, spoken)
    breadth = np.array([min(1.0, _CONCEPTS_OF_A_MESSAGE / max(len(of), 1)) for of in spoken])
    by_concept = (by_concept * breadth[:, np.newaxis])[passages.unit]
    met = np.maximum(by_words, by_concept)
    size = max(passages.size, _SMALLEST_STORE)
    found = (passages.best_of(met) >= _KIND_OF_IT).sum(axis=0)
    weights: Values = np.log(1 + (size - found + 0.5) / (found + 0.5)) * np.array(
        [facet.weight for facet in asked]
    )
    shares = weights * (1.0 / float(weights.sum()))
    by_itself = passages.best_of(weighted(met, shares))
    whole = passages.best_of(met)
    around = whole.copy()
    for near, share in ((answers_of, _OF_ITS_QUESTION), (replies_to, _OF_WHAT_IT_REPLIES_TO)):
        if near is not None:
            there = np.flatnonzero(near >= 0)
            around[there] = np.maximum(around[there], share * whole[near[there]])
    linked = np.zeros(passages.size, dtype=np.bool_) if replies_to is None else replies_to >= 0
    if answers_of is not None:
        linked[:] = True
    with_others = weighted(around, shares)
    nearest = np.maximum(_NEAR * (meanings.nearness(asked) - _FAR).clip(min=0), by_words)
    meant = passages.best_of(np.maximum(nearest, met))
    return Relevance(
        met=np.where(linked, np.maximum(by_itself, with_others), by_itself),
        by_words=passages.best_of(weighted(by_words, shares)),
        by_concept=passages.best_of(weighted(by_concept, shares)),
        by_meaning=passages.best_of(weighted(nearest, shares)),
        likeness=passages.best_of(meanings.likeness(asked)),
        around=weighted(beside.around(whole), shares),
        meant_around=weighted(beside.around(meant), shares),
        in_talk=weighted(beside.in_talk(meant), shares),
    )


def _by_concept(asked: Sequence[Facet], spoken: Sequence[Mapping[str, float]]) -> Values:
    found = np.zeros((len(spoken), len(asked)))
    for at, facet in enumerate(asked):
        if facet.concepts:
            for place, of in enumerate(spoken):
                if not facet.concepts.keys().isdisjoint(of):
                    found[place, at] = _shared(facet, of)
    return found


def _by_words(facet: Facet, held: NDArray[np.bool_], places: Mapping[str, int]) -> Values:
    found: Values = np.asarray(held[:, [places[term] for term in facet.terms]].all(axis=1), dtype=np.float64)
    characters: list[int] = [places[character] for term in facet.terms for character in _characters(term)]
    if characters:
        found = np.maximum(found, _BY_CHARACTERS * held[:, characters].mean(axis=1))
    return found


def _characters(term: str) -> tuple[str, ...]:
    return tuple(term) if len(term) > 1 and not term[0].isascii() and not term[0].islower() else ()


def _shared(facet: Facet, spoken: Mapping[str, float]) -> float:
    best = 0.0
    for concept, asked in facet.concepts.items():
        said = spoken.get(concept, 0.0)
        if said == 0.0:
            continue
        if asked == 1.0:
            best = max(best, _SAME_CONCEPT if said == 1.0 else _KIND_OF_IT)
        else:
            best = max(best, _BROADER if said == 1.0 else _BESIDE)
    return best
