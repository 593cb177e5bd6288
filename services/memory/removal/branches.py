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
from services.memory.removal.tables import Rows
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
        rows = self._rows(connection, owner, branch_id, message_ids)
        await rows.run(sql.LOCK_USER)
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
        unmerged = await self._hiding.withdraw_episodes(connection, rows.values)
        brought_in = await rows.all(_BROUGHT_IN, conversation_id=conversation_id, turn_ids=list(turn_ids))
        for section, old, new, why in brought_in:
            with suppress(InvalidInput):  # the section has filled up since
                changed = (old, new)
                await self._hiding.take_back(connection, owner, section, changed, why, part_of=str(branch_id))
        await self._hiding.remake(connection, owner, message_ids, everywhere=bool(brought_in))
        await rows.run(sql.ADD_OPERATION_VALUES, old=Jsonb({"unmerged": unmerged}))

    async def bring_back(
        self, connection: Connection, owner: Owner, branch_id: UUID, message_ids: Sequence[UUID]
    ) -> None:
        """Bring back what was withdrawn with a branch whose messages have just been taken off it."""
        rows = self._rows(connection, owner, branch_id, message_ids)
        await rows.run(sql.LOCK_USER)
        withdrawn = await rows.all(sql.OPERATION)
        before: dict[str, Any] = (withdrawn[0][2] if withdrawn else None) or {}
        parts = await rows.all(sql.PARTS_OF)
        for _, _, section, old, new, why in parts:
            with suppress(InvalidInput):
                await self._hiding.take_back(connection, owner, section, (old, new), why)
        unmerged = before.get("unmerged", [])
        await self._hiding.bring_back(connection, owner, branch_id, message_ids, unmerged, everywhere=bool(parts))
        await rows.run(sql.UNDONE)

    @staticmethod
    def _rows(connection: Connection, owner: Owner, branch_id: UUID, message_ids: Sequence[UUID]) -> Rows:
        named = {"operation_id": branch_id, "message_ids": list(message_ids), "episode_ids": []}
        return Rows(connection, {**vars(owner), **named})
