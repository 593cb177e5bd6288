"""Term-document matrix as arrays, with the weights, counts and comparisons made from it."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from services.search.sequences import Places, TermSequences

Values = NDArray[np.float64]


class TermCounts:
    """How often each of several texts holds which terms."""

    def __init__(self, texts: TermSequences) -> None:
        self.size = texts.size
        self.lengths: Values = texts.lengths.astype(np.float64)
        """How many terms each text has, repeated ones counted again."""
        self.texts = texts
        self.rows = texts.rows
        """For each of the numbers its text."""

    def frequencies_of(self, terms: Sequence[str]) -> Values:
        """How often each text (row) holds each of the terms (column), no term given twice."""
        columns = np.full(len(self.texts.vocabulary) + 1, -1, dtype=np.intp)
        columns[self.texts.numbered(terms)] = np.arange(len(terms))
        columns[-1] = -1
        at = columns[self.texts.numbers]
        asked = (at >= 0).nonzero()[0]
        cells = self.rows[asked] * len(terms) + at[asked]
        table = np.bincount(cells, minlength=self.size * len(terms)).astype(np.float64)
        return table.reshape(self.size, len(terms))


class TermMatrix(TermCounts):
    """The terms of units 0..n-1, and how alike the units are by them.

    Two units are alike by the terms they share, each weighed by how rare it is among the units: the
    cosine of their vectors of inverse document frequencies (Salton and Buckley, "Term-weighting approaches
    in automatic text retrieval", 1988).
    """

    def __init__(self, units: TermSequences) -> None:
        super().__init__(units)
        present = np.zeros(len(units.vocabulary) + 1, dtype=np.bool_)
        present[units.numbers] = True
        # Terms that occur here are numbered; the last number stands for all others.
        self._own = np.where(present, np.cumsum(present) - 1, -1)
        self._width = int(present.sum())
        self._terms = self._own[units.numbers]
        self._enter()
        self._compare()

    def found(self, terms: Sequence[str]) -> Places:
        """Number of units that contain each term."""
        return self._held_by(self._own[self.texts.numbered(terms)])

    def found_of(self, numbers: Places) -> Places:
        """The same for terms by their numbers."""
        return self._held_by(self._own[numbers])

    def _held_by(self, own: Places) -> Places:
        return np.append(self._frequencies, 0)[own]

    def likeness(self, others: Places) -> Values:
        """How alike each unit is to another one, whose place is given for it; 0 for a place of -1."""
        its = others[self._entry_rows]
        both = (its >= 0).nonzero()[0]
        both = both[self._held[its[both], self._entry_columns[both]]]
        columns = self._entry_columns[both]
        products = self._values[both] * self._rarity[columns] / self._norms[its[both]]
        return _sums(self._entry_rows[both], products, self.size)

    def chance(self) -> float:
        """How alike two units are on the average; there are two at least."""
        total = np.bincount(self._entry_columns, self._values)
        own = float(np.square(self._values).sum())
        return (float(np.square(total).sum()) - own) / (self.size * (self.size - 1))

    def likeness_to(self, unit: int, without: Collection[str]) -> Values:
        """How alike each unit is to the one given, by all but some terms."""
        its = self._entry_rows == unit
        vector = np.zeros(len(self._rarity))
        vector[self._entry_columns[its]] = self._values[its]
        own = self._own[self.texts.numbered(list(without))]
        columns = self._columns[own[own >= 0]]
        vector[columns[columns >= 0]] = 0.0
        return _sums(self._entry_rows, self._values * vector[self._entry_columns], self.size)

    def _enter(self) -> None:
        """Make an entry for each unit and term that occurs more than once, in the order of units."""
        occurrences = np.bincount(self._terms, minlength=self._width)
        repeated = occurrences > 1
        self._columns = np.where(repeated, np.cumsum(repeated) - 1, -1)
        width = int(repeated.sum())
        at = self._columns[self._terms]
        inside = (at >= 0).nonzero()[0]
        self._held = np.zeros((self.size, width), dtype=np.bool_)
        self._held[self.rows[inside], at[inside]] = True
        self._entry_rows, self._entry_columns = np.divmod(np.flatnonzero(self._held), max(width, 1))
        held_by = np.bincount(self._entry_columns, minlength=width)
        self._frequencies = np.ones(self._width, dtype=np.intp)
        self._frequencies[repeated] = held_by

    def _compare(self) -> None:
        """Weigh the entries; a term that one unit alone holds counts in its length and in nothing else."""
        held_by = self._frequencies[self._columns >= 0]
        self._rarity = np.log(self.size / np.maximum(held_by, 1))
        squares = np.bincount(self._entry_rows, self._rarity[self._entry_columns] ** 2, minlength=self.size)
        alone = np.bincount(self.rows[self._columns[self._terms] < 0], minlength=self.size)
        self._norms = np.sqrt(squares + alone * np.log(max(self.size, 1)) ** 2)
        self._norms[self._norms == 0] = 1.0
        self._rarity[held_by == 1] = 0.0
        self._values = self._rarity[self._entry_columns] / self._norms[self._entry_rows]


def weighted(table: Values, weights: Values) -> Values:
    """The weighted sum of each row.

    Without the library of linear algebra: its threads would wait for each other longer than the sum takes
    wherever the machine has something else to do.
    """
    found: Values = np.einsum("ij,j->i", table, weights)
    return found


def _sums(places: Places, values: Values, size: int) -> Values:
    """The sum of the values at each place."""
    return np.bincount(places, values, minlength=size).astype(np.float64)
