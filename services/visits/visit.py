"""Visits: stretches of activity in a conversation, and their end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from services.jobs.queue import JobQueue
from services.platform.connections import Connection
from services.platform.settings import Settings

SUMMARISE_VISIT = "summarise_visit"
"""Task that summarises a visit which has ended."""

EndReason = Literal["closed", "idle"]
"""`closed` by the caller, or `idle` by silence."""


@dataclass(frozen=True)
class VisitSchedule:
    """Rules for the end of a visit."""

    idle: timedelta = timedelta(minutes=30)
    """Silence after which it ends."""
    summaries: bool = True
    """Whether visits and days are summarised."""
    shortest_messages: int = 3
    """Shorter visits are their own summary."""
    shortest_characters: int = 51
    recent: timedelta = timedelta(days=35)
    """The day of an older visit is not summarised by itself, but when it is asked for: it was imported."""

    def is_summarised(self, messages: int) -> bool:
        """Whether a visit of this many messages may be long enough for a summary."""
        return self.summaries and messages >= self.shortest_messages


def visit_schedule(settings: Settings) -> VisitSchedule:
    """The rules from the settings."""
    idle = timedelta(minutes=settings.memory_visit_idle_minutes)
    return VisitSchedule(idle=idle, summaries=settings.memory_visits)


@dataclass(frozen=True)
class Visit:
    """A visit's row in the database. Its messages are the conversation's within its time."""

    id: UUID
    conversation_id: UUID
    session_id: str
    """The caller's own name for the conversation."""
    expert: str
    started_at: datetime
    last_active_at: datetime
    ended_at: datetime | None
    """Unset while it continues. A visit ended by silence ended when the silence had lasted long enough."""
    end_reason: EndReason | None
    message_count: int
    """Complete messages."""
    summary: str | None
    """Unset while it continues, is too short, or waits for its summary."""
    key_topics: list[str]
    summary_generated_at: datetime | None


SUMMARISE_DAYS = "summarise_days"
"""Task that summarises the days of some visits."""


async def defer_days(jobs: JobQueue, connection: Connection, tenant_id: UUID, visit_ids: Sequence[UUID]) -> None:
    """Have the days of these visits summarised, in the caller's transaction; not twice while it waits."""
    await jobs.defer(
        connection,
        SUMMARISE_DAYS,
        tenant_id=tenant_id,
        queueing_lock=f"{SUMMARISE_DAYS}:{visit_ids[0]}:{len(visit_ids)}",
        visit_ids=list(visit_ids),
    )
