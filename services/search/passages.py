"""Long texts as passages: an answer of a thousand words matches a question by one of them, not by their sum."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from services.search.sequences import Places, TermSequences
from services.search.term_matrix import TermCounts, Values

PASSAGE_TERMS = 80
"""Terms of a passage; a message that is not much longer is one passage."""
_OVERLAP = 20
_STEP = PASSAGE_TERMS - _OVERLAP
_MOST_OF_A_UNIT = 24


def passages_of(lengths: Places) -> Places:
    """How many passages units have, by the numbers of their terms."""
    rows = np.where(lengths > PASSAGE_TERMS + _OVERLAP, np.ceil((lengths - _OVERLAP) / _STEP), 1)
    return np.minimum(rows, _MOST_OF_A_UNIT).astype(np.intp)


class Passages:
    """The passages of units 0..n-1, as rows; most units have one."""

    def __init__(self, units: TermSequences, whole: TermCounts) -> None:
        """Take the terms of each unit, and how often the units themselves hold which."""
        self.size = units.size
        lengths = units.lengths
        rows = passages_of(lengths)
        self.unit: Places = np.repeat(np.arange(self.size), rows)
        """For each row its unit."""
        self._begins = np.cumsum(rows) - rows
        self._counts = whole
        if len(self.unit) > self.size:
            number = np.arange(len(self.unit)) - self._begins[self.unit]
            left = lengths[self.unit] - number * _STEP
            cut = np.where(rows[self.unit] > 1, np.minimum(left, PASSAGE_TERMS), left)
            self._counts = TermCounts(units.cut(units.begins[self.unit] + number * _STEP, cut))

    @property
    def lengths(self) -> Values:
        """How many terms each row has."""
        return self._counts.lengths

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """The number of each term."""
        return self._counts.texts.vocabulary

    @property
    def numbers(self) -> NDArray[np.int32]:
        """The terms of all rows as numbers, row by row."""
        return self._counts.texts.numbers

    @property
    def texts(self) -> Places:
        """For each of `numbers` its row."""
        return self._counts.rows

    def frequencies_of(self, terms: Sequence[str]) -> Values:
        """How often each row holds each of the terms (column), no term given twice."""
        return self._counts.frequencies_of(terms)

    def best_of(self, values: Values) -> Values:
        """For each unit the highest value among its rows."""
        if len(values) == self.size:
            return values
        found: Values = np.maximum.reduceat(values, self._begins, axis=0)
        return found

    def best_row(self, values: Values) -> Places:
        """For each unit that of its rows with the highest value, the first of equal ones."""
        if len(values) == self.size:
            return np.arange(self.size)
        order = np.lexsort((np.arange(len(values)), -values, self.unit))
        first = np.searchsorted(self.unit[order], np.arange(self.size))
        return order[first].astype(np.intp)
