"""Traces of users and conversations outside their tables: background jobs, events and cached memory."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString
from uuid import UUID

from services.conversations.event_log import EventLog
from services.memory.cache import CoreMemoryCache
from services.platform.connections import Connection

_KEYS_AT_ONCE = 500

_JOBS: LiteralString = """
WITH erased AS ({ids})
SELECT j.id FROM procrastinate_jobs j
WHERE coalesce(j.args->>'tenant_id', '00000000-0000-7000-8000-000000000001') = %(tenant_id)s::text
  AND EXISTS (
      SELECT FROM jsonb_each(j.args) AS argument(name, value)
      CROSS JOIN LATERAL jsonb_array_elements_text(
          CASE jsonb_typeof(value) WHEN 'array' THEN value ELSE jsonb_build_array(value) END
      ) AS each(id) JOIN erased ON erased.id = each.id
  )
ORDER BY j.id FOR UPDATE OF j
"""

# Its worker hears of it at the commit and stops the job; the row may be gone by then.
_STOP_JOBS = "UPDATE procrastinate_jobs SET abort_requested = true WHERE id = ANY(%s) AND status = 'doing'"

_REMOVE_JOBS = "DELETE FROM procrastinate_jobs WHERE id = ANY(%s)"


async def remove_jobs(connection: Connection, ids: LiteralString, values: Mapping[str, Any]) -> int:
    """Stop and remove a tenant's jobs that name one of the ids, in the caller's transaction; return how many.

    Args:
        connection: of an open transaction.
        ids: a SELECT of one column `id` of type text.
        values: the parameters of `ids`, `tenant_id` among them.
    """
    rows = await (await connection.execute(_JOBS.replace("{ids}", ids), values)).fetchall()
    jobs = [row[0] for row in rows]
    await connection.execute(_STOP_JOBS, [jobs])
    await connection.execute(_REMOVE_JOBS, [jobs])
    return len(jobs)


class Traces:
    """Events of turns and cached core memory."""

    def __init__(self, events: EventLog, core_memory: CoreMemoryCache) -> None:
        self._events = events
        self._core_memory = core_memory

    async def remove(self, user_id: UUID, turn_ids: Sequence[UUID], expert_ids: Sequence[UUID]) -> dict[str, int]:
        """Remove the events of turns and a user's core memory with experts; return how many of each there were.

        Raises:
            Unavailable: Redis does not answer.
        """
        removed = 0
        for start in range(0, len(turn_ids), _KEYS_AT_ONCE):
            removed += await self._events.delete(turn_ids[start : start + _KEYS_AT_ONCE])
        return {"turn_events": removed, "core_memory": await self._core_memory.delete(user_id, expert_ids)}
