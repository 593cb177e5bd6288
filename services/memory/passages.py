"""Long texts as passages: an answer of a thousand words matches a question by one of them, not by their sum."""

from collections.abc import Sequence

import numpy as np

from services.memory.incidence import Incidence, Places, Values

PASSAGE_TERMS = 80
"""Terms of a passage; a message that is not much longer is one passage."""
_OVERLAP = 20
_MOST_OF_A_UNIT = 24


class Passages:
    """The passages of units 0..n-1, as rows; most units have one."""

    def __init__(self, units: Sequence[Sequence[str]], whole: Incidence) -> None:
        """Take the terms of each unit, and the incidence of the units themselves."""
        self.size = len(units)
        parts = [_cut(terms) for terms in units]
        self.unit: Places = np.repeat(np.arange(self.size), [len(each) for each in parts])
        """For each row its unit."""
        self._begins = np.concatenate([[0], np.cumsum([len(each) for each in parts])[:-1]]).astype(np.intp)
        cut = len(self.unit) > self.size
        self._incidence = Incidence([passage for each in parts for passage in each]) if cut else whole

    @property
    def lengths(self) -> Values:
        """How many terms each row has."""
        return self._incidence.lengths

    def frequencies_of(self, terms: Sequence[str]) -> Values:
        """How often each row holds each of the terms (column), no term given twice."""
        return self._incidence.frequencies_of(terms)

    def best_of(self, values: Values) -> Values:
        """For each unit the highest value among its rows."""
        found: Values = np.maximum.reduceat(values, self._begins, axis=0)
        return found

    def best_row(self, values: Values) -> Places:
        """For each unit that of its rows with the highest value, the first of equal ones."""
        if len(values) == self.size:
            return np.arange(self.size)
        order = np.lexsort((np.arange(len(values)), -values, self.unit))
        first = np.searchsorted(self.unit[order], np.arange(self.size))
        return order[first].astype(np.intp)


def _cut(terms: Sequence[str]) -> list[Sequence[str]]:
    if len(terms) <= PASSAGE_TERMS + _OVERLAP:
        return [terms]
    starts = range(0, len(terms) - _OVERLAP, PASSAGE_TERMS - _OVERLAP)
    return [terms[start : start + PASSAGE_TERMS] for start in starts][:_MOST_OF_A_UNIT]
