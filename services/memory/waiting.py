"""Turns that wait to be filed: the job that files them, and how it is queued."""

from typing import LiteralString
from uuid import UUID

from services.jobs.queue import JobQueue
from services.platform.connections import Connection

FILE_MEMORY: LiteralString = "file_memory"
"""Task that files what a user said."""

# The same job as `defer_filing` queues, within the statement that ends a turn of the conversation `c`.
FILE_ONCE: LiteralString = f"""
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
SELECT 'default', '{FILE_MEMORY}', 0, '{FILE_MEMORY}:' || c.user_id, '{FILE_MEMORY}:' || c.user_id,
       jsonb_build_object('tenant_id', c.tenant_id, 'user_id', c.user_id), now() + %(filing_delay)s
"""


FILE_AGAIN: LiteralString = """
UPDATE turns t SET to_file = true FROM messages m
WHERE m.id = ANY(%(message_ids)s) AND m.tenant_id = %(tenant_id)s AND m.role = 'user'
  AND t.id = m.turn_id AND t.tenant_id = m.tenant_id AND t.status = 'completed'
"""
"""Marks the turns of messages that have come back to memory as waiting to be filed."""


async def defer_filing(
    jobs: JobQueue, connection: Connection, tenant_id: UUID, user_id: UUID, *, delay_s: float
) -> None:
    """Queue the filing of what a user said, in the caller's transaction.

    Args:
        delay_s: seconds before the job looks at them.
    """
    await jobs.defer(
        connection, FILE_MEMORY, tenant_id=tenant_id, one_of=user_id, delay_s=delay_s, user_id=user_id
    )
