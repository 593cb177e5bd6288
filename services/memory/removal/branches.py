"""Branches in memory: what was made of messages that are put aside is withdrawn, and can be restored."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from services.errors import InvalidInput
from services.memory.blocks import Owner
from services.memory.operations import Operation, OperationLog, Trigger
from services.memory.removal import hiding_sql as sql
from services.memory.removal.hiding import Hiding
from services.platform.connections import Connection

BRANCH = "branch"
"""Type under which a branch that is put aside stands in the log; its id is the branch's."""

# What the turns brought into core memory, the newest first. What a user had forgotten stays forgotten.
_BROUGHT_IN: LiteralString = """
SELECT o.field, o.old_value, o.new_value, o.trigger FROM memory_operations o
WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.conversation_id = %(conversation_id)s
  AND o.turn_id = ANY(%(turn_ids)s) AND o.type LIKE 'core\\_memory\\_%%' AND o.undone_at IS NULL
  AND o.new_value IS NOT NULL AND NOT EXISTS (
      SELECT FROM memory_operations c WHERE c.tenant_id = o.tenant_id AND c.user_id = o.user_id
        AND c.id::text = o.trigger->>'part_of' AND (c.type = 'branch' OR c.field IN ('forget', 'do_not_remember')))
ORDER BY o.at DESC, o.id DESC
"""

_WITHDRAWN: LiteralString = """
SELECT old_value FROM memory_operations
WHERE id = %(operation_id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""


class BranchMemory:
    """Withdraws and brings back what was made of branches, within a transaction of the caller's."""

    def __init__(self, hiding: Hiding, log: OperationLog) -> None:
        self._hiding = hiding
        self._log = log

    async def withdraw(
        self,
        connection: Connection,
        owner: Owner,
        branch_id: UUID,
        conversation_id: UUID,
        message_ids: Sequence[UUID],
        turn_ids: Sequence[UUID],
    ) -> None:
        """Withdraw what was made of messages that have just been put on a branch."""
        values = self._values(owner, branch_id, message_ids)
        values |= {"conversation_id": conversation_id, "turn_ids": list(turn_ids)}
        await connection.execute(sql.LOCK_USER, values)
        trigger = Trigger(
            "user", conversation_id=conversation_id, expert_id=owner.expert_id, space_id=owner.space_id
        )
        await self._log.append(
            connection,
            owner.tenant_id,
            owner.user_id,
            Operation(BRANCH, results={"messages": len(message_ids)}),
            trigger,
            operation_id=branch_id,
        )
        unmerged = await self._hiding.withdraw_episodes(connection, values)
        brought_in = await (await connection.execute(_BROUGHT_IN, values)).fetchall()
        for section, old, new, why in brought_in:
            with suppress(InvalidInput):  # the section has filled up since
                changed = (old, new)
                await self._hiding.take_back(connection, owner, section, changed, why, part_of=str(branch_id))
        await self._hiding.remake(connection, owner, message_ids, everywhere=bool(brought_in))
        kept = {**values, "old": Jsonb({"unmerged": unmerged})}
        await connection.execute(sql.ADD_OPERATION_VALUES, kept)

    async def bring_back(
        self, connection: Connection, owner: Owner, branch_id: UUID, message_ids: Sequence[UUID]
    ) -> None:
        """Bring back what was withdrawn with a branch whose messages have just been taken off it."""
        values = self._values(owner, branch_id, message_ids)
        await connection.execute(sql.LOCK_USER, values)
        row = await (await connection.execute(_WITHDRAWN, values)).fetchone()
        before: dict[str, Any] = (row[0] if row else None) or {}
        parts = await (await connection.execute(sql.PARTS_OF, values)).fetchall()
        for _, _, section, old, new, why in parts:
            with suppress(InvalidInput):
                await self._hiding.take_back(connection, owner, section, (old, new), why)
        unmerged = before.get("unmerged", [])
        await self._hiding.bring_back(connection, owner, branch_id, message_ids, unmerged, everywhere=bool(parts))
        await connection.execute(sql.UNDONE, values)

    @staticmethod
    def _values(owner: Owner, branch_id: UUID, message_ids: Sequence[UUID]) -> dict[str, Any]:
        return {**vars(owner), "operation_id": branch_id, "message_ids": list(message_ids), "episode_ids": []}
