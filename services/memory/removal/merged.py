"""Removes a memory together with those that were merged into it, because they say the same."""

from collections.abc import Sequence
from typing import Any, LiteralString
from uuid import UUID

from services.platform.connections import Connection

# A run of upkeep may be merging it at this moment.
_LOCK: LiteralString = """
SELECT id FROM episodes
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s FOR UPDATE
"""

_ITS_SOURCES: LiteralString = """
WITH RECURSIVE source AS (
    SELECT %(id)s::uuid AS id
    UNION ALL
    SELECT e.id FROM source JOIN episodes e ON e.superseded_by = source.id
    WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
      AND EXISTS (SELECT FROM upkeep_changes c WHERE c.episode_id = e.id AND c.kept_id = source.id)
)
SELECT id FROM source
"""

# What they had replaced stays out of memory.
_KEEP_OUT: LiteralString = """
UPDATE episodes SET retracted_at = coalesce(retracted_at, clock_timestamp())
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND superseded_by = ANY(%(gone)s)
  AND NOT (id = ANY(%(gone)s))
"""

_REMOVE: LiteralString = """
DELETE FROM episodes WHERE id = ANY(%(gone)s) AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""


async def remove_with_merged(
    connection: Connection, tenant_id: UUID, user_id: UUID, episode_id: UUID
) -> Sequence[UUID]:
    """Remove an episode, in the caller's transaction; return everything removed, nothing if there is none."""
    values: dict[str, Any] = {"id": episode_id, "tenant_id": tenant_id, "user_id": user_id}
    if await (await connection.execute(_LOCK, values)).fetchone() is None:
        return []
    gone = [row[0] for row in await (await connection.execute(_ITS_SOURCES, values)).fetchall()]
    values["gone"] = gone
    await connection.execute(_KEEP_OUT, values)
    await connection.execute(_REMOVE, values)
    return gone
