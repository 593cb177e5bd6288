"""The units that a recall found, as arrays: which are neighbours, which share a visit, which share terms."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import cached_property

import numpy as np

from services.search.columns import Columns
from services.search.parameters import BM25_B, BM25_K1
from services.search.passages import Passages
from services.search.sequences import Places, beginnings
from services.search.term_matrix import TermMatrix, Values, weighted

# A term that a message repeats says little more than one that it has once.
_SATURATION = 0.9
_SMALLEST_STORE = 100
"""Least number of units assumed when terms are weighed: the subject of a question may be in most of five units."""
# Pairs to expect for each unit of a conversation if a question finds part of the conversation.
_COMMON_PAIRS = 0.25


class CandidateSet:
    """The units at their places 0..n-1, and what follows from their terms and their order alone.

    Terms are weighed by how rare they are among these units (the probabilistic idf of Robertson and
    Spärck Jones): of the whole store no statistics are at hand, and among what a question found they tell
    what distinguishes one unit from another.
    """

    def __init__(self, units: Columns, visit_gap: timedelta) -> None:
        self.units = units
        self.size = units.size
        self.previous = units.previous
        self.following = np.full(self.size, -1, dtype=np.intp)
        later = (self.previous >= 0).nonzero()[0]
        self.following[self.previous[later]] = later
        self._pairs = len(later)
        self._visit_gap_s = visit_gap.total_seconds()
        self._incidence = TermMatrix(units.terms)
        self.passages = Passages(units.terms, self._incidence)

    @property
    def lengths(self) -> Values:
        """How many terms each unit has, repeated ones counted again."""
        return self._incidence.lengths

    def weights(self, terms: Sequence[str]) -> Values:
        """How much each term distinguishes: above 0, the highest for one that no unit holds."""
        return self._rarity(self._incidence.found(terms))

    def weights_of(self, numbers: Places) -> Values:
        """The same for terms by their numbers."""
        return self._rarity(self._incidence.found_of(numbers))

    def frequencies_of(self, terms: Sequence[str]) -> Values:
        """How often each unit (row) holds each of the terms (column), no term given twice."""
        return self._incidence.frequencies_of(terms)

    def matching_passages(self, terms: Sequence[str], weights: Values) -> tuple[Values, Values]:
        """For each unit its best passage for a question: how well that matches, and how often it holds each term.

        BM25 with the weights given, after Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
        Beyond", 2009.
        """
        frequencies = self.passages.frequencies_of(terms)
        relative = self.passages.lengths / max(float(self.passages.lengths.mean()), 1.0)
        norm = BM25_K1 * (1 - BM25_B + BM25_B * relative)[:, np.newaxis]
        matched = weighted(frequencies * (BM25_K1 + 1) / (frequencies + norm), weights)
        best = self.passages.best_row(matched)
        return matched[best], frequencies[best]

    def with_neighbours(self, values: Values) -> Values:
        """The values of each unit, row by row, with those of the units before and after it added."""
        total = values.copy()
        for neighbours in (self.previous, self.following):
            there = (neighbours >= 0).nonzero()[0]
            total[there] += values[neighbours[there]]
        return total

    def over_visits(self, values: Values) -> Values:
        """The sum over the unit's visit, row by row."""
        visits = self._visits
        order = np.argsort(visits, kind="stable")
        begins = beginnings(visits[order])
        found: Values = np.add.reduceat(values[order], begins, axis=0)[visits]
        return found

    def coherence(self, fully_at: float, pair_prior: float) -> float:
        """How much neighbours are about the same, 0..1.

        The mean similarity of a unit and the one before it, less that of any two units, in shares of
        `fully_at`; fewer pairs than some `pair_prior` prove little, and where most units have no neighbour
        the few that have one are not to be preferred for it.
        """
        if not self._pairs:
            return 0.0
        near = float(self._incidence.likeness(self.previous).sum()) / self._pairs
        trusted = min(1.0, max(0.0, (near - self._incidence.chance()) / fully_at))
        common = min(1.0, self._pairs / (_COMMON_PAIRS * self.size))
        return trusted * common * self._pairs / (self._pairs + pair_prior)

    def association(self, scores: Values, seeds: int, asked: Collection[str]) -> Values:
        """Score each unit, 0..1, by the distinctive terms it shares with the best units, except the question's.

        Pseudo-relevance feedback after Rocchio, "Relevance Feedback in Information Retrieval", 1971:
        a unit that answers in two steps shares a name with the first step, and not with the question.
        """
        found = np.zeros(self.size)
        order = np.argsort(-scores, kind="stable")[:seeds]
        highest = float(scores[order[0]]) if self.size else 0.0
        if highest <= 0:
            return found
        for seed in order:
            like = self._incidence.likeness_to(int(seed), asked)
            like[seed] = 0.0
            found += float(scores[seed] / highest) ** 2 * like
        highest = float(found.max())
        return found / highest if highest > 0 else found

    def _rarity(self, found: Places) -> Values:
        size = max(self.size, _SMALLEST_STORE)
        weights: Values = np.log(1 + (size - found + 0.5) / (found + 0.5))
        return weights

    @cached_property
    def _visits(self) -> Places:
        conversations, said_at = self.units.conversations, self.units.said_at
        order = np.lexsort((said_at, conversations))
        another = np.diff(conversations[order], prepend=conversations[order[:1]]) != 0
        another |= np.diff(said_at[order], prepend=said_at[order[:1]]) > self._visit_gap_s
        visits = np.zeros(self.size, dtype=np.intp)
        visits[order] = np.cumsum(another)
        return visits


def matching(frequencies: Values, weights: Values) -> Values:
    """How well rows of term frequencies match a question, after BM25 without its correction for length."""
    return weighted(frequencies * (_SATURATION + 1) / (frequencies + _SATURATION), weights)
