"""Report of an experiment: the results of each variant, and how they differ from the control."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from services.experiments.experiments import Experiment
from services.platform.postgres import Database

_Z = NormalDist().inv_cdf(0.975)
_FEW = {1: 12.7062, 2: 4.30265}
"""Quantiles for 1 and 2 degrees of freedom, for which the expansion is not exact enough."""


@dataclass(frozen=True)
class Cluster:
    """The observations of one user."""

    count: int
    total: float
    """Sum of the values; for a share, the number that are true."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, if there are enough observations for one."""

    value: float | None
    low: float | None
    high: float | None


NOTHING = Estimate(None, None, None)


def estimate(clusters: Sequence[Cluster], *, is_share: bool = False) -> Estimate:
    """Return a mean and its interval from the variance between users; for a share, Wilson's interval."""
    number, users = sum(cluster.count for cluster in clusters), sum(cluster.count > 0 for cluster in clusters)
    if not number:
        return NOTHING
    value = sum(cluster.total for cluster in clusters) / number
    squares = sum((cluster.total - value * cluster.count) ** 2 for cluster in clusters)
    variance = squares * users / (users - 1) / number**2 if users > 1 else 0.0
    if is_share:
        # Number of independent observations: at most all, at least one for each user. If all are alike, they do
        # not show how alike those of one user are.
        independent = float(users)
        if variance and 0 < value < 1:
            independent = min(float(number), max(independent, value * (1 - value) / variance))
        return Estimate(value, *_wilson(value, independent))
    if users < 2:  # noqa: PLR2004
        return Estimate(value, None, None)
    reach = student_t(users - 1) * math.sqrt(variance)
    return Estimate(value, value - reach, value + reach)


def difference(one: Estimate, other: Estimate) -> Estimate:
    """Return one estimate minus another, with an interval made of both intervals."""
    if one.value is None or other.value is None:
        return NOTHING
    value = one.value - other.value
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return Estimate(value, None, None)
    down = math.hypot(one.value - one.low, other.high - other.value)
    up = math.hypot(one.high - one.value, other.value - other.low)
    return Estimate(value, value - down, value + up)


def student_t(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t, within 0.5 % from 3 degrees of freedom on. It uses the
    expansion in M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions, 26.7.5."""
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


def _wilson(value: float, number: float) -> tuple[float, float]:
    square = _Z**2 / number
    middle = (value + square / 2) / (1 + square)
    reach = _Z / (1 + square) * math.sqrt(value * (1 - value) / number + square / (4 * number))
    return max(0.0, middle - reach), min(1.0, middle + reach)


# Only turns that ended by themselves: cancelling a turn, or sending another message, is no sign of the variant.
_BY_USER: LiteralString = """
SELECT t.experiments->>%(experiment_id)s AS variant, c.user_id, count(*) AS turns,
       count(*) FILTER (WHERE t.status <> 'completed') AS errors,
       count(*) FILTER (WHERE t.degraded <> '[]') AS degraded,
       count(f.rating) AS rated, count(*) FILTER (WHERE f.rating = 1) AS up,
       count(t.timings->'first_token_ms') AS timed_first,
       coalesce(sum((t.timings->>'first_token_ms')::float8), 0) AS first_token_ms,
       count(t.timings->'total_ms') AS timed_total,
       coalesce(sum((t.timings->>'total_ms')::float8), 0) AS total_ms,
       count(t.usage->'total_tokens') AS counted,
       coalesce(sum((t.usage->>'total_tokens')::float8), 0) AS tokens
FROM turns t JOIN conversations c ON c.id = t.conversation_id
LEFT JOIN feedback f ON f.message_id = coalesce(t.assistant_message_id, t.user_message_id)
WHERE t.tenant_id = %(tenant_id)s AND t.experiments ? %(experiment_id)s
  AND t.status IN ('completed', 'partial', 'failed')
  AND t.error->>'code' IS DISTINCT FROM 'interrupted_by_message'
GROUP BY 1, 2
"""


_MEASURES = {
    "feedback_up": (True, "rated", "up"),
    "errors": (True, "turns", "errors"),
    "degraded": (True, "turns", "degraded"),
    "first_token_ms": (False, "timed_first", "first_token_ms"),
    "total_ms": (False, "timed_total", "total_ms"),
    "tokens": (False, "counted", "tokens"),
}
"""For each measure: whether it is a share, and the columns with a user's number of observations and their sum."""


@dataclass(frozen=True)
class VariantReport:
    """Results of a variant."""

    name: str
    users: int
    turns: int
    """Ended turns, except those that somebody stopped."""
    rated: int
    """Turns with feedback."""
    measures: dict[str, Estimate]
    """Shares from 0 to 1: `feedback_up` (of rated turns), `errors`, `degraded`; means: `first_token_ms`,
    `total_ms`, `tokens`."""
    differences: dict[str, Estimate]
    """Measures minus those of the control; empty for the control itself."""


@dataclass(frozen=True)
class ExperimentReport:
    """Results of an experiment."""

    experiment: Experiment
    variants: list[VariantReport]
    """Variants in the experiment's order; the first is the control."""


async def report_of(database: Database, tenant_id: UUID, experiment: Experiment) -> ExperimentReport:
    """Report the results of an experiment's variants so far."""
    values = {"tenant_id": tenant_id, "experiment_id": str(experiment.id)}
    rows = await database.fetch(tenant_id, _BY_USER, values, dict_row)
    variants: list[VariantReport] = []
    for variant in experiment.variants:
        users = [row for row in rows if row["variant"] == variant["name"]]
        variants.append(_of_variant(variant["name"], users, variants[0] if variants else None))
    return ExperimentReport(experiment, variants)


def _of_variant(name: str, users: Sequence[Mapping[str, Any]], control: VariantReport | None) -> VariantReport:
    """Report on a variant from rows with the turns of one user each."""
    measures = {
        key: estimate([Cluster(user[count], user[total]) for user in users], is_share=is_share)
        for key, (is_share, count, total) in _MEASURES.items()
    }
    differences = {}
    if control is not None:
        differences = {key: difference(each, control.measures[key]) for key, each in measures.items()}
    turns, rated = (sum(user[count] for user in users) for count in ("turns", "rated"))
    return VariantReport(name, len(users), turns, rated, measures, differences)
