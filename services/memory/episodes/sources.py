"""The messages that memories come from, as memory may show them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from services.memory.as_of import as_of
from services.memory.episodes.episode import Source
from services.platform.postgres import Database

_MESSAGES: LiteralString = """
SELECT id AS message_id, external_id, role, content, speaker, created_at FROM remembered_messages
WHERE tenant_id = %(tenant_id)s AND id = ANY(%(message_ids)s) AND completed
ORDER BY created_at, id
"""


async def sources_of(
    database: Database,
    tenant_id: UUID,
    message_ids: Iterable[UUID],
    *,
    user_id: UUID | None = None,
    at: datetime | None = None,
) -> dict[UUID, Source]:
    """Return those of some messages that are remembered, by their ids, oldest first; with `at`, as they were then.

    Args:
        at: a moment of the past; None = now.
    """
    ids = list(message_ids)
    if not ids:
        return {}
    values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "message_ids": ids, "as_of": at}
    rows = await database.fetch(tenant_id, as_of(_MESSAGES) if at else _MESSAGES, values, class_row(Source))
    return {each.message_id: each for each in rows}
