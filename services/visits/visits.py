"""Visits of users: ending them on request or after a silence, and listing them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, LiteralString
from uuid import UUID

import structlog
from psycopg.rows import class_row, tuple_row

from services.errors import NotFound
from services.jobs.queue import JobQueue
from services.platform.connections import again_if_contended
from services.platform.postgres import Database
from services.platform.shared_reads import page_after
from services.visits.visit import SUMMARISE_VISIT, Visit, VisitSchedule, group_visits

END_IDLE_VISITS = "end_idle_visits"

_EVERY = "*/5 * * * *"
"""Cron expression: every five minutes."""
_AT_ONCE = 500

log = structlog.get_logger(__name__)

_COLUMNS: LiteralString = """
SELECT v.id, v.conversation_id, c.session_key AS session_id, e.name AS expert, v.started_at, v.last_active_at,
       v.ended_at, v.end_reason, v.message_count, v.summary, v.key_topics, v.summary_generated_at,
       ARRAY(SELECT DISTINCT m.feeling FROM messages m
             WHERE m.conversation_id = v.conversation_id AND m.tenant_id = v.tenant_id AND m.feeling IS NOT NULL
               AND m.created_at BETWEEN v.started_at AND v.last_active_at AND m.retracted_at IS NULL
               AND m.branch_id IS NULL AND u.mood AND NOT 'mood' = ANY(e.parts_off) ORDER BY 1) AS feelings
FROM visits v JOIN conversations c ON c.id = v.conversation_id JOIN experts e ON e.id = v.expert_id
JOIN users u ON u.id = v.user_id
"""

_LIST: LiteralString = f"""{_COLUMNS}
WHERE v.tenant_id = %(tenant_id)s
  AND v.user_id = (SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s)
  AND (%(after_at)s::timestamptz IS NULL OR (v.started_at, v.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY v.started_at DESC, v.id DESC LIMIT %(limit)s
"""  # noqa: S608 — our own text only

_NEWEST: LiteralString = f"""{_COLUMNS}
WHERE v.tenant_id = %(tenant_id)s AND v.conversation_id = %(conversation_id)s
ORDER BY v.started_at DESC LIMIT 1
"""

_CONVERSATION: LiteralString = """
SELECT 1 FROM conversations c JOIN users u ON u.id = c.user_id
WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
  AND (%(user)s::text IS NULL OR u.external_id = %(user)s)
"""

_CONVERSATIONS: LiteralString = "SELECT id FROM conversations WHERE tenant_id = %(tenant_id)s ORDER BY id"

# A concurrent writer of the conversation's messages waits.
_FIRST_AND_LAST: LiteralString = """
WITH locked AS MATERIALIZED (
    SELECT id FROM conversations WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s FOR UPDATE
)
SELECT min(m.created_at), max(m.created_at) FROM messages m JOIN locked ON m.conversation_id = locked.id
WHERE m.tenant_id = %(tenant_id)s
"""

_CLOSE: LiteralString = """
UPDATE visits SET ended_at = greatest(now(), last_active_at), end_reason = 'closed', daily_due_at = now()
WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s AND ended_at IS NULL
RETURNING id, message_count
"""

# A running turn continues its visit when it ends.
_END_IDLE: LiteralString = """
WITH idle AS (
    SELECT v.id FROM visits v
    WHERE v.tenant_id = %(tenant_id)s AND v.ended_at IS NULL AND v.last_active_at < %(idle_since)s
      AND NOT EXISTS (SELECT FROM turns t WHERE t.conversation_id = v.conversation_id AND t.finished_at IS NULL)
    ORDER BY v.last_active_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE visits SET ended_at = last_active_at + %(idle)s, end_reason = 'idle', daily_due_at = %(now)s
FROM idle WHERE visits.id = idle.id
RETURNING visits.id, visits.message_count
"""


@dataclass(frozen=True)
class Closed:
    """Result of closing a conversation's visit."""

    closed: bool
    """False if none was open."""
    visit: Visit | None
    """Newest visit of the conversation, if there is one."""


class Visits:
    """Ends and lists visits. Every process with a worker has one: it registers the search for idle visits."""

    def __init__(self, database: Database, jobs: JobQueue, schedule: VisitSchedule) -> None:
        self._database = database
        self._jobs = jobs
        self._schedule = schedule
        jobs.periodic(END_IDLE_VISITS, _EVERY)(self._scan)

    async def of_user(
        self, tenant_id: UUID, user: str, *, after: tuple[datetime, UUID] | None, limit: int
    ) -> Sequence[Visit]:
        """Visits of a user, by the caller's name for them, the newest first."""
        values = {"tenant_id": tenant_id, "user": user, **page_after(after, limit)}
        return await self._database.fetch(tenant_id, _LIST, values, class_row(Visit))

    @again_if_contended
    async def close(self, tenant_id: UUID, conversation_id: UUID, *, user: str | None = None) -> Closed:
        """End the open visit of a conversation, of any user or only if it is this user's. A turn in progress
        still belongs to it. Raises `NotFound` if the tenant, or the user, has no such conversation."""
        values: dict[str, Any] = {"tenant_id": tenant_id, "conversation_id": conversation_id, "user": user}
        async with self._database.tenant(tenant_id) as connection:
            if not await (await connection.execute(_CONVERSATION, values)).fetchone():
                raise NotFound(f"There is no conversation {conversation_id}.")
            row = await (await connection.execute(_CLOSE, values)).fetchone()
            if row and self._schedule.is_summarised(row[1]):
                await self._jobs.defer(connection, SUMMARISE_VISIT, tenant_id=tenant_id, visit_id=row[0])
        found = await self._database.fetch(tenant_id, _NEWEST, values, class_row(Visit))
        return Closed(row is not None, found[0] if found else None)

    async def conversations(self, tenant_id: UUID) -> list[UUID]:
        """Return every conversation of a tenant."""
        rows = await self._database.fetch(tenant_id, _CONVERSATIONS, {"tenant_id": tenant_id}, tuple_row)
        return [row[0] for row in rows]

    async def find_all(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Rebuild a conversation's visits from its messages; return whether any was missing or wrong."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        async with self._database.tenant(tenant_id) as connection:
            row = await (await connection.execute(_FIRST_AND_LAST, values)).fetchone()
            if row is None or row[0] is None:
                return False
            return await group_visits(connection, tenant_id, self._schedule, conversation_id, *row) > 0

    async def end_idle(self, now: datetime) -> int:
        """End every visit that has been silent for too long, of all tenants; return how many."""
        return sum([await self._end_idle_of(tenant_id, now) for tenant_id in await self._database.tenants()])

    async def _end_idle_of(self, tenant_id: UUID, now: datetime) -> int:
        idle = self._schedule.idle
        values = {"tenant_id": tenant_id, "now": now, "idle": idle, "idle_since": now - idle, "limit": _AT_ONCE}
        count = 0
        while True:
            async with self._database.tenant(tenant_id) as connection:
                ended = await (await connection.execute(_END_IDLE, values)).fetchall()
                for visit_id, messages in ended:
                    if self._schedule.is_summarised(messages):
                        await self._jobs.defer(connection, SUMMARISE_VISIT, tenant_id=tenant_id, visit_id=visit_id)
            count += len(ended)
            if len(ended) < _AT_ONCE:
                return count

    async def _scan(self) -> None:
        count = await self.end_idle(datetime.now(UTC))
        if count:
            log.info("visits ended", count=count)
