"""Experiments: variants of settings, assigned to users by a stable hash, and their results."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Body
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict

from api.access import Admin, PathId
from api.paging import NO_CONTENT, AfterName, Limit, json_router
from api.problems import CONFLICT, NOT_FOUND
from api.schemas import Page, StrictModel, answered
from services.conversations.experts import Budget, Model, PartsOff, SystemPrompt
from services.conversations.values import Id, Name
from services.experiments.experiments import Experiment, NewExperiment, Status
from services.experiments.report import ExperimentReport, report_of
from services.validation import no_nul

_MOST_VARIANTS = 10
_MOST_EXPERTS = 100


@with_config(ConfigDict(extra="forbid"))
class VariantSettingsRequest(TypedDict, total=False):
    """Settings of a variant; those not given are unchanged."""

    parts_off: PartsOff
    recall_items: Annotated[int, Field(ge=1, le=50, description="Maximum number of episodes in a prompt.")]
    recall_tokens: Annotated[int, Field(ge=50, le=10_000, description="Tokens of a prompt for episodes.")]
    context_budget_tokens: Budget
    model: Model
    system_prompt: SystemPrompt


class VariantRequest(StrictModel):
    """One of the ways that are compared."""

    name: Name
    weight: float = Field(1.0, gt=0, le=1_000_000, allow_inf_nan=False, description="Relative to the others'.")
    settings: VariantSettingsRequest = Field(default_factory=VariantSettingsRequest)


Variants = Annotated[
    list[VariantRequest], Field(min_length=2, max_length=_MOST_VARIANTS, description="The first is the control.")
]
Description = Annotated[str, StringConstraints(max_length=2000), AfterValidator(no_nul)]
ExpertNames = Annotated[
    list[Id], Field(min_length=1, max_length=_MOST_EXPERTS, description="Only conversations with these take part.")
]
Share = Annotated[float, Field(gt=0, le=1, description="Share of the users who take part.")]


class ExperimentRequest(StrictModel):
    """An experiment to draft."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "more-recall",
                    "variants": [
                        {"name": "five"},
                        {"name": "ten", "settings": {"recall_items": 10, "recall_tokens": 600}},
                    ],
                }
            ]
        }
    )

    name: Name = Field(description="It cannot be changed.")
    description: Description = ""
    variants: Variants
    experts: ExpertNames | None = Field(None, description="Only conversations with these; null = with all.")
    share: Share = 1.0


@with_config(ConfigDict(extra="forbid"))
class ExperimentChangeRequest(TypedDict, total=False):
    """A change of an experiment; fields that are not given stay."""

    description: Description
    status: Status
    variants: Variants
    experts: ExpertNames | None
    share: Share


router = json_router("/api/v1/experiments", "experiments")


@router.get("", response_model=Page[Experiment])
async def experiments(caller: Admin, after: AfterName = None, limit: Limit = 50) -> Any:
    """Experiments of the tenant, by name."""
    items = await caller.services.experiments.page(caller.tenant_id, after=after, limit=limit)
    return {"items": items, "next": items[-1].name if len(items) == limit else None}


@router.post("", response_model=answered(Experiment), status_code=HTTPStatus.CREATED, responses=CONFLICT)
async def create(body: ExperimentRequest, caller: Admin) -> Any:
    """Draft an experiment; 409 when there is one of this name."""
    return await caller.services.experiments.create(caller.tenant_id, NewExperiment(**body.model_dump()))


@router.get("/{name}", response_model=answered(Experiment), responses=NOT_FOUND)
async def get(name: PathId, caller: Admin) -> Any:
    """One experiment."""
    return await caller.services.experiments.get(caller.tenant_id, name)


@router.patch("/{name}", response_model=answered(Experiment), responses=NOT_FOUND | CONFLICT)
async def change(name: PathId, changed: Annotated[ExperimentChangeRequest, Body()], caller: Admin) -> Any:
    """Change, start or stop an experiment; 409 for what cannot change once it was started."""
    values: dict[str, Any] = {**changed}
    if "variants" in values:
        values["variants"] = [each.model_dump() for each in values["variants"]]
    return await caller.services.experiments.change(caller.tenant_id, name, values)


@router.delete("/{name}", **NO_CONTENT, responses=NOT_FOUND | CONFLICT)
async def delete(name: PathId, caller: Admin) -> None:
    """Remove an experiment; 409 while it runs."""
    await caller.services.experiments.delete(caller.tenant_id, name)


@router.get("/{name}/report", response_model=answered(ExperimentReport), responses=NOT_FOUND)
async def report(name: PathId, caller: Admin) -> Any:
    """Results of each variant so far, and differences from the first, with 95 % confidence intervals."""
    experiment = await caller.services.experiments.get(caller.tenant_id, name)
    return await report_of(caller.services.database, caller.tenant_id, experiment)
