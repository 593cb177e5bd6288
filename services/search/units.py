"""A user's units as ranking sees them: arrays, in which each unit has a place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Vectors = NDArray[np.float32]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Overview:
    """Arrays of a user's units, with their neighbours.

    Attributes:
        size: How many passages there are: most units are one. A unit has the place of its first; later ones, and
            what was removed, keep places of their own, and are in no mask.
        previous: The place of the message before each in its conversation; -1 if there is none.
        following: The same of the message after it.
        exchange: Of an answer of the assistant the place of the message before it, where one of both is long; of
            every other unit its own.
        answering: The places of answers of the assistant that follow a question.
        visit: A number for the hours in which it was said.
        visits: How many of these there are.
        coherence: How much neighbours are about the same, 0 to 1.
        by_assistant: Which the assistant said.
        asks: Which ask something.
        states_nothing: Which only ask, order or acknowledge.
        written: Which were written as memories.
    """

    size: int
    previous: Places
    following: Places
    exchange: Places
    answering: Places
    visit: Places
    visits: int
    coherence: float
    by_assistant: Mask
    asks: Mask
    states_nothing: Mask
    written: Mask


class Searched(Protocol):
    """All units of a user as arrays; a unit keeps its place. One of several passages is as near as the nearest."""

    def by_words(self, texts: Sequence[Sequence[str]], mask: Mask) -> tuple[Values, Values]:
        """Return the BM25 score of each unit for the terms of each text (row), and the highest possible ones."""

    def by_rare_terms(self, seeds: Sequence[int], without: Sequence[str], places: Places) -> Values:
        """Return for each of some units (row) the share of its rare terms that units at some places have."""

    def by_meaning(self, vectors: NDArray[np.float32]) -> Values:
        """Return for each vector (row) its cosine with each unit; NaN where a unit has no embedding."""

    def by_neighbours(self, places: Places) -> Values:
        """Return how alike some units (columns) are to the messages before and after them: cosines, or 0."""

    def overview(self) -> Overview:
        """Return properties of all units, with the unit before and after each."""
