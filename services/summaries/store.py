"""Rolling summaries in PostgreSQL: what they cover, and how they are replaced without losing a message."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb

from services.encryption.marks import Words
from services.platform.authorship import made_by
from services.platform.postgres import Database
from services.summaries.prompts import Place, SaidMessage

_BEFORE_ALL = UUID(int=0)

_GET = """
SELECT s.summary, s.summary_version, s.covered_through_created_at, s.covered_through_message_id,
       s.covered_message_count, s.increments_since_full, s.rewritten_version, s.updated_at
FROM conversation_summaries s WHERE s.conversation_id = %(conversation_id)s AND s.tenant_id = %(tenant_id)s
"""

_STATE = """
SELECT e.context_strategy AS strategy, c.retracted_at, u.timezone,
       EXISTS (SELECT FROM remembered_messages m
               WHERE m.conversation_id = c.id AND m.uncovered AND m.completed) AS late,
       behind.behind, behind.tokens, newest.created_at AS through_created_at, newest.id AS through_message_id
FROM conversations c JOIN experts e ON e.id = c.expert_id JOIN users u ON u.id = c.user_id
CROSS JOIN LATERAL (
    SELECT count(*) AS behind, coalesce(sum(m.token_count), 0) AS tokens FROM remembered_messages m
    LEFT JOIN conversation_summaries s ON s.conversation_id = m.conversation_id
    WHERE m.conversation_id = c.id AND m.completed
      AND (s.conversation_id IS NULL OR (m.created_at, m.id) >
           (s.covered_through_created_at, s.covered_through_message_id))
) AS behind
LEFT JOIN LATERAL (
    SELECT m.created_at, m.id FROM remembered_messages m WHERE m.conversation_id = c.id AND m.completed
    ORDER BY m.created_at DESC, m.id DESC OFFSET %(window)s LIMIT 1
) AS newest ON true
WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
"""

_MESSAGES = """
SELECT id, role, content, token_count, created_at, speaker FROM remembered_messages
WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s AND completed
  AND (created_at, id) > (%(after_at)s::timestamptz, %(after_id)s::uuid)
  AND (created_at, id) <= (%(through_at)s, %(through_id)s)
ORDER BY created_at, id LIMIT %(limit)s
"""

# Waits for messages that are being stored; they wait for this statement too.
_LOCK = """
SELECT 1 FROM conversations
WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s
  AND retracted_at IS NOT DISTINCT FROM %(retracted_at)s::timestamptz FOR UPDATE
"""

_COVERED = """
SELECT count(*), coalesce(bool_or(uncovered), false) FROM remembered_messages
WHERE conversation_id = %(conversation_id)s AND completed AND (created_at, id) <= (%(at)s, %(message_id)s)
"""

# The point never moves back. It may stay where it is only to include messages that came late.
_WRITE = """
INSERT INTO conversation_summaries AS s (conversation_id, tenant_id, summary, summary_version,
    covered_through_created_at, covered_through_message_id, covered_message_count, increments_since_full,
    rewritten_version, made_by)
VALUES (%(conversation_id)s, %(tenant_id)s, %(summary)s, %(expected)s + 1, %(at)s, %(message_id)s, %(count)s,
    %(increments)s, CASE WHEN %(rewritten)s THEN %(expected)s + 1 ELSE 0 END, %(made_by)s)
ON CONFLICT (conversation_id, tenant_id) DO UPDATE SET
    summary = EXCLUDED.summary,
    summary_version = EXCLUDED.summary_version,
    covered_through_created_at = EXCLUDED.covered_through_created_at,
    covered_through_message_id = EXCLUDED.covered_through_message_id,
    covered_message_count = EXCLUDED.covered_message_count,
    increments_since_full = EXCLUDED.increments_since_full,
    rewritten_version = greatest(s.rewritten_version, EXCLUDED.rewritten_version),
    made_by = EXCLUDED.made_by,
    updated_at = now()
