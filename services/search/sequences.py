"""Stretches of one array, one after the other."""

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]


def boundaries(lengths: Places) -> Places:
    """Starts of consecutive stretches of these lengths, followed by the end of the last one."""
    found = np.zeros(len(lengths) + 1, dtype=np.intp)
    np.cumsum(lengths, out=found[1:])
    return found


def stretches(begins: Places, lengths: Places) -> Places:
    """The indexes of several stretches, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths - begins, lengths)
