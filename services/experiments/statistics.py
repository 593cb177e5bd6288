"""Estimates with 95 % confidence intervals from observations that come in clusters, a cluster for each user.

Messages of one user are alike, so a turn is less than one independent observation. The variance of a mean
is that of a ratio estimator over clusters (W. G. Cochran, Sampling Techniques, 3rd ed., 1977, section 9A),
and its interval uses Student's t with one degree of freedom less than there are users. A share has Wilson's
interval (E. B. Wilson, JASA 22, 1927) over the effective number of observations, the number divided by the
design effect. The interval of a difference is made of both intervals, as R. G. Newcombe does for shares
(Statistics in Medicine 17, 1998, method 10) and G. Y. Zou and A. Donner for any (ibid. 27, 2008).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

_Z = NormalDist().inv_cdf(0.975)
_FEW = {1: 12.7062, 2: 4.30265}
"""The quantiles that the expansion is too inexact for."""


@dataclass(frozen=True)
class Cluster:
    """The observations of one user."""

    count: int
    total: float
    """Sum of the values; of a share, how many of them are true."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, unless there are too few observations for one."""

    value: float | None
    low: float | None
    high: float | None


NOTHING = Estimate(None, None, None)


def share(clusters: Sequence[Cluster]) -> Estimate:
    """A share and Wilson's interval."""
    number = sum(cluster.count for cluster in clusters)
    if not number:
        return NOTHING
    value = sum(cluster.total for cluster in clusters) / number
    return Estimate(value, *_wilson(value, _effective(clusters, value)))


def mean(clusters: Sequence[Cluster]) -> Estimate:
    """A mean and its interval."""
    number = sum(cluster.count for cluster in clusters)
    if not number:
        return NOTHING
    value = sum(cluster.total for cluster in clusters) / number
    variance, users = _variance(clusters, value), _users(clusters)
    if users < 2:  # noqa: PLR2004
        return Estimate(value, None, None)
    reach = student_t(users - 1) * math.sqrt(variance)
    return Estimate(value, value - reach, value + reach)


def difference(one: Estimate, other: Estimate) -> Estimate:
    """An estimate less another, with an interval made of both of theirs."""
    if one.value is None or other.value is None:
        return NOTHING
    value = one.value - other.value
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return Estimate(value, None, None)
    down = math.hypot(one.value - one.low, other.high - other.value)
    up = math.hypot(one.high - one.value, other.value - other.low)
    return Estimate(value, value - down, value + up)


def student_t(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, from 3 degrees of freedom on within 0.5 %.

    By the expansion in M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    if freedom in _FEW:
        return _FEW[freedom]
    z = _Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def _users(clusters: Sequence[Cluster]) -> int:
    return sum(cluster.count > 0 for cluster in clusters)


def _variance(clusters: Sequence[Cluster], value: float) -> float:
    """The variance of a mean over clusters; 0 for a single one."""
    users, number = _users(clusters), sum(cluster.count for cluster in clusters)
    if users < 2:  # noqa: PLR2004
        return 0.0
    squares = sum((cluster.total - value * cluster.count) ** 2 for cluster in clusters)
    return squares * users / (users - 1) / number**2


def _effective(clusters: Sequence[Cluster], value: float) -> float:
    """Effective number of independent observations: at most all of them, at least one for each user."""
    number, users = sum(cluster.count for cluster in clusters), _users(clusters)
    variance = _variance(clusters, value)
    if not variance or not 0 < value < 1:
        # All are alike, and nothing says how alike those of one user are.
        return float(users)
    return min(float(number), max(float(users), value * (1 - value) / variance))


def _wilson(value: float, number: float) -> tuple[float, float]:
    square = _Z**2 / number
    middle = (value + square / 2) / (1 + square)
    reach = _Z / (1 + square) * math.sqrt(value * (1 - value) / number + square / (4 * number))
    return max(0.0, middle - reach), min(1.0, middle + reach)
