"""The messages that memories come from, as memory may show them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from services.memory.as_of import as_of
from services.memory.episodes.episode import Source
from services.platform.postgres import Database

TEXT_OF_TURN: LiteralString = """
LEFT JOIN LATERAL (
    SELECT string_agg(coalesce(m.speaker, m.role) || ': ' || m.content, E'\\n' ORDER BY m.created_at, m.id) AS text
    FROM remembered_messages m WHERE m.id = ANY(e.source_message_ids) AND m.completed AND e.content IS NULL
) AS said ON true
"""
"""Joins to an episode `e` of a turn what its complete messages say, as `said.text`."""

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
    """Return those of some messages that are remembered, by id, oldest first; with `at`, as they were then."""
    ids = list(message_ids)
    if not ids:
        return {}
    values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "message_ids": ids, "as_of": at}
    rows = await database.fetch(tenant_id, as_of(_MESSAGES) if at else _MESSAGES, values, class_row(Source))
    return {each.message_id: each for each in rows}
