"""Which messages and memories hold foreign words: those of documents, imports and tools, however often retold."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row

from services.platform.postgres import Database

# A written memory without messages was imported, or written over MCP or the API, where agents write beside people.
_AMONG: LiteralString = """
SELECT array(SELECT m.id::text FROM messages m
             WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s
               AND m.id = ANY(%(messages)s) AND m.origin IS NOT NULL) AS messages,
       array(SELECT e.id::text FROM episodes e
             WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.id = ANY(%(episodes)s)
               AND (e.episode_type <> 'turn' AND e.source_message_ids = '{}'
                    OR e.origin IN ('tool', 'document') OR EXISTS (
                   SELECT FROM messages m WHERE m.id = ANY(e.source_message_ids) AND m.origin IS NOT NULL
               ))) AS episodes,
       EXISTS (SELECT FROM messages m
               WHERE m.conversation_id = %(conversation_id)s AND m.origin IS NOT NULL) AS of_conversation,
       EXISTS (SELECT FROM conversations c JOIN messages m ON m.conversation_id = c.id
               WHERE c.tenant_id = %(tenant_id)s AND c.user_id = %(user_id)s AND m.origin IS NOT NULL)
           OR EXISTS (SELECT FROM episodes e WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s
               AND e.made_by->>'actor' = 'import') AS of_user,
       EXISTS (SELECT FROM core_memory_blocks b JOIN core_memory_history h ON h.block_id = b.id
               WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s
                 AND h.actor = 'import') AS in_core_memory
"""


@dataclass(frozen=True)
class ForeignItems:
    """What of some messages and memories holds foreign words."""

    messages: Collection[str] = ()
    episodes: Collection[str] = ()
    of_conversation: bool = False
    of_user: bool = False
    """Whether anything that the user's conversations hold does, or what was imported for them."""
    in_core_memory: bool = False
    """Whether the user's core memory was imported."""


class ForeignOrigins:
    """Looks up what was made from foreign words."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def among(
        self,
        tenant_id: UUID,
        user_id: UUID,
        *,
        conversation_id: UUID | None = None,
        messages: Collection[str] = (),
        episodes: Collection[str] = (),
    ) -> ForeignItems:
        """Return which of these ids hold foreign words, and whether the conversation and the user have any."""
        values = {
            "tenant_id": tenant_id,
            "user_id": user_id,
            "conversation_id": conversation_id,
            "messages": [UUID(each) for each in messages],
            "episodes": [UUID(each) for each in episodes],
        }
        return (await self._database.fetch(tenant_id, _AMONG, values, class_row(ForeignItems)))[0]
