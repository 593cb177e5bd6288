"""The report of an experiment: what each variant came to, and how it differs from the control."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row

from services.experiments.experiments import Experiment, Experiments
from services.experiments.statistics import (
    Cluster,
    Estimate,
    mean,
    mean_difference,
    share,
    share_difference,
)
from services.platform.postgres import Database

# Of turns that ended by themselves: who cancels a turn, or sends another message, says nothing of the variant.
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


@dataclass(frozen=True)
class _UserTurns:
    """The turns of one user with one variant."""

    variant: str
    user_id: UUID
    turns: int
    errors: int
    degraded: int
    rated: int
    up: int
    timed_first: int
    first_token_ms: float
    timed_total: int
    total_ms: float
    counted: int
    tokens: float


_Clusters = Callable[[_UserTurns], Cluster]

_SHARES: dict[str, _Clusters] = {
    "feedback_up": lambda user: Cluster(user.rated, user.up),
    "errors": lambda user: Cluster(user.turns, user.errors),
    "degraded": lambda user: Cluster(user.turns, user.degraded),
}
_MEANS: dict[str, _Clusters] = {
    "first_token_ms": lambda user: Cluster(user.timed_first, user.first_token_ms),
    "total_ms": lambda user: Cluster(user.timed_total, user.total_ms),
    "tokens": lambda user: Cluster(user.counted, user.tokens),
}


@dataclass(frozen=True)
class VariantReport:
    """What a variant came to."""

    name: str
    users: int
    turns: int
    """Ended turns, except those that somebody stopped."""
    rated: int
    """Turns with feedback."""
    measures: dict[str, Estimate]
    """Shares `feedback_up` (of the rated turns), `errors` and `degraded`, 0 to 1; means `first_token_ms`,
    `total_ms` and `tokens`."""
    differences: dict[str, Estimate]
    """The same, less those of the control; empty for the control itself."""


@dataclass(frozen=True)
class ExperimentReport:
    """What an experiment came to."""

    experiment: Experiment
    variants: list[VariantReport]
    """In the experiment's order; the first is the control."""


class ExperimentReports:
    """Makes reports."""

    def __init__(self, database: Database, experiments: Experiments) -> None:
        self._database = database
        self._experiments = experiments

    async def report(self, tenant_id: UUID, name: str) -> ExperimentReport:
        """The report of an experiment so far.

        Raises:
            NotFound: the tenant has none of this name.
        """
        experiment = await self._experiments.get(tenant_id, name)
        values = {"tenant_id": tenant_id, "experiment_id": str(experiment.id)}
        rows = await self._database.fetch(tenant_id, _BY_USER, values, class_row(_UserTurns))
        groups = [[row for row in rows if row.variant == each["name"]] for each in experiment.variants]
        return ExperimentReport(
            experiment,
            [
                _of_variant(variant["name"], group, groups[0] if place else None)
                for place, (variant, group) in enumerate(zip(experiment.variants, groups, strict=True))
            ],
        )


def _of_variant(name: str, users: Sequence[_UserTurns], control: Sequence[_UserTurns] | None) -> VariantReport:
    measures = {key: share([of(user) for user in users]) for key, of in _SHARES.items()}
    measures |= {key: mean([of(user) for user in users]) for key, of in _MEANS.items()}
    differences: dict[str, Estimate] = {}
    if control is not None:
        for difference, ways in ((share_difference, _SHARES), (mean_difference, _MEANS)):
            for key, of in ways.items():
                differences[key] = difference([of(user) for user in users], [of(user) for user in control])
    return VariantReport(
        name,
        users=len(users),
        turns=sum(user.turns for user in users),
        rated=sum(user.rated for user in users),
        measures=measures,
        differences=differences,
    )
