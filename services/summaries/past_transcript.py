"""Messages between two moments without a summary yet, read verbatim from `messages`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from services.memory.blocks import Owner
from services.platform.postgres import Database

# Some exchanges of each visit, from its beginning to its end: what the user said, and the answer to it. Under
# row-level security only bare bounds use the index.
_SAMPLE: LiteralString = """
SELECT m.id, v.id AS visit_id, m.role, m.content, m.speaker, m.created_at
FROM unnest(%(visit_ids)s::uuid[]) AS wanted (id)
JOIN visits v ON v.id = wanted.id AND v.tenant_id = %(tenant_id)s
CROSS JOIN LATERAL (
    SELECT m.*, count(*) FILTER (WHERE m.role = 'user') OVER (ORDER BY m.created_at, m.id) AS number,
        count(*) FILTER (WHERE m.role = 'user') OVER () AS total
    FROM remembered_messages m
    WHERE m.conversation_id = v.conversation_id AND m.completed
      AND m.created_at >= v.started_at AND m.created_at <= v.last_active_at
) AS m
WHERE m.number > 0 AND (m.number * %(most)s) / m.total <> ((m.number - 1) * %(most)s) / m.total
ORDER BY m.created_at, m.id
"""

_NEWEST: LiteralString = """
SELECT m.id, NULL::uuid AS visit_id, m.role, m.content, m.speaker, m.created_at
FROM conversations c CROSS JOIN LATERAL (
    SELECT m.* FROM remembered_messages m
    WHERE m.conversation_id = c.id AND m.completed AND m.created_at >= %(lower)s AND m.created_at < %(upper)s
    ORDER BY m.created_at DESC, m.id DESC LIMIT %(limit)s
) AS m
WHERE c.user_id = %(user_id)s AND c.tenant_id = %(tenant_id)s AND c.expert_id = %(expert_id)s
  AND (c.space_id IS NULL OR c.space_id = %(space_id)s) AND m.id <> %(but)s
ORDER BY m.created_at DESC, m.id DESC LIMIT %(limit)s
"""


@dataclass(frozen=True)
class SaidMessage:
    """One complete message."""

    id: UUID
    visit_id: UUID | None
    """Facts about a sample."""
    role: Literal["user", "assistant"]
    content: str
    speaker: str | None
    created_at: datetime


class PastTranscript:
    """Reads messages of one tenant's users by their time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sample(self, tenant_id: UUID, visit_ids: Sequence[UUID], *, most: int) -> list[SaidMessage]:
        """`most` exchanges of each of these visits, evenly spread, in order."""
        values = {"tenant_id": tenant_id, "visit_ids": list(visit_ids), "most": most}
        return await self._database.fetch(tenant_id, _SAMPLE, values, class_row(SaidMessage))

    async def newest(
        self, owner: Owner, lower: datetime, upper: datetime, *, but: UUID, limit: int
    ) -> list[SaidMessage]:
        """The newest messages at or after `lower` and before `upper`, in order, without the one being answered."""
        values = {
            **vars(owner),
            "lower": lower,
            "upper": upper,
            "but": but,
            "limit": limit,
        }
        found = await self._database.fetch(owner.tenant_id, _NEWEST, values, class_row(SaidMessage))
        return found[::-1]
