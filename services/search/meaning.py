"""How near the words of passages are in meaning to those of a question, by vectors of words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.search.passages import Passages
from services.search.sequences import beginnings, boundaries
from services.search.term_matrix import Values
from services.text.word_vectors import Vectors, word_vectors

Rows = NDArray[np.int32]
Lengths = NDArray[np.float32]

_SHORTEST = 1e-6
_DIGITS = 5
"""Places after the point that mean something: what is equal is not to be told apart by the order of a sum."""


@dataclass(frozen=True, slots=True)
class WordMeanings:
    """Word vectors of passages: the part of their meaning that is independent of the question.

    Attributes:
        rows: For each term number the row of the term's vector; -1 where it has none.
        lengths: For each passage the length of the sum of its words' vectors, each weighted by how much it says.
    """

    rows: Rows
    lengths: Lengths

    @classmethod
    def of(cls, passages: Passages) -> "WordMeanings":
        """Look up the words of passages."""
        rows = rows_of(list(passages.vocabulary))
        return cls(rows, lengths_of(passages, rows))


def rows_of(terms: Sequence[str]) -> Rows:
    """The row of each term's vector; -1 where it has none."""
    return word_vectors().rows(terms).astype(np.int32)


def lengths_of(passages: Passages, rows: Rows) -> Lengths:
    """`WordMeanings.lengths` for `WordMeanings.rows`."""
    words = _Words(passages, rows)
    vectors = word_vectors()
    weighted = vectors.at(words.rows) * vectors.weights_at(words.rows)[:, np.newaxis]
    sums = words.over(np.add, np.ascontiguousarray(weighted.T))
    found: Lengths = np.sqrt(np.einsum("ij,ij->j", sums, sums))
    return found


class _Words:
    """The words of passages that have a vector: each row once, and where it occurs."""

    def __init__(self, passages: Passages, rows: Rows) -> None:
        found = rows[passages.numbers]
        known = (found >= 0).nonzero()[0]
        found = found[known]
        texts = passages.texts[known]
        here = np.zeros(int(found.max(initial=-1)) + 1, dtype=np.bool_)
        here[found] = True
        self.rows = here.nonzero()[0]
        own = np.zeros(len(here), dtype=np.intp)
        own[self.rows] = np.arange(len(self.rows))
        self._size = len(passages.unit)
        self._occurrences = own[found]
        self._begins = beginnings(texts)
        self._filled = texts[self._begins]

    def over(self, how: np.ufunc, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Reduce values of the words (columns) to values of the passages; 0 for one without words."""
        reduced = np.zeros((len(values), self._size), dtype=np.float32)
        if len(self._filled):
            reduced[:, self._filled] = how.reduceat(values.take(self._occurrences, axis=1), self._begins, axis=1)
        return reduced


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near passages are to one question.

    Attributes:
        of_words: For each passage (row) and part of the question (column) the cosine of the nearest word.
        of_whole: For each passage its cosine to the question as a whole, 0 at the least.
    """

    of_words: Values
    of_whole: Values


def nearness(
    passages: Passages, known: WordMeanings, questions: Sequence[Sequence[Sequence[str]]]
) -> list[Nearness]:
    """The nearness of passages to each question, which is given as the terms of each of its parts."""
    parts = [terms for question in questions for terms in question]
    if not parts:
        return []
    words = _Words(passages, known.rows)
    vectors = word_vectors()
    own = vectors.at(words.rows)
    begins = boundaries(np.array([len(question) for question in questions]))
    sums = _sums(parts)
    near = words.over(np.maximum, _of_length_one(sums) @ own.T)
    wholes = _of_length_one(np.add.reduceat(sums, begins[:-1], axis=0))
    like = words.over(np.add, (wholes @ own.T) * vectors.weights_at(words.rows))
    like = np.maximum(like / np.maximum(known.lengths, _SHORTEST), 0.0)
    return [
        Nearness(near[begin:end].T.astype(np.float64).round(_DIGITS), whole.astype(np.float64).round(_DIGITS))
        for begin, end, whole in zip(begins[:-1].tolist(), begins[1:].tolist(), like, strict=True)
    ]


def _sums(texts: Sequence[Sequence[str]]) -> Vectors:
    """The sum of the vectors of each text's terms, each weighted by how much it says; no text without a term."""
    vectors = word_vectors()
    rows = vectors.rows([term for terms in texts for term in terms])
    known = rows >= 0
    rows = np.where(known, rows, 0)
    weights = np.where(known, vectors.weights_at(rows), np.float32(0.0))
    begins = boundaries(np.array([len(terms) for terms in texts]))
    found: Vectors = np.add.reduceat(vectors.at(rows) * weights[:, np.newaxis], begins[:-1], axis=0)
    return found


def _of_length_one(vectors: Vectors) -> Vectors:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    found: Vectors = vectors / np.maximum(lengths, _SHORTEST)[:, np.newaxis]
    return found
