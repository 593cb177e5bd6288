"""Stored conversations to compare with the history that a client resends: digests of their newest messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.conversations.resent_history import StoredMessage
from services.conversations.values import message_digest
from services.encryption.marks import SoughtDigest
from services.platform.postgres import Database

_COLUMNS: LiteralString = """
m.id, m.turn_id, m.role, m.digest, m.external_id,
(t.id IS NULL OR t.status = 'completed') AND NOT m.metadata ? 'promise_id' AS answered,
t.id IS NOT NULL AND t.finished_at IS NULL AS unfinished, t.idempotency_key, m.content, m.parts
"""

# The content is read only for messages without a digest.
_NEWEST_MESSAGES: LiteralString = f"""
SELECT c.id, c.session_key, c.expert, c.space, (
    SELECT b.id FROM conversation_branches b WHERE b.conversation_id = c.id
    ORDER BY b.created_at DESC, b.id DESC LIMIT 1
), {_COLUMNS}
FROM c LEFT JOIN LATERAL (
    SELECT id, turn_id, role, digest, external_id, created_at, metadata,
           CASE WHEN digest IS NULL THEN content END AS content, CASE WHEN digest IS NULL THEN parts END AS parts
    FROM messages WHERE conversation_id = c.id AND tenant_id = %(tenant_id)s AND branch_id IS NULL
    ORDER BY created_at DESC, id DESC LIMIT %(limit)s
) AS m ON true LEFT JOIN turns t ON t.id = m.turn_id
ORDER BY m.created_at, m.id
"""  # noqa: S608 — our own text only

_CONVERSATIONS: LiteralString = """SELECT c.id, c.session_key, e.name AS expert, s.name AS space
    FROM users u JOIN conversations c ON c.user_id = u.id JOIN experts e ON e.id = c.expert_id
    LEFT JOIN spaces s ON s.id = c.space_id"""

_OF_SESSION: LiteralString = f"""
WITH c AS (
    {_CONVERSATIONS}
    WHERE u.tenant_id = %(tenant_id)s AND u.external_id = %(user)s AND c.session_key = %(session)s
)
{_NEWEST_MESSAGES}
"""

# The newest conversation that a client began without naming it, if it began recently.
_JUST_BEGUN: LiteralString = f"""
WITH c AS (
    {_CONVERSATIONS}
    WHERE u.tenant_id = %(tenant_id)s AND u.external_id = %(user)s AND e.name = %(expert)s
      AND s.name IS NOT DISTINCT FROM %(space)s
      AND starts_with(c.session_key, %(unnamed)s) AND c.created_at > now() - %(within_s)s * interval '1 second'
    ORDER BY c.created_at DESC, c.id DESC LIMIT 1
)
{_NEWEST_MESSAGES}
"""

# The conversation with the expert that has most of the answers; of several, the newest.
_WITH_ANSWERS: LiteralString = f"""
WITH c AS (
    SELECT c.id, c.session_key, e.name AS expert, s.name AS space
    FROM messages a JOIN conversations c ON c.id = a.conversation_id
    JOIN users u ON u.id = c.user_id JOIN experts e ON e.id = c.expert_id
    LEFT JOIN spaces s ON s.id = c.space_id
    WHERE a.digest = ANY(%(answers)s::bytea[]) AND a.role = 'assistant' AND a.tenant_id = %(tenant_id)s
      AND u.external_id = %(user)s AND e.name = %(expert)s
      AND (%(space)s::text IS NULL OR s.name = %(space)s)
    GROUP BY c.id, c.session_key, e.name, s.name
    ORDER BY count(*) DESC, max(a.created_at) DESC LIMIT 1
)
{_NEWEST_MESSAGES}
"""  # noqa: S608 — our own text only

_NAMED: LiteralString = """
SELECT turn_id, branch_id FROM messages
WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s
  AND (external_id = %(external_id)s OR turn_id = %(turn_id)s::uuid)
ORDER BY branch_id IS NOT NULL, created_at DESC, id DESC LIMIT 1
"""

_OF_BRANCHES: LiteralString = f"""
SELECT b.id, {_COLUMNS}
FROM conversation_branches b JOIN messages m ON m.branch_id = b.id LEFT JOIN turns t ON t.id = m.turn_id
WHERE b.conversation_id = %(conversation_id)s AND b.tenant_id = %(tenant_id)s
  AND b.after_turn_id IS NOT DISTINCT FROM %(after_turn_id)s::uuid
