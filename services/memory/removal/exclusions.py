"""Memories and messages that a conversation never uses, and those that one answer goes without.

Excluding a memory also excludes the messages it was made from, and every other memory made from those: the same
fact would come up otherwise. Memory itself is not changed, and other conversations use everything.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import InvalidInput, NotFound
from services.memory.episodes.episode import StoredUnit
from services.platform.connections import again_if_contended
from services.platform.postgres import Database

EXCLUDED_IDS: LiteralString = """
SELECT array_agg(DISTINCT excluded.id) FROM recall_exclusions x LEFT JOIN episodes e ON e.id = x.episode_id
CROSS JOIN LATERAL unnest(array_append(e.source_message_ids, coalesce(x.message_id, x.episode_id)))
    AS excluded (id)
WHERE x.conversation_id = c.id
"""
"""Ids of the memories and messages that a conversation `c` never uses; NULL where it uses all."""

_CONVERSATION: LiteralString = """
SELECT c.user_id FROM conversations c JOIN users u ON u.id = c.user_id
WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
  AND (%(user)s::text IS NULL OR u.external_id = %(user)s)
"""

_SHOWN: LiteralString = """
SELECT x.id, x.episode_id AS memory_id, x.message_id, x.created_at,
       coalesce(m.content, e.content, (
           SELECT string_agg(s.role || ': ' || s.content, E'\n' ORDER BY s.created_at, s.id)
           FROM remembered_messages s WHERE s.id = ANY(e.source_message_ids)
       )) AS text
FROM recall_exclusions x
LEFT JOIN episodes e ON e.id = x.episode_id AND e.retracted_at IS NULL
LEFT JOIN remembered_messages m ON m.id = x.message_id
WHERE x.conversation_id = %(conversation_id)s AND x.tenant_id = %(tenant_id)s
"""

_LIST: LiteralString = _SHOWN + " ORDER BY x.created_at, x.id LIMIT %(limit)s"

_ONE: LiteralString = _SHOWN + " AND (x.episode_id = %(what)s OR x.message_id = %(what)s)"

_ADD: LiteralString = """
INSERT INTO recall_exclusions (id, tenant_id, conversation_id, episode_id, message_id)
SELECT %(id)s, %(tenant_id)s, %(conversation_id)s, known.episode_id, known.message_id FROM (
    SELECT e.id AS episode_id, NULL::uuid AS message_id FROM episodes e
    WHERE e.id = %(what)s AND e.user_id = %(user_id)s AND e.tenant_id = %(tenant_id)s
    UNION ALL
    SELECT NULL, m.id FROM messages m JOIN conversations c ON c.id = m.conversation_id
    WHERE m.id = %(what)s AND c.user_id = %(user_id)s AND m.tenant_id = %(tenant_id)s
) AS known
WHERE (SELECT count(*) FROM recall_exclusions x WHERE x.conversation_id = %(conversation_id)s) < %(most)s
ON CONFLICT (conversation_id, episode_id, message_id, tenant_id) DO NOTHING
"""

_REMOVE: LiteralString = """
DELETE FROM recall_exclusions
WHERE id = %(id)s AND conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s RETURNING id
"""

_OF_USER: LiteralString = """
WITH person AS (SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s)
SELECT id, source_message_ids FROM episodes
WHERE id = ANY(%(ids)s) AND tenant_id = %(tenant_id)s AND user_id = (SELECT id FROM person)
UNION ALL
SELECT m.id, ARRAY[]::uuid[] FROM messages m JOIN conversations c ON c.id = m.conversation_id
WHERE m.id = ANY(%(ids)s) AND m.tenant_id = %(tenant_id)s AND c.user_id = (SELECT id FROM person)
"""

MOST = 200
"""Exclusions that a conversation may have."""


@dataclass(frozen=True)
class Exclusion:
    """A memory, or a message, that a conversation never uses."""

    id: UUID
    memory_id: UUID | None
    message_id: UUID | None
    text: str | None
    """What it says, unless memory has lost it since."""
    created_at: datetime


class Exclusions:
    """Keeps what conversations never use."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_conversation(
        self, tenant_id: UUID, conversation_id: UUID, *, user: str | None = None
    ) -> Sequence[Exclusion]:
        """All of a conversation, oldest first; of any user, or only where it is this one's.

        Raises:
            NotFound: the tenant, or the user, has no such conversation.
        """
        await self._user_of(tenant_id, conversation_id, user)
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "limit": MOST}
        return await self._database.fetch(tenant_id, _LIST, values, class_row(Exclusion))

    @again_if_contended
    async def add(
        self, tenant_id: UUID, conversation_id: UUID, what: UUID, *, user: str | None = None
    ) -> Exclusion:
        """Never use a memory, or a message, in a conversation from its next turn on; repeated, it stays as it is.

        Raises:
            InvalidInput: the conversation's user has no memory or message of this id, or too many are excluded.
            NotFound: the tenant, or the user, has no such conversation.
        """
        values = {
            "id": uuid7(),
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "user_id": await self._user_of(tenant_id, conversation_id, user),
            "what": what,
            "most": MOST,
        }
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute(_ADD, values)
            async with connection.cursor(row_factory=class_row(Exclusion)) as cursor:
                found = await (await cursor.execute(_ONE, values)).fetchone()
        if found is None:
            if len(await self.of_conversation(tenant_id, conversation_id)) >= MOST:
                raise InvalidInput("what", f"is one too many: a conversation excludes at most {MOST}")
            raise InvalidInput("what", "is no memory and no message of the conversation's user")
        return found

    async def remove(
        self, tenant_id: UUID, conversation_id: UUID, exclusion_id: UUID, *, user: str | None = None
    ) -> None:
        """Use it again.

        Raises:
            NotFound: the conversation is not there, or excludes nothing under this id.
        """
        await self._user_of(tenant_id, conversation_id, user)
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "id": exclusion_id}
        if not await self._database.fetch(tenant_id, _REMOVE, values, tuple_row):
            raise NotFound(f"There is no exclusion {exclusion_id}.")

    async def expanded(self, tenant_id: UUID, user: str, ids: Sequence[UUID]) -> list[str]:
        """The ids, with those of the messages that memories among them were made from.

        Raises:
            InvalidInput: the user has no memory and no message of one of these ids.
        """
        values = {"tenant_id": tenant_id, "user": user, "ids": list(ids)}
        sources: dict[UUID, list[UUID]] = dict(await self._database.fetch(tenant_id, _OF_USER, values, tuple_row))
        for each in ids:
            if each not in sources:
                raise InvalidInput("without", f"names no memory and no message of the user: {each}")
        return sorted({str(each) for found in sources.values() for each in found} | set(map(str, sources)))

    async def _user_of(self, tenant_id: UUID, conversation_id: UUID, user: str | None) -> UUID:
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "user": user}
        found = await self._database.fetch(tenant_id, _CONVERSATION, values, tuple_row)
        if not found:
            raise NotFound(f"There is no conversation {conversation_id}.")
        user_id: UUID = found[0][0]
        return user_id


def is_excluded(unit: StoredUnit, excluded: Collection[str]) -> bool:
    """Whether a unit is among the ids, or comes from a message that is."""
    sources = [unit.message_id] if unit.message_id else unit.source_message_ids
    return bool(excluded) and any(str(each) in excluded for each in (unit.episode_id, *sources))
