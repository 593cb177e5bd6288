"""Undoing a write to the store."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.encryption.marks import Words
from services.errors import Conflict
from services.platform.connections import Connection
from services.store import sql

STORE_WRITES = frozenset({"store_put", "store_delete"})
"""Types under which they stand in the log."""
_WRITTEN_SINCE = "It cannot be undone any more: the item was written again since."


async def take_back(
    connection: Connection, owner: Mapping[str, Any], operation_id: UUID, kind: str, old: Mapping[str, Any] | None
) -> None:
    """Undo a write to the store, in a transaction of the caller's.

    Args:
        owner: `tenant_id`, `user_id` and `space_id`.
        kind: `store_put` or `store_delete`.
        old: what was there before; None = nothing.

    Raises:
        Conflict: the item was written again since, or what was there is not kept.
    """
    if old is not None and old.get("value") is None:
        raise Conflict("It cannot be undone: what had a time to live is not kept.")
    values = {**owner, "operation_id": operation_id}
    if kind == "store_put":
        row = await (await connection.execute(sql.OF_OPERATION, values)).fetchone()
        if row is None:
            raise Conflict(_WRITTEN_SINCE)
        await connection.execute(sql.REMOVE, {**values, "id": row[0]})
    if old is None:
        return
    back = {
        **values,
        "id": uuid7(),
        "namespace": old["namespace"],
        "key": old["key"],
        "content": Words(old["value"]),
        "paths": None if old["index_paths"] is None else Jsonb(old["index_paths"]),
        "created_at": datetime.fromisoformat(old["created_at"]),
    }
    if await (await connection.execute(sql.PUT_BACK, back)).fetchone() is None:
        raise Conflict(_WRITTEN_SINCE)
