"""Requests and answers about compression."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from services.conversations.values import Id


class CompressionRequest(BaseModel):
    """Whose memory of the user is compressed, and whether in earnest."""

    model_config = ConfigDict(extra="forbid")

    dry_run: bool = Field(False, description="Change nothing; say what would be done.")
    expert: Id = Field("default", description="Name of the expert who remembers it.")


class DroppedView(BaseModel):
    """An episode that gave way to a text which does not say what it said."""

    episode_id: UUID
    reason: Literal["duplicate", "contradicted", "trivial"]


class FailureView(BaseModel):
    """Episodes alike that were left as they are."""

    episodes: int
    reason: str


class ReportView(BaseModel):
    """What a run did, or would do."""

    episodes_before: int = 0
    episodes_after: int = 0
    clusters: int = Field(0, description="Groups of episodes alike that were looked at.")
    left_for_later: int = Field(0, description="Groups for which there was no time.")
    consolidated: int = Field(0, description="New texts.")
    superseded: int = Field(0, description="Episodes in the place of which they stand.")
    dropped: list[DroppedView] = Field([], description="Those of them that no new text represents, and why.")
    retired: int = Field(0, description="Old ones of little importance that were never recalled.")
    failures: list[FailureView] = Field([], description="Groups that were left as they are, and why.")
    changed_meanwhile: int = Field(0, description="Groups that changed while the run went on, and stayed.")
    by: Literal["model", "rules"] = "model"
    tokens: int = Field(0, description="Of prompts and answers, estimated.")
    seconds: float = 0.0
    problem: str | None = Field(None, description="Why it failed as a whole.")


class CompressionRunView(BaseModel):
    """A run of compression."""

    id: UUID
    expert: str
    status: Literal["waiting", "running", "done", "failed", "undone"]
    reason: Literal["night", "request"]
    dry_run: bool
    report: ReportView
    created_at: datetime
    finished_at: datetime | None
    undone_at: datetime | None
    can_be_undone: bool = Field(description="Unless a later run builds on it.")


class CompressionRunPage(BaseModel):
    """Runs, newest first."""

    items: list[CompressionRunView]
    next: str | None
