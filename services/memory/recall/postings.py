"""The inverted index of a working set: which units contain which terms."""

import numpy as np
from numpy.typing import NDArray

from services.memory.recall.growable_array import GrowableRows
from services.search.sequences import Places, stretches

_LEAST_BEHIND, _SHARE_BEHIND = 64, 0.1
"""Units that may be scanned term by term before the postings are rebuilt: in number, or as a share."""


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

    def make(self, rows: GrowableRows, terms: int) -> None:
        """Build them from units, each a row of term numbers below `terms`."""
        size = len(rows)
        of_numbers = np.repeat(np.arange(size, dtype=np.int64), rows.lengths)
        cells, counts = np.unique(rows.values.astype(np.int64) * max(size, 1) + of_numbers, return_counts=True)
        of_term, places = np.divmod(cells, max(size, 1))
        self._size = size
        self._begins = np.searchsorted(of_term, np.arange(terms + 1)).astype(np.intp)
        self._places = places.astype(np.int32)
        self._counts = counts.clip(max=65_535).astype(np.uint16)

    def of(self, numbers: Places, rows: GrowableRows, terms: int) -> tuple[Places, Places, Places]:
        """Return which units contain some terms, and how often: unit places, term indexes, and counts."""
        behind = len(rows) - self._size
        if behind > max(_LEAST_BEHIND, _SHARE_BEHIND * self._size):
            self.make(rows, terms)
        places, at, counts = self._made(numbers)
        if self._size == len(rows):
            return places, at, counts
        others, own, repeated = _looked_through(numbers, rows, self._size, terms)
        return np.concatenate([places, others]), np.concatenate([at, own]), np.concatenate([counts, repeated])

    def _made(self, numbers: Places) -> tuple[Places, Places, Places]:
        at = (numbers < len(self._begins) - 1).nonzero()[0]
        begins = self._begins[numbers[at]]
        lengths = self._begins[numbers[at] + 1] - begins
        taken = stretches(begins, lengths)
        return self._places[taken].astype(np.intp), np.repeat(at, lengths), self._counts[taken].astype(np.intp)


def _looked_through(
    numbers: Places, rows: GrowableRows, first: int, terms: int
) -> tuple[Places, Places, NDArray[np.intp]]:
    bounds = rows.bounds[first:]
    index = np.full(terms, -1, dtype=np.intp)
    index[numbers] = np.arange(len(numbers))
    asked = index[rows.values[bounds[0] :]]
    inside = (asked >= 0).nonzero()[0]
    units = np.searchsorted(bounds - bounds[0], inside, side="right") - 1
    cells, repeated = np.unique(units * len(numbers) + asked[inside], return_counts=True)
    units, own = np.divmod(cells, len(numbers))
    return units + first, own, repeated
