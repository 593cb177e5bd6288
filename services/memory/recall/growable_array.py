"""Arrays that grow at their end."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from services.search.sequences import Places, boundaries, stretches

_SPARE = 0.25


class GrowableArray:
    """Rows of one type with spare capacity: appending a few does not copy the others."""

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        """Take the type of a row: one value, or `width` of them."""
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
