"""Removes an episode together with what was merged from it, or what it was merged from.

What somebody removes must not survive in a text derived from it: that text is removed too, and its other sources
are restored. Removing a merged text also removes its sources, because they mean the same."""

from collections.abc import Sequence
from typing import Any, LiteralString
from uuid import UUID

from services.platform.connections import Connection

# Step by step, each under its lock, because a run of upkeep may be merging it at this moment.
_LOCK: LiteralString = """
SELECT superseded_by FROM episodes
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s
  AND (%(first)s OR episode_type = 'consolidated') FOR UPDATE
"""

_ITS_SOURCES: LiteralString = """
WITH RECURSIVE source AS (
    SELECT e.id, e.episode_type FROM episodes e
    WHERE e.id = %(id)s AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
    UNION ALL
    SELECT e.id, e.episode_type FROM source JOIN episodes e ON e.superseded_by = source.id
    WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND (
        source.episode_type = 'consolidated'
        OR EXISTS (SELECT FROM upkeep_changes c WHERE c.episode_id = e.id AND c.kept_id = source.id))
)
SELECT id FROM source
"""

_BRING_BACK: LiteralString = """
UPDATE episodes SET superseded_by = %(by)s, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND superseded_by = ANY(%(made)s)
  AND NOT (id = ANY(%(gone)s))
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
    texts: list[UUID] = []
    holds_instead: UUID | None = episode_id
    while holds_instead is not None:
        step = {**values, "id": holds_instead, "first": not texts}
        row = await (await connection.execute(_LOCK, step)).fetchone()
        if row is None:
            break
        texts.append(holds_instead)
        holds_instead = row[0]
    if not texts:
        return []
    sources = await (await connection.execute(_ITS_SOURCES, values)).fetchall()
    gone = list(dict.fromkeys([*texts, *(row[0] for row in sources)]))
    values |= {"gone": gone, "made": texts[1:], "by": holds_instead}
    await connection.execute(_BRING_BACK, values)
    await connection.execute(_KEEP_OUT, values)
    await connection.execute(_REMOVE, values)
    return gone
