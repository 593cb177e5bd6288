"""Requests and answers about compression."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from services.conversations.values import Id


class CompressionRequest(BaseModel):
    """A request for a compression run."""

    model_config = ConfigDict(extra="forbid")

    dry_run: bool = Field(False, description="Change nothing; report what would be done.")
    expert: Id = Field("default", description="Name of the expert whose memory it is.")


class DroppedView(BaseModel):
    """An episode that was superseded without being represented by the new text."""

    episode_id: UUID
    reason: Literal["duplicate", "contradicted", "trivial"]


class FailureView(BaseModel):
    """Similar episodes that were left unchanged."""

    episodes: int
    reason: str


class ReportView(BaseModel):
    """What a run did, or would do."""

    episodes_before: int = 0
    episodes_after: int = 0
    clusters: int = Field(0, description="Groups of similar episodes that were examined.")
    left_for_later: int = Field(0, description="Groups for which there was no time.")
    consolidated: int = Field(0, description="New texts.")
    superseded: int = Field(0, description="Episodes that they replace.")
    dropped: list[DroppedView] = Field([], description="Those of them that no new text represents, and why.")
    retired: int = Field(0, description="Episodes retired by a run of an earlier version.")
    failures: list[FailureView] = Field([], description="Groups that were left unchanged, and why.")
    changed_meanwhile: int = Field(0, description="Groups that changed during the run and were left unchanged.")
    by: Literal["model", "rules"] = "model"
    tokens: int = Field(0, description="Estimated tokens of prompts and answers.")
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
    can_be_undone: bool = Field(description="False if a later run builds on it.")


class CompressionRunPage(BaseModel):
    """Runs, newest first."""

    items: list[CompressionRunView]
    next: str | None
