"""Figures that several benchmarks share: percentiles, and ratios with what they may well be."""

import random
from collections.abc import Sequence

_DRAWS = 2_000


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return sorted(values)[min(len(values) - 1, round(len(values) * 0.95))]


def ratio_and_range(ours: Sequence[float], others: Sequence[float]) -> tuple[float, float, float]:
    """How many times as much ours are as others', round by round, and the middle 95 % of a bootstrap."""
    pairs = list(zip(ours, others, strict=True))
    drawn = sorted(_ratio(random.choices(pairs, k=len(pairs))) for _ in range(_DRAWS))
    return _ratio(pairs), drawn[round(_DRAWS * 0.025)], drawn[round(_DRAWS * 0.975)]


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(one for one, _ in pairs) / sum(other for _, other in pairs)
