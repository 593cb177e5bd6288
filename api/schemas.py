"""Requests and answers, and their limits."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

MAX_BODY_BYTES = 70 * 1024 * 1024
MAX_IMPORT_BYTES = 1024 * 1024 * 1024
MAX_PAGE = 200


class JobView(BaseModel):
    """A background job."""

    id: int
    task: str
    status: Literal["waiting", "running", "succeeded", "failed", "cancelled"]
    ids: dict[str, Any] = Field(description="What it is for.")
    failures: int = Field(description="Number of failures since it was queued, or retried by hand.")
    reason: str | None = Field(description="Of the last failure: the error's class, and a fixed text.")
    failed_at: datetime | None
    not_before: datetime | None = Field(description="Earliest time of the next try.")
    created_at: datetime | None


class JobPage(BaseModel):
    """Jobs, newest first. `next` is the `after` of the next page, or null."""

    items: list[JobView]
    next: str | None


class ErasureView(BaseModel):
    """Counts of what was removed for a user, by store and kind."""

    user_id: str
    removed: dict[str, dict[str, int]]
    pending: list[str] = Field(description="Stores that did not answer; a background job goes on trying.")


class ErasedConversationView(BaseModel):
    """Counts of what was removed with a conversation."""

    conversation_id: UUID
    keep_memories: bool
    removed: dict[str, int] = Field(
        description="How many of each kind; `memories` were written down, `core_memory_sections` were changed."
    )
    pending: list[str] = Field(description="Stores that did not answer; a background job goes on trying.")


class DependencyView(BaseModel):
    """A dependency of the service."""

    name: str
    state: Literal["ok", "degraded", "down", "not_asked"] = Field(
        description="`not_asked`: a model that has had no request since the start."
    )
    latency_ms: float | None
    detail: str


class TicketView(BaseModel):
    """A ticket with which a browser opens a WebSocket."""

    ticket: str
    expires_in_s: int


class ReadinessView(BaseModel):
    """Whether the service can answer, and the state of its dependencies."""

    state: Literal["ok", "degraded", "busy", "down"] = Field(
        description="`busy`: the process runs its maximum of turns and starts no other for now."
    )
    dependencies: list[DependencyView] = Field(description="Empty for callers who may not see them.")
