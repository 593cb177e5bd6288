"""Undo of an operation in the log: what it removed comes back, what it added goes, what it changed is changed
back.

What was made from a branch that is put aside is withdrawn, and comes back with the branch.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from services.encryption.marks import WordsInJson, words
from services.errors import Conflict, InvalidInput, NotFound
from services.identity.tenants import user_id_of
from services.jobs.queue import JobQueue
from services.memory.core.blocks import Owner
from services.memory.core.store import CoreMemory
from services.memory.operations import Operation, OperationLog, Trigger
from services.memory.removal import hiding_sql as sql
from services.memory.removal.hiding import COMMAND, Hiding
from services.memory.removal.tables import Rows
from services.memory.waiting import FILE_AGAIN, defer_filing
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import Database
from services.store.undo import STORE_WRITES, take_back

BRANCH = "branch"
"""Type of the log entry for a branch that is put aside; its id is the branch's."""

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


TakeBack = Callable[[Connection, Owner, Mapping[str, Any] | None, Mapping[str, Any]], Awaitable[None]]
"""Undoes a change in the caller's transaction, given the states before it (None = nothing) and after it."""
UNDO = "memory_undo"
_CHANGED_SINCE = "It cannot be undone any more: what it changed has been changed since."
_NAMING_IN_VALUES = {"episode_insert", "episode_supersede"}
_NOTHING = "has changed nothing that could be undone"
_NOT_UNDONE = {
    BRANCH: "A branch comes back when the conversation is switched to it.",
    "_delete": "It cannot be undone: what it removed is not kept.",
} | dict.fromkeys(
    ("episode_merge", "episode_archive", "upkeep_undo"), "A run of upkeep is undone as a whole, by its own id."
)


@dataclass(frozen=True)
class UndoneOperation:
    """An operation that was undone."""

    operation_id: UUID
    undone_at: datetime
    already: bool
    """Whether it was already undone before."""


@dataclass(frozen=True)
class _Logged:
    id: UUID
    type: str
    field: str | None
    old: Any
    new: Any
    trigger: Mapping[str, Any]


