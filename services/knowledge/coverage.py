"""Coverage: how much of a question a unit of text answers by its words."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from services.search.candidates import CandidateSet
from services.search.queries import RecallQuery
from services.search.term_matrix import Values, weighted
from services.text.tokenizer import informative_terms, lone_characters

# What a message leaves to its neighbours to say counts a little less than what it says.
_BY_NEIGHBOURS = 0.8
# A Chinese word is cut differently from text to text: that its characters are there says something, and so
# does one that is a word by itself; but characters recur in words that have nothing in common.
_BY_CHARACTERS = 0.3
_LONE = 0.3
_SENTENCE_END = re.compile(r"[。！？!?；;\n]+|\.\s")

_Question = tuple[tuple[str, float], ...]


def coverage(
    queries: Sequence[RecallQuery], field: CandidateSet, coherence: float, echoing: NDArray[np.bool_]
) -> Values:
    """For each unit the share (0..1), by weight, of the informative terms of a query or a sentence it holds.

    Of those that only its neighbours hold a part counts, as much as the talk is coherent (0..1), and nothing
    of those that are in `echoing`; of a Chinese word of which the unit holds but the characters, another part.
    """
    best = np.zeros(field.size)
    for question in sorted({question for query in queries for question in _questions(query.text)}):
        names = [name for name, _ in question]
        weights = field.weights(names) * np.array([factor for _, factor in question])
        every = sorted(frozenset(names).union(*(name for name in names if _is_composed(name))))
        places = {name: at for at, name in enumerate(every)}
        held = field.frequencies_of(every)
        near = field.with_neighbours(np.where(echoing[:, np.newaxis], 0.0, held))
        own, around = (
            weighted(_parts(table > 0, names, places), weights / weights.sum()) for table in (held, near)
        )
        best = np.maximum(best, np.maximum(own, _BY_NEIGHBOURS * coherence * around))
    return best


def _parts(held: NDArray[np.bool_], names: Sequence[str], places: dict[str, int]) -> Values:
    """The share of each name that each unit holds."""
    parts = held[:, [places[name] for name in names]].astype(np.float64)
    for at, name in enumerate(names):
        if _is_composed(name):
            characters = held[:, [places[character] for character in sorted(set(name))]].mean(axis=1)
            parts[:, at] = np.maximum(parts[:, at], _BY_CHARACTERS * characters)
    return parts


def _is_composed(name: str) -> bool:
    return len(name) > 1 and not name[0].isascii() and not name[0].islower()


def _questions(text: str) -> list[_Question]:
    """The informative terms of the text and of its sentences: the question may be only one of them.

    A sentence with one such term is passed over, since whatever holds that term would cover it.
    """
    sentences = [_question(sentence) for sentence in _SENTENCE_END.split(text)]
    several = [question for question in sentences if len(question) > 1]
    return [question for question in (_question(text), *several) if question]


def _question(text: str) -> _Question:
    words = informative_terms(text)
    return (*_each(words, 1.0), *_each(lone_characters(text) - words, _LONE))


def _each(names: Iterable[str], factor: float) -> list[tuple[str, float]]:
    return [(name, factor) for name in sorted(names)]
