"""The report of an experiment: what each variant came to, and how it differs from the control."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from services.experiments.experiments import Experiment
from services.experiments.statistics import Cluster, Estimate, difference, mean, share
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


_MEASURES: dict[str, tuple[Callable[[Sequence[Cluster]], Estimate], str, str]] = {
    "feedback_up": (share, "rated", "up"),
    "errors": (share, "turns", "errors"),
    "degraded": (share, "turns", "degraded"),
    "first_token_ms": (mean, "timed_first", "first_token_ms"),
    "total_ms": (mean, "timed_total", "total_ms"),
    "tokens": (mean, "counted", "tokens"),
}
"""How each is estimated, of which columns: the number of observations of a user, and their sum."""


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


async def report_of(database: Database, tenant_id: UUID, experiment: Experiment) -> ExperimentReport:
    """Report what the variants of an experiment came to so far."""
    values = {"tenant_id": tenant_id, "experiment_id": str(experiment.id)}
    rows = await database.fetch(tenant_id, _BY_USER, values, dict_row)
    variants: list[VariantReport] = []
    for variant in experiment.variants:
        users = [row for row in rows if row["variant"] == variant["name"]]
        variants.append(_of_variant(variant["name"], users, variants[0] if variants else None))
    return ExperimentReport(experiment, variants)


def _of_variant(name: str, users: Sequence[Mapping[str, Any]], control: VariantReport | None) -> VariantReport:
    """Report a variant, of rows with the turns of a user each."""
    measures = {
        key: estimate([Cluster(user[count], user[total]) for user in users])
        for key, (estimate, count, total) in _MEASURES.items()
    }
    differences = {}
    if control is not None:
        differences = {key: difference(each, control.measures[key]) for key, each in measures.items()}
    turns, rated = (sum(user[count] for user in users) for count in ("turns", "rated"))
    return VariantReport(name, len(users), turns, rated, measures, differences)