WHERE s.summary_version = %(expected)s
  AND (
      (s.covered_through_created_at, s.covered_through_message_id)
          < (EXCLUDED.covered_through_created_at, EXCLUDED.covered_through_message_id)
      OR (
          %(rewritten)s
          AND (s.covered_through_created_at, s.covered_through_message_id)
              = (EXCLUDED.covered_through_created_at, EXCLUDED.covered_through_message_id)
      )
  )
RETURNING s.summary_version
"""

_NOW_COVERED = """
UPDATE messages SET uncovered = false
WHERE conversation_id = %(conversation_id)s AND uncovered AND (created_at, id) <= (%(at)s, %(message_id)s)
"""

_PARTS = """
SELECT summary, through_created_at, through_message_id, message_count FROM summary_parts
WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s ORDER BY part
"""

_ADD_PART = """
INSERT INTO summary_parts (conversation_id, part, tenant_id, summary, through_created_at, through_message_id,
    message_count, made_by)
SELECT id, %(part)s, tenant_id, %(summary)s, %(at)s, %(message_id)s, %(count)s, %(made_by)s FROM conversations
WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s
  AND retracted_at IS NOT DISTINCT FROM %(retracted_at)s::timestamptz FOR SHARE
ON CONFLICT DO NOTHING RETURNING part
"""

_FORGET_PARTS = """
DELETE FROM summary_parts p
WHERE p.conversation_id = %(conversation_id)s AND p.tenant_id = %(tenant_id)s
  AND (%(all)s OR EXISTS (
      SELECT FROM messages m WHERE m.conversation_id = p.conversation_id AND m.uncovered
        AND (m.created_at, m.id) <= (p.through_created_at, p.through_message_id)
  ))
RETURNING p.part
"""

_DUE = """
SELECT c.id FROM conversations c JOIN experts e ON e.id = c.expert_id
WHERE c.tenant_id = %(tenant_id)s AND e.context_strategy = 'summary' ORDER BY c.id
"""


@dataclass(frozen=True)
class StoredSummary:
    """A conversation's rolling summary."""

    summary: str
    summary_version: int
    """Version, from 1."""
    covered_through_created_at: datetime
    covered_through_message_id: UUID
    covered_message_count: int
    increments_since_full: int
    rewritten_version: int
    """The last version that included late messages; 0 = none."""
    updated_at: datetime

    @property
    def through(self) -> Place:
        """Return the place of the last message that it covers."""
        return self.covered_through_created_at, self.covered_through_message_id


@dataclass(frozen=True)
class SummaryState:
    """The state of a conversation: which messages are to be summarised."""

    strategy: str
    late: bool
    """Whether messages came late, with a time before the covered point."""
    behind: int
    """Completed messages after the covered point."""
    tokens: int
    """Estimated tokens of these messages."""
    through_created_at: datetime | None
    through_message_id: UUID | None
    retracted_at: datetime | None
    """Time of the last retraction in the conversation; a summary is stored only if this is still the last."""
    timezone: str = "UTC"
    """Time zone of the user."""

    @property
    def through(self) -> Place | None:
        """Return the place of the newest message that may be covered; None = there are too few messages."""
        if self.through_created_at is None or self.through_message_id is None:
            return None
        return self.through_created_at, self.through_message_id


@dataclass(frozen=True)
class Part:
    """The summary of a stretch of the transcript."""

    summary: str
    through_created_at: datetime
    through_message_id: UUID
    message_count: int

    @property
    def through(self) -> Place:
        """Return the place of its last message."""
        return self.through_created_at, self.through_message_id


@dataclass(frozen=True)
class NewSummary:
    """A summary to be written in place of the version `expected`."""

    summary: str
    expected: int
    through: Place
    count: int
    """Number of messages covered."""
    increments: int
    retracted_at: datetime | None = None
    """Time of the last retraction that was known before its messages were read."""


