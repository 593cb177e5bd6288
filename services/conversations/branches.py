"""Branches of a conversation: a replaced tail is kept, and can be restored.

Messages on a branch are in no prompt, recall, summary or day. The conversation's current course consists of the
messages that are on no branch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.conversations.resent_history import BranchReason
from services.errors import Conflict, NotFound
from services.memory.core.blocks import Owner
from services.memory.removal.undo import Undo
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import UNHURRIED_S, Database

_LOCK: LiteralString = """
SELECT user_id, expert_id, space_id FROM conversations
WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s FOR NO KEY UPDATE
"""

# Everything from the first message of the turn on; the last column is the turn before.
_TAIL: LiteralString = """
WITH first AS (
    SELECT created_at, id FROM messages
    WHERE turn_id = %(turn_id)s AND conversation_id = %(conversation_id)s AND branch_id IS NULL
    ORDER BY created_at, id LIMIT 1
)
SELECT m.id, m.turn_id, EXISTS (SELECT FROM turns t WHERE t.id = m.turn_id AND t.finished_at IS NULL), (
    SELECT b.turn_id FROM messages b
    WHERE b.conversation_id = %(conversation_id)s AND b.branch_id IS NULL
      AND (b.created_at, b.id) < (first.created_at, first.id)
    ORDER BY b.created_at DESC, b.id DESC LIMIT 1
)
FROM messages m, first
WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s AND m.branch_id IS NULL
  AND (m.created_at, m.id) >= (first.created_at, first.id)
ORDER BY m.created_at, m.id
"""

_MAKE: LiteralString = """
INSERT INTO conversation_branches (id, tenant_id, conversation_id, after_turn_id, reason)
VALUES (%(branch_id)s, %(tenant_id)s, %(conversation_id)s, %(after_turn_id)s, %(reason)s)
"""

_PUT_ON: LiteralString = """
UPDATE messages SET branch_id = %(branch_id)s WHERE id = ANY(%(message_ids)s) AND tenant_id = %(tenant_id)s
"""

_TAKE_OFF: LiteralString = """
UPDATE messages SET branch_id = NULL WHERE branch_id = %(branch_id)s AND tenant_id = %(tenant_id)s RETURNING id
"""

_BRANCH: LiteralString = """
SELECT after_turn_id FROM conversation_branches
WHERE id = %(branch_id)s AND conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s FOR UPDATE
"""

_REMOVE: LiteralString = "DELETE FROM conversation_branches WHERE id = %(branch_id)s AND tenant_id = %(tenant_id)s"

# The turn of the current course that follows another turn; for NULL the first turn.
_FOLLOWING: LiteralString = """
SELECT m.turn_id FROM messages m
WHERE m.conversation_id = %(conversation_id)s AND m.tenant_id = %(tenant_id)s AND m.branch_id IS NULL
  AND (%(after_turn_id)s::uuid IS NULL OR (m.created_at, m.id) > (
      SELECT a.created_at, a.id FROM messages a
      WHERE a.turn_id = %(after_turn_id)s AND a.conversation_id = %(conversation_id)s
      ORDER BY a.created_at DESC, a.id DESC LIMIT 1))
ORDER BY m.created_at, m.id LIMIT 1
"""

_GOES_ON: LiteralString = """
SELECT EXISTS (SELECT FROM messages WHERE turn_id = %(after_turn_id)s AND branch_id IS NULL)
"""

_LIST: LiteralString = """
SELECT b.id, b.after_turn_id, b.reason, b.created_at, first.turn_id AS first_turn_id, first.content AS begins_with,
       (SELECT count(*) FROM messages m WHERE m.branch_id = b.id) AS messages