ORDER BY b.created_at DESC, b.id, m.created_at, m.id
"""  # noqa: S608 — our own text only

UNNAMED = "v1-"
"""Beginning of the names of conversations that a client did not name."""
_SPARE = 64
_MOST_ANSWERS = 12
"""Maximum number of newest answers that are used to find a conversation."""
_JUST_S = 600
_MOST_MET = 10_000


@dataclass(frozen=True)
class KnownConversation:
    """A conversation with the newest messages of its current course."""

    id: UUID
    session_id: str
    expert: str
    space: str | None
    """Name of the space that it belongs to, if any."""
    newest_branch_id: UUID | None
    messages: list[StoredMessage]


class KnownConversations:
    """Finds the conversation that a client continues."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._met: dict[tuple[UUID, str, str], None] = {}
        """The conversation names met in this process, the newest last."""

    def is_met(self, tenant_id: UUID, user: str, session_id: str) -> bool:
        """Return whether this process remembers finding or beginning a conversation of this name."""
        return (tenant_id, user, session_id) in self._met

    def meet(self, tenant_id: UUID, user: str, session_id: str) -> None:
        """Remember that there is a conversation of this name."""
        name = tenant_id, user, session_id
        self._met.pop(name, None)
        self._met[name] = None
        if len(self._met) > _MOST_MET:
            del self._met[next(iter(self._met))]

    async def named(
        self, tenant_id: UUID, user: str, session_id: str, *, messages: int
    ) -> KnownConversation | None:
        """Return the conversation of a name, with slightly more than `newest` of its newest messages."""
        found = await self._one(tenant_id, _OF_SESSION, {"user": user, "session": session_id}, messages)
        if found is not None:
            self.meet(tenant_id, user, session_id)
        return found

    async def just_begun(
        self, tenant_id: UUID, user: str, expert: str, *, space: str | None = None
    ) -> KnownConversation | None:
        """Return the newest conversation of a space, or of none, that the client did not name and that began
        within the last ten minutes."""
        values = {"user": user, "expert": expert, "space": space, "unnamed": UNNAMED, "within_s": _JUST_S}
        return await self._one(tenant_id, _JUST_BEGUN, values, 0)

    async def with_answers(
        self,
        tenant_id: UUID,
        user: str,
        expert: str,
        answers: Sequence[bytes],
        *,
        space: str | None = None,
        messages: int,
    ) -> KnownConversation | None:
        """Return the conversation with most of these answers, by their digests; None if none has any. With
        `space`, only a conversation that belongs to it."""
        values = {
            "user": user,
            "expert": expert,
            "space": space,
            "answers": [SoughtDigest(each) for each in answers[-_MOST_ANSWERS:]],
        }
        return await self._one(tenant_id, _WITH_ANSWERS, values, messages)

    async def place_of(
        self, tenant_id: UUID, conversation_id: UUID, external_id: str | None = None, turn_id: UUID | None = None
    ) -> tuple[UUID, UUID | None] | None:
        """Return the turn with a message of the client's id, or the given turn, and the branch that it is on."""
        values = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "external_id": external_id,
            "turn_id": turn_id,
        }
        rows = await self._database.fetch(tenant_id, _NAMED, values, tuple_row)
        return (rows[0][0], rows[0][1]) if rows else None

    async def branches_after(
        self, tenant_id: UUID, conversation_id: UUID, turn_id: UUID | None
    ) -> dict[UUID, list[StoredMessage]]:
        """Return the messages of each branch that follows a turn, or begins the conversation."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "after_turn_id": turn_id}
        found: dict[UUID, list[StoredMessage]] = {}
        for row in await self._database.fetch(tenant_id, _OF_BRANCHES, values, tuple_row):
            found.setdefault(row[0], []).append(_stored(row[1:]))
        return found

    async def _one(
        self, tenant_id: UUID, statement: LiteralString, values: dict[str, Any], messages: int
    ) -> KnownConversation | None:
        limit = 2 * messages + _SPARE
        rows = await self._database.fetch(
            tenant_id, statement, {**values, "tenant_id": tenant_id, "limit": limit}, tuple_row
        )
        if not rows:
            return None
        stored = [_stored(row[5:]) for row in rows if row[5] is not None]
        conversation_id, session_id, expert, space, branch_id = rows[0][:5]
        return KnownConversation(conversation_id, session_id, expert, space, branch_id, stored)


def _stored(row: Sequence[Any]) -> StoredMessage:
    digest = row[3]
    if digest is None:
        digest = message_digest(row[2], row[8], [part["image_url"]["url"] for part in row[9]])
    return StoredMessage(row[0], row[1], row[2], bytes(digest), row[4], row[5], row[6], row[7])
