"""The job that summarises days; its name stands here because turns defer it, too."""

from collections.abc import Sequence
from uuid import UUID

from services.jobs.queue import JobQueue
from services.platform.connections import Connection

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