class Undo:
    """Undoes operations on users' memory. It also withdraws what was made from branches, and brings it back."""

    def __init__(
        self, database: Database, hiding: Hiding, core: CoreMemory, log: OperationLog, jobs: JobQueue
    ) -> None:
        self._database = database
        self._hiding = hiding
        self._core = core
        self._log = log
        self._jobs = jobs
        self._others: dict[str, TakeBack] = {}

    def also(self, kind: str, way: TakeBack) -> None:
        """Set the function that undoes operations of one more type, given the states before and after it in the
        log."""
        self._others[kind] = way

    @again_if_contended
    async def undo(self, tenant_id: UUID, user: str, operation_id: UUID) -> UndoneOperation:
        """Undo an operation completely or not at all; undoing it again changes nothing. Raises `NotFound` if there
        is no such user, or no such operation of theirs, and `Conflict` if it has changed nothing, what it removed
        was not kept, or something was changed since."""
        user_id = await user_id_of(self._database, tenant_id, user)
        async with self._database.tenant(tenant_id) as connection:
            return await self._revert(connection, tenant_id, user_id, operation_id)

    async def withdraw(
        self,
        connection: Connection,
        owner: Owner,
        branch_id: UUID,
        conversation_id: UUID,
        message_ids: Sequence[UUID],
        turn_ids: Sequence[UUID],
    ) -> None:
        """Withdraw what was made from messages that have just been put on a branch."""
        rows = self._rows_of_branch(connection, owner, branch_id, message_ids)
        await rows.run(sql.LOCK_USER)
        unmerged = await self._hiding.withdraw_episodes(connection, rows.values)
        operation = Operation(BRANCH, old_value={"unmerged": unmerged}, results={"messages": len(message_ids)})
        trigger = Trigger("user", None, conversation_id, None, owner.expert_id, owner.space_id)
        await self._log.append(connection, owner.tenant_id, owner.user_id, operation, trigger, branch_id)
        brought_in = await rows.all(_BROUGHT_IN, conversation_id=conversation_id, turn_ids=list(turn_ids))
        for section, old, new, why in brought_in:
            with suppress(InvalidInput):  # the section has filled up since
                await self._take_back(connection, owner, section, (old, new), why, part_of=str(branch_id))
        await self._hiding.remake(connection, owner, message_ids, everywhere=bool(brought_in))

    async def bring_back(
        self, connection: Connection, owner: Owner, branch_id: UUID, message_ids: Sequence[UUID]
    ) -> None:
        """Bring back what was withdrawn with a branch whose messages have just been taken off it."""
        rows = self._rows_of_branch(connection, owner, branch_id, message_ids)
        await rows.run(sql.LOCK_USER)
        withdrawn = await rows.all(sql.OPERATION)
        before: dict[str, Any] = (withdrawn[0][2] if withdrawn else None) or {}
        parts = await rows.all(sql.PARTS_OF)
        for _, _, section, old, new, why in parts:
            with suppress(InvalidInput):
                await self._take_back(connection, owner, section, (old, new), why)
        unmerged = before.get("unmerged", [])
        await self._hiding.bring_back(connection, owner, branch_id, message_ids, unmerged, everywhere=bool(parts))
        await rows.run(sql.UNDONE)

    @staticmethod
    def _rows_of_branch(
        connection: Connection, owner: Owner, branch_id: UUID, message_ids: Sequence[UUID]
    ) -> Rows:
        named = {"operation_id": branch_id, "message_ids": list(message_ids), "episode_ids": []}
        return Rows(connection, {**vars(owner), **named})

    async def _revert(
        self, connection: Connection, tenant_id: UUID, user_id: UUID, operation_id: UUID
    ) -> UndoneOperation:
        values = {"tenant_id": tenant_id, "user_id": user_id, "operation_id": operation_id}
        await connection.execute(sql.LOCK_USER, values)
        row = await (await connection.execute(sql.OPERATION, values)).fetchone()
        if row is None:
            raise NotFound(f"There is no operation {operation_id}.")
        operation = _Logged(operation_id, *row[:5])
        if proposal_id := operation.trigger.get("proposal"):
            await connection.execute(sql.PROPOSAL_UNDONE, {**values, "proposal_id": proposal_id})
        if row[5] is not None:
            return UndoneOperation(operation_id, row[5], already=True)
        space_id, expert_id = _space_of(operation.trigger), None
        if operation.type in STORE_WRITES:
            whose = {"tenant_id": tenant_id, "user_id": user_id, "space_id": space_id}
            await take_back(connection, whose, operation_id, operation.type, operation.old)
        else:
            expert_id = _expert_of(operation)
            await self._undo(connection, Owner(tenant_id, user_id, expert_id, space_id), operation)
        trigger = Trigger("user", None, row[7], row[6], expert_id, space_id)
        await self._log.append(connection, tenant_id, user_id, Operation(UNDO, field=str(operation_id)), trigger)
        undone = await (await connection.execute(sql.UNDONE, values)).fetchone()
        assert undone is not None  # noqa: S101 — its row is locked
        return UndoneOperation(operation_id, undone[0], already=False)

    async def _undo(self, connection: Connection, owner: Owner, operation: _Logged) -> None:
        ways: dict[str, Callable[[Connection, Owner, _Logged], Awaitable[None]]] = {
            COMMAND: self._undo_command,
            "episode_insert": self._undo_insert,
            "episode_update": self._undo_update,
            "episode_supersede": self._undo_supersede,
        }
        if operation.type in _NAMING_IN_VALUES and operation.new is None:
            raise Conflict("It cannot be undone: what it did is not kept.")
        if operation.type in ways:
            await ways[operation.type](connection, owner, operation)
        elif operation.type in self._others:
            await self._others[operation.type](connection, owner, operation.old, operation.new)
        elif operation.type.startswith("core_memory_") and operation.new is not None:
            await self._undo_core(connection, owner, operation)
        else:
            kind = "_delete" if operation.type.endswith("_delete") else operation.type
            raise Conflict(_NOT_UNDONE.get(kind, f"An operation of the type {kind} {_NOTHING}."))

    async def _undo_command(self, connection: Connection, owner: Owner, operation: _Logged) -> None:
        before: dict[str, Any] = operation.old or {}
        messages = before.get("messages", [])
        message_ids = [UUID(each["id"]) for each in messages]
        values = {
            **vars(owner),
            "operation_id": operation.id,
            "message_ids": message_ids,
            "messages": WordsInJson(messages),
            "notes": WordsInJson(before.get("notes", [])),
            "episode_ids": [UUID(each) for each in before.get("written", [])],
            "closed": [UUID(each) for each in before.get("closed", [])],
        }
        rows = Rows(connection, values)
        if newer := await rows.firsts(sql.CHANGED_SINCE):
            raise Conflict(f"The later operation {newer[0]} changed the same message; undo that one first.")
        for row in await rows.all(sql.PARTS_OF):
            await self._undo_core(connection, owner, _Logged(*row))
        await rows.run(sql.RESTORE_MESSAGES)
        await rows.run(sql.RESTORE_NOTES)
        await rows.run(sql.HOLDS_AGAIN)
        await rows.run(sql.RELEASE_TURNS)
        await self._hiding.bring_back(connection, owner, operation.id, message_ids, before.get("unmerged", []))
        await rows.run(sql.RETRACT_WHOLE)  # last, because what the statements before bring back has the same mark
        if message_ids:
            await rows.run(FILE_AGAIN)
            await defer_filing(self._jobs, connection, owner.tenant_id, owner.user_id, delay_s=0)

    async def _undo_core(self, connection: Connection, owner: Owner, operation: _Logged) -> None:
        changed, section = (operation.old, operation.new), operation.field or ""
        undoes = str(operation.id)
        if not await self._take_back(connection, owner, section, changed, operation.trigger, undoes=undoes):
            raise Conflict(_CHANGED_SINCE)

    async def _take_back(
        self,
        connection: Connection,
        owner: Owner,
        section: str,
        changed: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None],
        why: Mapping[str, Any],
        **details: str,
    ) -> bool:
        """Undo a logged change of core memory at its place; return whether it was undone completely."""
        expert_id = UUID(why["expert_id"]) if why.get("expert_id") else owner.expert_id
        whose = replace(owner, expert_id=expert_id, space_id=_space_of(why))
        return await self._core.take_back(
            connection, whose, section, changed, Trigger("user", expert_id=expert_id, details=details)
        )

    async def _undo_insert(self, connection: Connection, owner: Owner, operation: _Logged) -> None:
        values = {**vars(owner), "operation_id": operation.id, "episode_ids": [UUID(operation.new["id"])]}
        if (await connection.execute(sql.RETRACT_WHOLE, values)).rowcount == 0:
            raise Conflict(_CHANGED_SINCE)

    async def _undo_update(self, connection: Connection, owner: Owner, operation: _Logged) -> None:
        old, new = operation.old or {}, operation.new or {}
        values = {**vars(owner), "episode_id": operation.field, "old": words(old.get("content"))}
        row = await (await connection.execute(sql.LOCK_EPISODE, values)).fetchone()
        if old.get("content") is None or row is None or row[0] != new.get("content"):
            raise Conflict(_CHANGED_SINCE)
        await connection.execute(sql.CHANGE_BACK, values)

    async def _undo_supersede(self, connection: Connection, owner: Owner, operation: _Logged) -> None:
        values = {**vars(owner), "episode_id": operation.field, "by": operation.new["superseded_by"]}
        if await (await connection.execute(sql.BRING_BACK, values)).fetchone() is None:
            raise Conflict(_CHANGED_SINCE)


def _expert_of(operation: _Logged) -> UUID:
    expert_id = operation.trigger.get("expert_id")
    if expert_id is None:
        raise Conflict(f"An operation of the type {operation.type} {_NOTHING}.")
    return UUID(expert_id)


def _space_of(trigger: Mapping[str, Any]) -> UUID | None:
    """Return the space that a logged operation changed; None = the part that all spaces share."""
    space_id = trigger.get("space_id")
    return UUID(space_id) if space_id else None
