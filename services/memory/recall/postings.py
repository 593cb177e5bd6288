"""The inverted index of a working set: which units contain which terms."""

import numpy as np
from numpy.typing import NDArray

from services.memory.recall.growable_array import GrowableRows
from services.search.sequences import Places, boundaries

_LEAST_BEHIND, _SHARE_BEHIND = 64, 0.1
"""Units that may be scanned term by term before the postings are rebuilt: in number, or as a share."""

Counts = NDArray[np.uint16]


class Postings:
    """For each term the units that contain it, and how often; the newest units are scanned instead."""

    def __init__(self) -> None:
        """Begin empty."""
        self._size = 0
        self._begins: Places = np.zeros(1, dtype=np.intp)
        self._places = np.zeros(0, dtype=np.int32)
        self._counts = np.zeros(0, dtype=np.uint16)

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        return self._begins.nbytes + self._places.nbytes + self._counts.nbytes

    def make(self, rows: GrowableRows, counts: Counts, terms: int) -> None:
        """Build them from units, each a row of different term numbers below `terms`, and how often each occurs."""
        self._size = len(rows)
        order = np.argsort(rows.values, kind="stable")
        self._begins = boundaries(np.bincount(rows.values, minlength=terms))
        self._places = np.repeat(np.arange(self._size, dtype=np.int32), rows.lengths)[order]
        self._counts = counts[order]

    def of(
        self, numbers: Places, rows: GrowableRows, counts: Counts, terms: int
    ) -> tuple[Places, Places, NDArray[np.float64]]:
        """Return which units contain some different terms, and how often: their places, term indexes, counts."""
        behind = len(rows) - self._size
        if behind > max(_LEAST_BEHIND, _SHARE_BEHIND * self._size):
            self.make(rows, counts, terms)
        if (more := terms + 1 - len(self._begins)) > 0:  # terms of the newest units alone
            self._begins = np.append(self._begins, np.full(more, self._begins[-1]))
        begins = self._begins[numbers]
        lengths = self._begins[numbers + 1] - begins
        at = np.repeat(np.arange(len(numbers)), lengths)
        taken = np.arange(len(at)) + (begins - np.cumsum(lengths) + lengths)[at]
        places, found = self._places[taken], self._counts[taken]
        if self._size < len(rows):
            bounds = rows.bounds[self._size :]
            index = np.full(terms, -1, dtype=np.intp)
            index[numbers] = np.arange(len(numbers))
            asked = index[rows.values[bounds[0] :]]
            inside = (asked >= 0).nonzero()[0] + bounds[0]
            units = np.searchsorted(bounds, inside, side="right") - 1 + self._size
            places, at = np.concatenate([places, units]), np.concatenate([at, asked[inside - bounds[0]]])
            found = np.concatenate([found, counts[inside]])
        return places.astype(np.intp), at, found.astype(np.float64)
