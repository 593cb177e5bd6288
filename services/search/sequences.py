"""Sequences of terms as numbers, one after the other in one array."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]
Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TermSequences:
    """The terms of several texts, in order.

    Attributes:
        numbers: Those of the first text, then those of the second, and so on.
        begins: For each text where its terms begin; one more for the end of the last.
        vocabulary: The number of each term, in the order of the numbers, which are 0 and up; it may hold terms
            that no text here has.
    """

    numbers: Numbers
    begins: Places
    vocabulary: Mapping[str, int]

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]]) -> "TermSequences":
        """Number the terms of texts."""
        vocabulary: defaultdict[str, int] = defaultdict()
        vocabulary.default_factory = vocabulary.__len__
        lengths = [len(terms) for terms in texts]
        every = map(vocabulary.__getitem__, chain.from_iterable(texts))
        numbers = np.fromiter(every, np.int32, sum(lengths))
        return cls(numbers, boundaries(np.array(lengths, dtype=np.intp)), dict(vocabulary))

    @property
    def size(self) -> int:
        """How many texts there are."""
        return len(self.begins) - 1

    @property
    def lengths(self) -> Places:
        """How many terms each text has, repeated ones counted again."""
        return self.begins[1:] - self.begins[:-1]

    @property
    def rows(self) -> Places:
        """For each number the text that it is of."""
        return np.repeat(np.arange(self.size), self.lengths)

    def at(self, place: int) -> Numbers:
        """The numbers of one text."""
        return self.numbers[self.begins[place] : self.begins[place + 1]]

    def taken(self, places: Places) -> "TermSequences":
        """Those at the places, in that order."""
        return self.cut(self.begins[places], self.lengths[places])

    def cut(self, begins: Places, lengths: Places) -> "TermSequences":
        """Stretches of all numbers, each as a text."""
        return TermSequences(self.numbers[stretches(begins, lengths)], boundaries(lengths), self.vocabulary)

    def numbered(self, terms: Sequence[str]) -> Places:
        """The numbers of terms; -1 for one that is not known."""
        return np.array([self.vocabulary.get(term, -1) for term in terms], dtype=np.intp)


def boundaries(lengths: Places) -> Places:
    """Starts of consecutive stretches of these lengths, followed by the end of the last one."""
    found = np.zeros(len(lengths) + 1, dtype=np.intp)
    np.cumsum(lengths, out=found[1:])
    return found


def beginnings(values: NDArray[Any]) -> Places:
    """Mask of the values that differ from the one before; the first one counts as different."""
    differs = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs.nonzero()[0]


def stretches(begins: Places, lengths: Places) -> Places:
    """The indexes of several stretches, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths - begins, lengths)
