"""Assignment of users to the variants of an experiment, by a stable hash: nothing is stored, nobody changes sides.

The SHA-256 of `tenant:experiment:user`, their UUIDs in lower case with hyphens, gives two numbers from 0 up to 1:
its first eight bytes as an unsigned big-endian integer over 2^64, and the next eight likewise. The user takes part
if the first number is below the experiment's share. The second selects the variant: the weights, as parts of their
sum, follow one another on the line from 0 to 1. Experiments are independent, because their ids differ.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from state.prompt import Feature


def _none_is_required(schema: dict[str, Any]) -> None:
    """Make all fields optional in the schema of answers too, where other models always have all fields."""
    schema.pop("required", None)


@with_config(ConfigDict(use_attribute_docstrings=True, json_schema_extra=_none_is_required))
class VariantSettings(TypedDict, total=False):
    """Settings that a variant changes in a turn; an absent one stays as it is for everybody."""

    parts_off: list[Feature]
    """Besides those that the expert goes without."""
    recall_items: int
    """Maximum number of episodes in a prompt."""
    recall_tokens: int
    """Tokens of a prompt for episodes."""
    context_budget_tokens: int
    model: str
    system_prompt: str
    """In place of the expert's instructions and persona."""


class Variant(TypedDict):
    """One of the ways that an experiment compares; the first is the control."""

    name: str
    weight: float
    settings: VariantSettings


@dataclass(frozen=True)
class RunningExperiment:
    """The facts of an experiment that an assignment needs."""

    id: UUID
    name: str
    variants: Sequence[Variant]
    share: float
    """Share of the users, more than 0 and at most 1."""
    experts: Sequence[str] | None
    """Names of the experts whose conversations take part; None = all."""


@dataclass(frozen=True)
class Assignment:
    """The variants of a turn, and what they change together."""

    variants: dict[str, str] = field(default_factory=dict)
    """Names of variants by the ids of their experiments."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of variants by the names of their experiments."""
    settings: VariantSettings = field(default_factory=VariantSettings)


def variant_of(tenant_id: UUID, experiment: RunningExperiment, user_id: UUID) -> Variant | None:
    """Return the variant that a user gets; None if the user takes no part."""
    digest = hashlib.sha256(f"{tenant_id}:{experiment.id}:{user_id}".encode()).digest()
    part, place = (int.from_bytes(digest[at : at + 8]) / 2**64 for at in (0, 8))
    if part >= experiment.share:
        return None
    left = place * sum(variant["weight"] for variant in experiment.variants)
    for variant in experiment.variants:
        left -= variant["weight"]
        if left < 0:
            return variant
    return experiment.variants[-1]


def assign(tenant_id: UUID, user_id: UUID, expert: str, running: Sequence[RunningExperiment]) -> Assignment:
    """Return the variants of a user's turn with an expert in all running experiments, oldest first."""
    variants: dict[str, str] = {}
    names: dict[str, str] = {}
    settings = VariantSettings()
    for experiment in running:
        if experiment.experts is not None and expert not in experiment.experts:
            continue
        if variant := variant_of(tenant_id, experiment, user_id):
            variants[str(experiment.id)], names[experiment.name] = variant["name"], variant["name"]
            settings = VariantSettings(**{**variant["settings"], **settings})
    return Assignment(variants, names, settings)


def running_experiments(rows: Sequence[Mapping[str, Any]] | None) -> list[RunningExperiment]:
    """Return the experiments in the JSON that `RUNNING` gives."""
    return [RunningExperiment(**{**row, "id": UUID(row["id"])}) for row in rows or ()]


RUNNING = """
(SELECT jsonb_agg(jsonb_build_object('id', x.id, 'name', x.name, 'variants', x.variants, 'share', x.share,
                                     'experts', x.experts) ORDER BY x.started_at, x.id)
 FROM experiments x WHERE x.tenant_id = %(tenant_id)s AND x.status = 'running')
"""
"""SQL expression for the tenant's running experiments, for the statement that opens a turn; NULL = none."""

NAMES_OF_TURN = """
SELECT jsonb_object_agg(coalesce(x.name, given.key), given.value)
FROM jsonb_each(t.experiments) AS given (key, value) LEFT JOIN experiments x ON x.id = given.key::uuid
"""
"""SQL for the variants of a turn `t` by their experiments' names, or the ids of removed ones; NULL = none."""
