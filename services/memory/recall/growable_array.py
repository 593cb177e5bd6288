"""An array that grows at its end."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

_SPARE = 0.25


class GrowableArray:
    """Rows of one type, with room for more: adding a few costs no copy of the others."""

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        """Take what a row is: one value, or `width` of them."""
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.width = width
        self._size = 0
        self._room: NDArray[Any] = self._empty(0)

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> NDArray[Any]:
        """All rows; what is written into them is written here."""
        return self._room[: self._size]

    @property
    def nbytes(self) -> int:
        """Bytes that it takes, the spare room among them."""
        return self._room.nbytes

    def append(self, rows: ArrayLike) -> None:
        """Add rows at the end."""
        more = np.asarray(rows, dtype=self.dtype)
        needed = self._size + len(more)
        if needed > len(self._room):
            room = self._empty(needed + int(_SPARE * self._size))
            room[: self._size] = self.values
            self._room = room
        self._room[self._size : needed] = more
        self._size = needed

    def become(self, rows: NDArray[Any]) -> None:
        """Hold these rows instead."""
        self._room = np.array(rows, dtype=self.dtype)
        self._size = len(rows)

    def _empty(self, rows: int) -> NDArray[Any]:
        return np.empty(rows if self.width is None else (rows, self.width), dtype=self.dtype)
