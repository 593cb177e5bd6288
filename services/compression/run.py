"""A compression run, while it is carried out and as it is reported."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from services.memory.blocks import Owner

Reason = Literal["night", "request"]
Status = Literal["waiting", "running", "done", "failed", "undone"]


@dataclass(frozen=True)
class Run:
    """A run that is being carried out."""

    id: UUID
    tenant_id: UUID
    user_id: UUID
    expert_id: UUID
    reason: Reason
    dry_run: bool
    token: UUID
    """Token of the worker that carries it out; a successor gets another."""

    @property
    def owner(self) -> Owner:
        """Whose episodes."""
        return Owner(self.tenant_id, self.user_id, self.expert_id)

    @property
    def values(self) -> dict[str, Any]:
        """What its statements name."""
        return {**vars(self), "run_id": self.id, "is_night": self.reason == "night"}


@dataclass(frozen=True)
class StoredRun:
    """A run as it is reported."""

    id: UUID
    expert: str
    status: Status
    reason: Reason
    dry_run: bool
    report: dict[str, Any]
    created_at: datetime
    finished_at: datetime | None
    undone_at: datetime | None
    forgotten_at: datetime | None
    can_be_undone: bool
    """False if a later run builds on it."""


class LostRun(Exception):
    """Another worker has taken the run over, or it was given up: what was staged has no effect."""
