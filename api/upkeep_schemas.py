"""Requests and answers about upkeep."""

from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from api.schemas import Answer, StrictModel
from services.memory.upkeep.policy import Fading, Handling, UpkeepPolicy
from services.memory.upkeep.run import FadingMemory


class PolicyView(StrictModel):
    """A tenant's policy of upkeep."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"fading": "archive", "fading_days": 180, "fading_importance": 0.3}]},
    )

    fading: Fading = Field("never", description="What becomes of memories that are unimportant and unused.")
    fading_days: int = Field(
        90, ge=1, le=36_500, description="Days since a memory was last recalled, or learned if it never was."
    )
    fading_importance: float = Field(
        0.3, ge=0, le=1, description="Importance below which a memory is unimportant, 0 (none is) to 1."
    )
    proposals: Handling = Field(
        "propose", description="Whether contradictions found at night wait, or are settled at once."
    )

    def policy(self) -> UpkeepPolicy:
        """Return it as the service takes it."""
        return UpkeepPolicy(**self.model_dump())

    @classmethod
    def of(cls, policy: UpkeepPolicy) -> Self:
        """Show a policy."""
        return cls(**vars(policy))


class FadingQuery(StrictModel):
    """Figures to try in place of the tenant's policy; those not given are the policy's."""

    fading: Literal["archive", "remove"] | None = Field(None, description="What becomes of the memories.")
    fading_days: int | None = Field(None, ge=1, le=36_500, description="Days without use.")
    fading_importance: float | None = Field(None, ge=0, le=1, description="Importance below which they fade.")


class MergeView(BaseModel):
    """A memory that another one says as well."""

    id: UUID = Field(description="The memory that goes.")
    kept_id: UUID = Field(description="The memory, or section of core memory, that stays.")
    content: str
    kept_content: str
    kept_in_core: bool


class UpkeepPreviewView(Answer):
    """What a run would do at this moment."""

    policy: PolicyView
    merges: list[MergeView]
    total: int = Field(description="Memories that would fade.")
    fading: list[FadingMemory] = Field(description="The first 1000 of them, longest unused first.")
