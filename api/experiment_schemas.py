"""Requests and answers about experiments, and their limits."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict

from api.expert_schemas import Budget, Model, PartsOff, SystemPrompt
from api.schemas import Answer, StrictModel
from services.conversations.values import Id, Name, no_nul
from services.experiments.report import VariantReport

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
    list[VariantRequest],
    Field(min_length=2, max_length=_MOST_VARIANTS, description="The first is the control."),
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
        },
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
    status: Literal["draft", "running", "stopped"]
    variants: Variants
    experts: ExpertNames | None
    share: Share


class VariantView(BaseModel):
    """One of the ways that are compared."""

    name: str
    weight: float
    settings: dict[str, Any]


class ExperimentView(BaseModel):
    """An experiment."""

    name: str
    description: str
    status: Literal["draft", "running", "stopped"]
    variants: list[VariantView]
    experts: list[str] | None
    share: float
    created_at: datetime
    started_at: datetime | None
    stopped_at: datetime | None


class ExperimentReportView(Answer):
    """The results of an experiment."""

    experiment: ExperimentView
    variants: list[VariantReport]