FROM conversation_branches b CROSS JOIN LATERAL (
    SELECT turn_id, CASE WHEN starts_with(content, '~[1.') THEN content ELSE left(content, 200) END AS content
    FROM messages m
    WHERE m.branch_id = b.id ORDER BY m.created_at, m.id LIMIT 1
) AS first
WHERE b.conversation_id = %(conversation_id)s AND b.tenant_id = %(tenant_id)s
ORDER BY b.created_at, b.id
"""

_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class Branch:
    """A tail of a conversation that was put aside."""

    id: UUID
    after_turn_id: UUID | None
    """The turn that it follows; None if it begins the conversation."""
    reason: BranchReason
    created_at: datetime
    """When this branch was put aside."""
    first_turn_id: UUID
    begins_with: str
    """The beginning of its first message."""
    messages: int


class Branches:
    """Puts tails of conversations aside, and restores them."""

    def __init__(self, database: Database, memory: Undo) -> None:
        self._database = database
        self._memory = memory

    async def list(self, tenant_id: UUID, conversation_id: UUID) -> Sequence[Branch]:
        """Return the branches of a conversation, in the order in which they were put aside."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        found = await self._database.fetch(tenant_id, _LIST, values, class_row(Branch))
        return [replace(branch, begins_with=branch.begins_with[:_SHOWN_CHARACTERS]) for branch in found]

    async def following(self, tenant_id: UUID, conversation_id: UUID, turn_id: UUID | None) -> UUID | None:
        """Return the turn that follows another one on the current course; after None, the first."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "after_turn_id": turn_id}
        found = await self._database.fetch(tenant_id, _FOLLOWING, values, tuple_row)
        return found[0][0] if found else None

    async def unfinished(self, tenant_id: UUID, conversation_id: UUID, turn_id: UUID) -> Sequence[UUID]:
        """Return the unfinished turns from a turn on, newest first."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "turn_id": turn_id}
        rows = await self._database.fetch(tenant_id, _TAIL, values, tuple_row)
        return list(dict.fromkeys(row[1] for row in reversed(rows) if row[2]))

    @again_if_contended
    async def put_aside(
        self, tenant_id: UUID, conversation_id: UUID, turn_id: UUID, reason: BranchReason
    ) -> UUID | None:
        """Put aside a turn and all that follow it; return the branch, None if nothing of it is left. Raises
        `NotFound` if there is no such conversation, and `Conflict` if one of these turns has yet to end."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        async with self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            owner = await self._lock(connection, values)
            return await self._put_aside(connection, owner, conversation_id, turn_id, reason)

    @again_if_contended
    async def switch(self, tenant_id: UUID, conversation_id: UUID, branch_id: UUID) -> None:
        """Restore a branch; the current tail is put aside. Raises `NotFound` if there is no such conversation,
        or no such branch of it, and `Conflict` if the branch belongs to another branch, or a turn has yet to
        end."""
        values: dict[str, Any] = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "branch_id": branch_id,
        }
        async with self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            owner = await self._lock(connection, values)
            row = await (await connection.execute(_BRANCH, values)).fetchone()
            if row is None:
                raise NotFound(f"There is no branch {branch_id}.")
            values["after_turn_id"] = row[0]
            if row[0] is not None:
                goes_on = await (await connection.execute(_GOES_ON, values)).fetchone()
                if not (goes_on and goes_on[0]):
                    raise Conflict("The branch follows a turn of another branch; restore that one first.")
            following = await (await connection.execute(_FOLLOWING, values)).fetchone()
            if following is not None:
                await self._put_aside(connection, owner, conversation_id, following[0], "switch")
            taken = await (await connection.execute(_TAKE_OFF, values)).fetchall()
            await self._memory.bring_back(connection, owner, branch_id, [each[0] for each in taken])
            await connection.execute(_REMOVE, values)

    async def _lock(self, connection: Connection, values: dict[str, Any]) -> Owner:
        row = await (await connection.execute(_LOCK, values)).fetchone()
        if row is None:
            raise NotFound(f"There is no conversation {values['conversation_id']}.")
        return Owner(values["tenant_id"], *row)

    async def _put_aside(
        self, connection: Connection, owner: Owner, conversation_id: UUID, turn_id: UUID, reason: BranchReason
    ) -> UUID | None:
        branch_id = uuid7()
        values: dict[str, Any] = {
            "tenant_id": owner.tenant_id,
            "conversation_id": conversation_id,
            "turn_id": turn_id,
            "branch_id": branch_id,
            "reason": reason,
        }
        tail = await (await connection.execute(_TAIL, values)).fetchall()
        if not tail:
            return None
        if any(unfinished for _, _, unfinished, _ in tail):
            raise Conflict("A turn of this conversation is in progress.")
        message_ids = [row[0] for row in tail]
        turn_ids = list(dict.fromkeys(row[1] for row in tail))
        values |= {"after_turn_id": tail[0][3], "message_ids": message_ids}
        await connection.execute(_MAKE, values)
        await connection.execute(_PUT_ON, values)
        await self._memory.withdraw(connection, owner, branch_id, conversation_id, message_ids, turn_ids)
        return branch_id
