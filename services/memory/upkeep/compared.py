"""What is compared at night: a user's written memories and the values of core memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from services.memory.core_values import CoreValue, CoreValues
from services.memory.episodes.episode import Origin
from services.memory.pairs import Side
from services.platform.postgres import Database

_MOST = 2000
"""Newest written memories of a user with an expert that are compared."""

_WRITTEN: LiteralString = """
SELECT id, expert_id, space_id, content, md5(content) AS content_hash, origin, created_at, learned_at,
       pinned_at IS NOT NULL AS is_pinned,
       source_message_ids AS message_ids
FROM (
    SELECT e.*, row_number() OVER (PARTITION BY e.expert_id ORDER BY e.created_at DESC, e.id DESC) AS place
    FROM remembered_episodes e
    WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.content IS NOT NULL
) AS written
WHERE place <= %(most)s
"""


@dataclass(frozen=True)
class Compared:
    """A written memory or a value of core memory."""

    side: Side
    expert_id: UUID
    space_id: UUID | None
    content: str
    content_hash: str
    """Of a memory: of its text as it is stored, by which a change is noticed."""
    field: str
    """Of a value: its field; of a memory empty."""
    origin: Origin
    created_at: datetime
    learned_at: datetime
    is_pinned: bool
    message_ids: frozenset[UUID]

    @property
    def in_core_memory(self) -> bool:
        """Whether it is a value of core memory."""
        return self.side.digest is not None


async def compared_memories(
    database: Database, values: CoreValues, tenant_id: UUID, user_id: UUID
) -> list[Compared]:
    """Return a user's memories and values by expert, space and time."""
    asked = {"tenant_id": tenant_id, "user_id": user_id, "most": _MOST}
    written = await database.fetch(tenant_id, _WRITTEN, asked, dict_row)
    found = [*map(_of_memory, written), *_of_values(await values.read(tenant_id, user_id))]
    return sorted(found, key=_order)


def _of_memory(row: dict[str, Any]) -> Compared:
    message_ids = frozenset(row.pop("message_ids"))
    return Compared(Side(row.pop("id")), **row, field="", message_ids=message_ids)


def _of_values(values: Iterable[CoreValue]) -> Iterable[Compared]:
    for value in values:
        if value.holds and "." not in value.field:  # what is nested is named, and has one value
            yield Compared(
                Side(value.block_id, value.digest),
                value.expert_id,
                value.space_id,
                value.text,
                "",
                value.field,
                "document" if value.is_foreign else "user_said",
                value.since,
                value.since,
                value.is_pinned,
                frozenset({value.message_id} if value.message_id else ()),
            )


def _order(compared: Compared) -> tuple[str, str, datetime, str, str]:
    side = compared.side
    return (str(compared.expert_id), str(compared.space_id), compared.created_at, str(side.id), side.digest or "")
