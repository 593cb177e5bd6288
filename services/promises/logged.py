"""Promises in the log of operations: entries of their changes, which can be taken back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from services.encryption.marks import Words
from services.errors import Conflict
from services.memory.core.blocks import Owner
from services.memory.operations import Operation, OperationLog, Trigger
from services.platform.connections import Connection
from services.promises import sql
from services.time_reference.local_days import time_zone

OPERATION = "promise"
"""Type under which a change of a promise stands in the log; its field says which."""
FIELDS = ("text", "said", "rule", "timezone", "state")
"""Fields that a change changes, besides the moment."""
_KEPT_SINCE = "It cannot be undone any more: the promise has been kept, or was changed since."


async def note(
    log: OperationLog,
    connection: Connection,
    owner: Owner,
    kind: str,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any],
    trigger: Trigger,
    operation_id: UUID | None = None,
    items: Sequence[str] = (),
) -> UUID:
    """Log a change; `items` = what a later turn tells of it. Return the operation."""
    results = {"items": list(items)} if items else None
    operation = Operation(OPERATION, field=kind, old_value=old, new_value=dict(new), results=results)
    trigger = replace(trigger, expert_id=owner.expert_id, space_id=owner.space_id)
    return await log.append(connection, owner.tenant_id, owner.user_id, operation, trigger, operation_id)


async def take_back(
    connection: Connection, owner: Owner, old: Mapping[str, Any] | None, new: Mapping[str, Any]
) -> None:
    """Undo a change, in a transaction of the caller's. Raises `Conflict` if the promise was kept or changed
    since."""
    values = {**vars(owner), "id": UUID(new["id"])}
    row = await locked(connection, values)
    if row is None or any(logged(row)[name] != new[name] for name in (*FIELDS, "due_at")):
        raise Conflict(_KEPT_SINCE)
    if old is None:
        await connection.execute(sql.REMOVE, values)
    else:
        before = {**old, "due_at": datetime.fromisoformat(old["due_at"]), "event": old.get("event") or None}
        await connection.execute(sql.CHANGE, {**values, **sealed(before)})


async def locked(connection: Connection, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the row of a promise, which nobody else changes until the end of the caller's transaction."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(sql.LOCK, values)
        return await cursor.fetchone()


def placed(trigger: Trigger, conversation_id: UUID | None) -> Trigger:
    """Return a trigger that goes with the promise's conversation."""
    return trigger if trigger.conversation_id else replace(trigger, conversation_id=conversation_id)


def logged(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what of a promise the log keeps."""
    kept = {name: str(row[name]) for name in FIELDS} | {"event": row["event"] or ""}
    return {**kept, "due_at": row["due_at"].astimezone(UTC).isoformat()}


def sealed(new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of `sql.CHANGE`, with the user's words marked as such."""
    return {name: Words(value) if name in {"text", "said", "rule"} else value for name, value in new.items()}


def told_of(at: datetime, timezone: str, text: str) -> str:
    """Return how a turn names a promise: its moment and what it is about."""
    return f"{at.astimezone(time_zone(timezone)):%Y-%m-%d %H:%M} {text}"
