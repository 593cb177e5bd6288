"""How far each unit is about what a question is about, in the same words or in others."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from services.memory.concepts import Facet, facets
from services.memory.incidence import Values, weighted
from services.memory.passages import Passages
from services.memory.queries import RecallQuery
from services.memory.sequences import Places

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
_CONCEPTS_OF_A_MESSAGE = 10
"""A text that speaks of more says less of each."""
_MOST_SENTENCES = 6
_TELLING = 1.2
"""A sentence about less is passed over: whatever holds its one word would meet it."""
_SENTENCE_END = re.compile(r"[。！？!?；;\n]+|\.\s")


def relevance(
    queries: Sequence[RecallQuery],
    passages: Passages,
    spoken: Sequence[Mapping[str, float]],
    *,
    by_concept: float = 1.0,
    answers_of: Places | None = None,
    replies_to: Places | None = None,
) -> Values:
    """For each unit the share (0..1), by weight, of the facets of a question that one of its passages meets.

    The question is the message or a sentence of it; where the message leaves its subject open, also what was said
    before. A facet weighs the more the fewer units meet it.

    Args:
        queries: those of the recall, the message first.
        passages: the units' passages.
        spoken: for each unit the concepts of which it speaks.
        by_concept: how much it counts that a unit speaks of the same in other words.
        answers_of: for each unit the place of the one that it answers, or -1, where answers are asked for: such a
            unit is about what its question is about.
        replies_to: for each unit the place of the one that it replies to, or -1: "Fearnley Terrace" is about the
            address that the assistant had asked for.
    """
    best = np.zeros(passages.size)
    for asked in (asked for query in _telling(queries) for asked in _questions(query.text)):
        best = np.maximum(best, _met(asked, passages, spoken, by_concept, answers_of, replies_to))
    return best


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
    spoken: Sequence[Mapping[str, float]],
    trusted: float,
    answers_of: Places | None,
    replies_to: Places | None,
) -> Values:
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
    if answers_of is not None:
        return weighted(around, shares)
    linked = np.zeros(passages.size, dtype=np.bool_) if replies_to is None else replies_to >= 0
    return np.where(linked, np.maximum(by_itself, weighted(around, shares)), by_itself)


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
