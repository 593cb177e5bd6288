"""Figures of retrieval, counted in messages shown, with confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CUTS = (5, 10, 20)
_RESAMPLES = 1000
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Scores:
    """Scores of one question."""

    category: str
    recall: dict[int, float]
    """Share of a question's evidence among the first `k` messages shown."""
    hit: float
    """1 if any of it is among the first 10."""
    reciprocal_rank: float
    """1 / place of the first of it, or 0."""


@dataclass(frozen=True)
class Figure:
    """A mean, and between what the mean would lie for 95 of 100 such sets (bootstrap over the questions)."""

    mean: float
    low: float
    high: float


def score(category: str, shown: Sequence[str], evidence: frozenset[str]) -> Scores:
    """The figures of one question.

    Args:
        category: of the question.
        shown: ids of the messages in the order in which they are shown.
        evidence: ids of those that answer it.
    """
    places = [place for place, message in enumerate(shown, start=1) if message in evidence]
    return Scores(
        category=category,
        recall={cut: sum(place <= cut for place in places) / len(evidence) for cut in CUTS},
        hit=float(any(place <= CUTS[1] for place in places)),
        reciprocal_rank=1 / places[0] if places else 0.0,
    )


def summarise(scores: Sequence[Scores]) -> dict[str, Figure]:
    """Means with their intervals, by the name of the figure."""
    named = {f"recall@{cut}": [each.recall[cut] for each in scores] for cut in CUTS}
    named["hit@10"] = [each.hit for each in scores]
    named["mrr"] = [each.reciprocal_rank for each in scores]
    return {name: figure(values) for name, values in named.items()}


def figure(values: Sequence[float]) -> Figure:
    """A mean with its interval; the same values give the same interval."""
    known = np.array(values, dtype=np.float64)
    draws = np.random.default_rng(0).integers(0, len(known), size=(_RESAMPLES, len(known)))
    means = known[draws].mean(axis=1)
    tail = (1 - _CONFIDENCE) / 2
    return Figure(float(known.mean()), float(np.quantile(means, tail)), float(np.quantile(means, 1 - tail)))
