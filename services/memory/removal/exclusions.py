"""Memories and messages that a conversation never uses, or that one answer goes without.

Excluding a memory also excludes the messages it was made from, and all other memories made from those, because the
same fact would come up through them. Memory itself does not change, and other conversations use everything.
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
from services.platform.postgres import Database

EXCLUDED_IDS: LiteralString = """
SELECT array_agg(DISTINCT excluded.id) FROM recall_exclusions x LEFT JOIN episodes e ON e.id = x.episode_id
CROSS JOIN LATERAL unnest(array_append(e.source_message_ids, coalesce(x.message_id, x.episode_id)))
    AS excluded (id)
WHERE x.conversation_id = c.id
"""
"""Ids of the memories and messages that a conversation `c` never uses; NULL if it uses all."""

_LIST: LiteralString = """
SELECT x.id, x.episode_id AS memory_id, x.message_id, x.created_at,
       coalesce(m.content, e.content, (
           SELECT string_agg(s.role || ': ' || s.content, E'\n' ORDER BY s.created_at, s.id)
           FROM remembered_messages s WHERE s.id = ANY(e.source_message_ids)
       )) AS text
FROM recall_exclusions x
LEFT JOIN episodes e ON e.id = x.episode_id AND e.retracted_at IS NULL
LEFT JOIN remembered_messages m ON m.id = x.message_id
WHERE x.conversation_id = %(conversation_id)s AND x.tenant_id = %(tenant_id)s
ORDER BY x.created_at, x.id LIMIT %(most)s
"""

# The memories and messages of a user among some ids, with the messages that memories were made from.
_OF_USER: LiteralString = """
SELECT id, id AS episode_id, NULL::uuid AS message_id, source_message_ids FROM episodes
WHERE id = ANY(%(ids)s) AND tenant_id = %(tenant_id)s AND user_id = (SELECT id FROM person)
UNION ALL
SELECT m.id, NULL, m.id, ARRAY[]::uuid[] FROM messages m JOIN conversations c ON c.id = m.conversation_id
WHERE m.id = ANY(%(ids)s) AND m.tenant_id = %(tenant_id)s AND c.user_id = (SELECT id FROM person)
"""

_ADD: LiteralString = f"""
WITH person AS (
    SELECT user_id AS id FROM conversations WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s
)
INSERT INTO recall_exclusions (id, tenant_id, conversation_id, episode_id, message_id)
SELECT %(id)s, %(tenant_id)s, %(conversation_id)s, known.episode_id, known.message_id FROM ({_OF_USER}) AS known
WHERE (SELECT count(*) FROM recall_exclusions x WHERE x.conversation_id = %(conversation_id)s) < %(most)s
ON CONFLICT (conversation_id, episode_id, message_id, tenant_id) DO NOTHING RETURNING id
"""  # noqa: S608 — our own text only

_REMOVE: LiteralString = """
DELETE FROM recall_exclusions
WHERE id = %(id)s AND conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s RETURNING id
"""

_EXPANDED: LiteralString = f"""
WITH person AS (SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s)
SELECT id, source_message_ids FROM ({_OF_USER}) AS known
"""  # noqa: S608 — our own text only

MOST = 200
"""Exclusions that a conversation may have."""


@dataclass(frozen=True)
class Exclusion:
    """A memory, or a message, that a conversation never uses."""

    id: UUID
    memory_id: UUID | None
    message_id: UUID | None
    text: str | None
    """Text of what is excluded; None if memory has lost it since."""
    created_at: datetime


class Exclusions:
    """Stores what conversations never use. Whether a conversation is the caller's has been checked before."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_conversation(self, tenant_id: UUID, conversation_id: UUID) -> Sequence[Exclusion]:
        """Return all exclusions of a conversation, oldest first."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "most": MOST}
        return await self._database.fetch(tenant_id, _LIST, values, class_row(Exclusion))

    async def add(self, tenant_id: UUID, conversation_id: UUID, what: UUID) -> Exclusion:
        """Exclude a memory or a message from a conversation, beginning with its next turn; repeating it changes
        nothing. Raises `InvalidInput` if the conversation's user has no memory or message with this id, or too
        many are excluded."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "ids": [what], "most": MOST}
        await self._database.fetch(tenant_id, _ADD, {**values, "id": uuid7()}, tuple_row)
        known = await self.of_conversation(tenant_id, conversation_id)
        found = next((each for each in known if what in (each.memory_id, each.message_id)), None)
        if found is None and len(known) >= MOST:
            raise InvalidInput("what", f"is one too many: a conversation excludes at most {MOST}")
        if found is None:
            raise InvalidInput("what", "is no memory and no message of the conversation's user")
        return found

    async def remove(self, tenant_id: UUID, conversation_id: UUID, exclusion_id: UUID) -> None:
        """Stop excluding something. Raises `NotFound` if the conversation excludes nothing with this id."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "id": exclusion_id}
        if not await self._database.fetch(tenant_id, _REMOVE, values, tuple_row):
            raise NotFound(f"There is no exclusion {exclusion_id}.")

    async def expanded(self, tenant_id: UUID, user: str, ids: Sequence[UUID]) -> list[str]:
        """Return the ids, with those of the messages from which memories among them were made. Raises
        `InvalidInput` if the user has no memory or message with one of the ids."""
        values = {"tenant_id": tenant_id, "user": user, "ids": list(ids)}
        sources: dict[UUID, list[UUID]] = dict(await self._database.fetch(tenant_id, _EXPANDED, values, tuple_row))
        for each in ids:
            if each not in sources:
                raise InvalidInput("without", f"names no memory and no message of the user: {each}")
        return sorted({str(each) for found in sources.values() for each in found} | set(map(str, sources)))


def is_excluded(unit: StoredUnit, excluded: Collection[str]) -> bool:
    """Return whether a unit is among the ids, or comes from a message among them."""
    sources = [unit.message_id] if unit.message_id else unit.source_message_ids
    return bool(excluded) and any(str(each) in excluded for each in (unit.episode_id, *sources))
