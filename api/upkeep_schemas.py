"""Requests and answers about upkeep."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from services.memory.episodes.episode import EpisodeType
from services.memory.upkeep.policy import Fading, Handling, UpkeepPolicy


class PolicyView(BaseModel):
    """A tenant's policy of upkeep."""

    model_config = ConfigDict(
        extra="forbid",
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


class FadingQuery(BaseModel):
    """Figures to try in place of the tenant's policy; those not given are the policy's."""

    model_config = ConfigDict(extra="forbid")

    fading: Literal["archive", "remove"] | None = Field(None, description="What becomes of the memories.")
    fading_days: int | None = Field(None, ge=1, le=36_500, description="Days without use.")
    fading_importance: float | None = Field(None, ge=0, le=1, description="Importance below which they fade.")


class FadingMemoryView(BaseModel):
    """A memory that would fade, and why."""

    id: UUID
    expert: str
    space: str | None = Field(description="The space that it belongs to; null = all spaces share it.")
    episode_type: EpisodeType
    content: str
    importance: float
    learned_at: datetime
    last_recalled_at: datetime | None
    unused_days: int = Field(description="Whole days since it was last recalled, or learned if it never was.")
    why: str = Field(description="The reason in words.")


class MergeView(BaseModel):
    """A memory that another one says as well."""

    id: UUID = Field(description="The memory that goes.")
    kept_id: UUID = Field(description="The memory, or section of core memory, that stays.")
    content: str
    kept_content: str
    kept_in_core: bool


class UpkeepPreviewView(BaseModel):
    """What a run would do at this moment."""

    policy: PolicyView
    merges: list[MergeView]
    total: int = Field(description="Memories that would fade.")
    fading: list[FadingMemoryView] = Field(description="The first 1000 of them, longest unused first.")


class UpkeepRunView(BaseModel):
    """Report of a run of upkeep."""

    id: UUID
    reason: Literal["night", "request", "import"]
    action: Literal["archive", "remove"] | None = Field(description="What became of memories that faded.")
    days: int | None = Field(description="Days of the policy that it followed; null where nothing was to fade.")
    importance: float | None = Field(description="Importance of that policy.")
    merged_ids: list[UUID] = Field(description="Memories that another one says as well.")
    faded_ids: list[UUID] = Field(description="Memories that it archived or removed.")
    created_at: datetime
    undone_at: datetime | None
    forgotten_at: datetime | None = Field(description="When what it removed was deleted for good.")
    can_be_undone: bool


class UpkeepRunPage(BaseModel):
    """Runs, newest first. `next` is the `after` of the next page, or null."""

    items: list[UpkeepRunView]
    next: str | None
