"""The units that a recall found, as arrays: which are neighbours, which share a visit, which share terms."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from services.memory.hits import Unit
from services.memory.parameters import BM25_B, BM25_K1

Values = NDArray[np.float64]
Places = NDArray[np.intp]

# A term that a message repeats says little more than one that it has once.
_SATURATION = 0.9
_SMALLEST_STORE = 100
"""Where less was found, terms are weighed as if there were so many units: among five of them, what a question
is about may well be in most."""
# So many pairs for each unit are expected in a talk of which a question finds a part.
_COMMON_PAIRS = 0.25


class Field:
    """The units at their places 0..n-1, and what follows from their terms and their order alone.

    Terms are weighed by how rare they are among these units (the probabilistic idf of Robertson and
    Spärck Jones): of the whole store no statistics are at hand, and among what a question found they tell
    what distinguishes one unit from another.
    """

    def __init__(self, units: Sequence[Unit], visit_gap: timedelta) -> None:
        self.units = units
        self.size = len(units)
        self.places = {unit.id: place for place, unit in enumerate(units)}
        self.counts = [Counter(unit.terms) for unit in units]
        self.frequencies = Counter(term for counts in self.counts for term in counts)
        self.previous = np.array([self.places.get(unit.previous or "", -1) for unit in units], dtype=np.intp)
        self.following = np.full(self.size, -1, dtype=np.intp)
        for place, before in enumerate(self.previous):
            if before >= 0:
                self.following[before] = place
        self.visits = self._visits(visit_gap)

    def weight(self, term: str) -> float:
        """How much a term distinguishes: above 0, the highest for one that no unit holds."""
        found = self.frequencies[term]
        size = max(self.size, _SMALLEST_STORE)
        return math.log(1 + (size - found + 0.5) / (found + 0.5))

    def frequencies_of(self, terms: Sequence[str]) -> Values:
        """How often each unit (row) holds each term (column)."""
        table = [[counts[term] for term in terms] for counts in self.counts]
        return np.array(table, dtype=np.float64).reshape(self.size, len(terms))

    def bm25(self, frequencies: Values, weights: Values) -> Values:
        """How well units (rows of term frequencies) match a question: BM25 with the weights given.

        After Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
        """
        lengths = np.array([counts.total() for counts in self.counts], dtype=np.float64)
        relative = lengths / max(float(lengths.mean()), 1.0)
        norm = BM25_K1 * (1 - BM25_B + BM25_B * relative)[:, np.newaxis]
        found: Values = (frequencies * (BM25_K1 + 1) / (frequencies + norm)) @ weights
        return found

    def with_neighbours(self, values: Values) -> Values:
        """The values of each unit, row by row, with those of the units before and after it added."""
        total = values.copy()
        for neighbours in (self.previous, self.following):
            there = neighbours >= 0
            total[there] += values[neighbours[there]]
        return total

    def over_visits(self, values: Values) -> Values:
        """The sum over the unit's visit, row by row."""
        sums = np.zeros((int(self.visits.max(initial=-1)) + 1, values.shape[1]))
        np.add.at(sums, self.visits, values)
        found: Values = sums[self.visits]
        return found

    def coherence(self, fully_at: float, pair_prior: float) -> float:
        """How much neighbours are about the same, 0..1.

        The mean similarity of a unit and the one before it, less that of any two units, in shares of
        `fully_at`; fewer pairs than some `pair_prior` prove little, and where most units have no neighbour
        the few that have one are not to be preferred for it.
        """
        pairs = [(place, int(before)) for place, before in enumerate(self.previous) if before >= 0]
        if not pairs:
            return 0.0
        near = sum(_product(self._vectors[one], self._vectors[other]) for one, other in pairs) / len(pairs)
        total: defaultdict[str, float] = defaultdict(float)
        own = 0.0
        for vector in self._vectors:
            for term, value in vector.items():
                total[term] += value
                own += value * value
        chance = (sum(value * value for value in total.values()) - own) / (self.size * (self.size - 1))
        trusted = min(1.0, max(0.0, (near - chance) / fully_at))
        common = min(1.0, len(pairs) / (_COMMON_PAIRS * self.size))
        return trusted * common * len(pairs) / (len(pairs) + pair_prior)

    def association(self, scores: Values, seeds: int, asked: set[str]) -> Values:
        """What shares its distinctive terms with the best units, 0..1; the terms of the question left out.

        Pseudo-relevance feedback after Rocchio, "Relevance Feedback in Information Retrieval", 1971:
        a unit that answers in two steps shares a name with the first step, and not with the question.
        """
        found = np.zeros(self.size)
        order = np.argsort(-scores, kind="stable")[:seeds]
        highest = float(scores[order[0]]) if self.size else 0.0
        if highest <= 0:
            return found
        for seed in order:
            strength = float(scores[seed] / highest) ** 2
            vector = {term: value for term, value in self._vectors[seed].items() if term not in asked}
            for place, other in enumerate(self._vectors):
                if place != seed:
                    found[place] += strength * _product(vector, other)
        highest = float(found.max())
        return found / highest if highest > 0 else found

    @cached_property
    def _vectors(self) -> list[dict[str, float]]:
        """Of each unit the terms that it shares with another, weighed by rarity; of length 1 with the others."""
        vectors = []
        for counts in self.counts:
            weights = {term: math.log(self.size / self.frequencies[term]) for term in counts}
            length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
            vectors.append({t: w / length for t, w in weights.items() if self.frequencies[t] > 1})
        return vectors

    def _visits(self, gap: timedelta) -> Places:
        visits = np.zeros(self.size, dtype=np.intp)
        order = sorted(
            range(self.size), key=lambda at: (self.units[at].conversation_id, self.units[at].created_at)
        )
        number = -1
        last: Unit | None = None
        for place in order:
            unit = self.units[place]
            if (
                last is None
                or unit.conversation_id != last.conversation_id
                or unit.created_at - last.created_at > gap
            ):
                number += 1
            visits[place] = number
            last = unit
        return visits


def matching(frequencies: Values, weights: Values) -> Values:
    """How well rows of term frequencies match a question, after BM25 without its correction for length."""
    found: Values = (frequencies * (_SATURATION + 1) / (frequencies + _SATURATION)) @ weights
    return found


def _product(one: dict[str, float], other: dict[str, float]) -> float:
    if len(other) < len(one):
        one, other = other, one
    return sum(value * other[term] for term, value in one.items() if term in other)
