"""When what a user said is filed: one job waits for all of it."""

from uuid import UUID

from services.jobs.queue import JobQueue
from services.platform.connections import Connection

FILE_MEMORY = "file_memory"
"""Task that files what a user said."""


async def defer_filing(
    jobs: JobQueue, connection: Connection, tenant_id: UUID, user_id: UUID, *, delay_s: float
) -> None:
    """Have what a user said filed, in a transaction of the caller's.

    Args:
        delay_s: seconds before the job looks at them.
    """
    name = f"{FILE_MEMORY}:{user_id}"
    await jobs.defer(
        connection,
        FILE_MEMORY,
        tenant_id=tenant_id,
        lock=name,
        queueing_lock=name,
        delay_s=delay_s,
        user_id=user_id,
    )
