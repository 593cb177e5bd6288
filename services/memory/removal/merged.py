"""Removes a memory together with those that were merged into it, because they say the same."""

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from services.memory.removal.hiding_sql import MERGED_INTO
from services.memory.removal.tables import REMOVE_EPISODES, Rows
from services.platform.connections import Connection

# A run of upkeep may be merging it at this moment.
_LOCK: LiteralString = """
SELECT id FROM episodes
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s FOR UPDATE
"""

# What they had replaced stays out of memory.
_KEEP_OUT: LiteralString = """
UPDATE episodes SET retracted_at = coalesce(retracted_at, clock_timestamp())
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND superseded_by = ANY(%(gone)s)
  AND NOT (id = ANY(%(gone)s))
"""


async def remove_with_merged(
    connection: Connection, tenant_id: UUID, user_id: UUID, episode_id: UUID
) -> Sequence[UUID]:
    """Remove an episode, in the caller's transaction; return everything removed, nothing if there is none."""
    rows = Rows(connection, {"id": episode_id, "tenant_id": tenant_id, "user_id": user_id})
    if not await rows.all(_LOCK):
        return []
    gone = [episode_id, *await rows.firsts(MERGED_INTO, episode_ids=[episode_id])]
    await rows.run(_KEEP_OUT, gone=gone)
    await rows.run(REMOVE_EPISODES, gone=gone)
    return gone
