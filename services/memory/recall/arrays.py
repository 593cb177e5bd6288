"""Arrays that grow at their end, and the inverted index of a working set: which units contain which terms."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from services.search.units import Places

_SPARE = 0.25

_LEAST_BEHIND, _SHARE_BEHIND = 64, 0.1
"""Number of units, and share of all units, that may be scanned term by term before the postings are rebuilt."""

Counts = NDArray[np.uint16]


def boundaries(lengths: Places) -> Places:
    """Return the starts of consecutive stretches with these lengths, followed by the end of the last one."""
    found = np.zeros(len(lengths) + 1, dtype=np.intp)
    np.cumsum(lengths, out=found[1:])
    return found


def stretches(begins: Places, lengths: Places) -> Places:
    """Return the indexes of several stretches, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths - begins, lengths)


class GrowableArray:
    """Rows of one type with spare capacity: appending a few does not copy the others."""

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        """Make an array whose rows hold one value of the type, or `width` of them."""
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.width = width
        self._room: NDArray[Any] = self._empty(0)
        self.values: NDArray[Any] = self._room
        """A view of all rows."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes, the spare room among them."""
        return self._room.nbytes

    def append(self, rows: ArrayLike) -> None:
        """Add rows at the end."""
        more = np.asarray(rows, dtype=self.dtype)
        size = len(self.values)
        needed = size + len(more)
        if needed > len(self._room):
            room = self._empty(needed + int(_SPARE * size))
            room[:size] = self.values
            self._room = room
        self._room[size:needed] = more
        self.values = self._room[:needed]

    def become(self, rows: NDArray[Any]) -> None:
        """Replace all rows by these."""
        self._room = self.values = np.array(rows, dtype=self.dtype)

    def _empty(self, rows: int) -> NDArray[Any]:
        return np.empty(rows if self.width is None else (rows, self.width), dtype=self.dtype)


class GrowableRows:
    """Rows of different lengths, stored consecutively."""

    def __init__(self, dtype: DTypeLike) -> None:
        """Take the type of a value."""
        self._values = GrowableArray(dtype)
        self._bounds = GrowableArray(np.intp)
        self._bounds.append([0])

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a value."""
        return self._values.dtype

    @property
    def values(self) -> NDArray[Any]:
        """A view of the values of all rows."""
        return self._values.values

    @property
    def bounds(self) -> Places:
        """The beginning of each row, and the end of the last."""
        return self._bounds.values

    @property
    def lengths(self) -> Places:
        """The number of values in each row."""
        return np.diff(self.bounds)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes, the spare room among them."""
        return self._values.nbytes + self._bounds.nbytes

    def append(self, values: ArrayLike, lengths: ArrayLike) -> None:
        """Add rows at the end."""
        last = int(self.bounds[-1])
        self._values.append(values)
        self._bounds.append(last + np.cumsum(np.asarray(lengths, dtype=np.intp)))

    def row(self, place: int) -> NDArray[Any]:
        """A view of the values of one row."""
        bounds = self.bounds
        return self.values[bounds[place] : bounds[place + 1]]

    def indexes(self, places: Places) -> tuple[Places, Places]:
        """Return the indexes of some rows in `values`, consecutively, and where each row begins among them."""
        bounds = self.bounds
        lengths = bounds[places + 1] - bounds[places]
        return stretches(bounds[places], lengths), boundaries(lengths)

    def keep(self, places: Places) -> None:
        """Keep only these rows."""
        at, bounds = self.indexes(places)
        self._values.become(self.values[at])
        self._bounds.become(bounds)


class Postings:
    """Maps each term to the units that contain it, with its count; the newest units are scanned instead."""

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
        """Build postings from units. Each unit is a row of different term numbers below `terms`, with the count of
        each."""
        self._size = len(rows)
        order = np.argsort(rows.values, kind="stable")
        self._begins = boundaries(np.bincount(rows.values, minlength=terms))
        self._places = np.repeat(np.arange(self._size, dtype=np.int32), rows.lengths)[order]
        self._counts = counts[order]

    def of(
        self, numbers: Places, rows: GrowableRows, counts: Counts, terms: int
    ) -> tuple[Places, Places, NDArray[np.float64]]:
        """Return the units that contain some different terms: their places, the indexes of the terms, and the
        counts."""
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