class SummaryStore:
    """Reads and writes rolling summaries of a tenant's conversations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, tenant_id: UUID, conversation_id: UUID) -> StoredSummary | None:
        """The summary, if there is one."""
        found = await self._database.fetch(
            tenant_id, _GET, _ids(tenant_id, conversation_id), class_row(StoredSummary)
        )
        return found[0] if found else None

    async def state(self, tenant_id: UUID, conversation_id: UUID, *, window: int) -> SummaryState | None:
        """Return the state, leaving out the newest `window` messages; None if the conversation is gone."""
        values = {**_ids(tenant_id, conversation_id), "window": window}
        found = await self._database.fetch(tenant_id, _STATE, values, class_row(SummaryState))
        return found[0] if found else None

    async def messages(
        self, tenant_id: UUID, conversation_id: UUID, *, after: Place | None, through: Place, limit: int
    ) -> list[SaidMessage]:
        """Return completed messages after `after` up to `through`, oldest first, at most `limit`."""
        values = {
            **_ids(tenant_id, conversation_id),
            "after_at": after[0] if after else "-infinity",
            "after_id": after[1] if after else _BEFORE_ALL,
            "through_at": through[0],
            "through_id": through[1],
            "limit": limit,
        }
        return await self._database.fetch(tenant_id, _MESSAGES, values, class_row(SaidMessage))

    async def write(self, tenant_id: UUID, conversation_id: UUID, new: NewSummary) -> bool:
        """Replace the summary; return False if another writer was faster, or messages were added or retracted
        meanwhile.

        While it is written, no message of the conversation is stored or in progress, so all messages before its
        point are counted.
        """
        values: dict[str, Any] = {
            **_ids(tenant_id, conversation_id),
            "summary": Words(new.summary),
            "expected": new.expected,
            "at": new.through[0],
            "message_id": new.through[1],
            "count": new.count,
            "increments": new.increments,
            "retracted_at": new.retracted_at,
            "made_by": Jsonb(made_by()),
        }
        async with self._database.tenant(tenant_id) as connection:
            if await (await connection.execute(_LOCK, values)).fetchone() is None:
                return False
            counted = await (await connection.execute(_COVERED, values)).fetchone()
            if counted is None or counted[0] != new.count:
                return False
            if await (await connection.execute(_WRITE, {**values, "rewritten": counted[1]})).fetchone() is None:
                return False
            await connection.execute(_NOW_COVERED, values)
        return True

    async def parts(self, tenant_id: UUID, conversation_id: UUID) -> list[Part]:
        """Return the summaries of stretches, in order and without gaps."""
        return await self._database.fetch(tenant_id, _PARTS, _ids(tenant_id, conversation_id), class_row(Part))

    async def add_part(
        self, tenant_id: UUID, conversation_id: UUID, number: int, part: Part, retracted_at: datetime | None
    ) -> None:
        """Store the summary of a stretch, unless it exists or a message was retracted since it was read.

        Args:
            number: Number of the stretch, from 1.
            retracted_at: Time of the last retraction that was known before the messages were read.
        """
        values = {
            **_ids(tenant_id, conversation_id),
            "part": number,
            "summary": Words(part.summary),
            "at": part.through_created_at,
            "message_id": part.through_message_id,
            "count": part.message_count,
            "retracted_at": retracted_at,
            "made_by": Jsonb(made_by()),
        }
        await self._database.fetch(tenant_id, _ADD_PART, values, tuple_row)

    async def forget_parts(self, tenant_id: UUID, conversation_id: UUID, *, all_of_them: bool) -> None:
        """Delete summaries of stretches: all, or those from the first that misses a late message on."""
        values = {**_ids(tenant_id, conversation_id), "all": all_of_them}
        await self._database.fetch(tenant_id, _FORGET_PARTS, values, tuple_row)

    async def conversations(self, tenant_id: UUID) -> Sequence[UUID]:
        """Return the conversations of the tenant whose expert keeps a rolling summary."""
        rows = await self._database.fetch(tenant_id, _DUE, {"tenant_id": tenant_id}, tuple_row)
        return [row[0] for row in rows]


def _ids(tenant_id: UUID, conversation_id: UUID) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "conversation_id": conversation_id}
