"""Promises follow the events that they name: they move with the event's day, and are called off with it.

A trigger marks what follows an event whenever core memory changes, by whatever way. What is marked is read once
more before it is listed, before it is kept, and within a minute.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from services.memory.core.blocks import Owner
from services.memory.core.values import CoreValues
from services.memory.operations import OperationLog, Trigger
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.promises import sql
from services.promises.after_event import days_of, evening_of, event_of
from services.promises.logged import logged, note, placed, told_of
from services.time_reference.local_days import time_zone


class Following:
    """Moves promises with their events."""

    def __init__(self, database: Database, log: OperationLog, values: CoreValues) -> None:
        self._database = database
        self._log = log
        self._values = values

    async def follow(self, tenant_id: UUID, user_id: UUID, now: datetime) -> None:
        """Read once more when a user's promises are due whose events may have changed. What is moved or called
        off is logged, and told by the next turn. What is due already stays."""
        whose = {"tenant_id": tenant_id, "user_id": user_id}
        for row in await self._database.fetch(tenant_id, sql.CHANGED, whose, dict_row):
            new = await self._read(row, now)

            async def change(connection: Connection, row: Any = row, new: Any = new) -> None:
                done = await connection.execute(sql.FOLLOW, {**whose, "id": row["id"], "seen": row["seen"], **new})
                if done.rowcount and (new["state"], new["due_at"]) != (row["state"], row["due_at"]):
                    await self._note(connection, row, new)

            await self._database.transact(tenant_id, change)

    async def _read(self, row: Mapping[str, Any], now: datetime) -> dict[str, Any]:
        """Return the state and the moment of a promise as memory is now."""
        stays = {"event": "read", "state": row["state"], "due_at": row["due_at"]}
        is_open, zone = row["state"] == "open", row["timezone"]
        day = row["due_at"].astimezone(time_zone(zone)).date()
        # An event whose day is over by the user's clock has retired from the profile.
        if is_open and (row["due_at"] <= now or now.astimezone(time_zone(row["users_zone"])).date() > day):
            return stays
        owner = Owner(row["tenant_id"], row["user_id"], row["expert_id"], row["space_id"])
        event = event_of(row["said"]) or ""
        days = await days_of(event, self._values, owner, now.astimezone(time_zone(zone)).date())
        if day in days and is_open:
            return stays
        if len(days) == 1 and (is_open or evening_of(days[0], zone) > now):
            return {"event": "read", "state": "open", "due_at": evening_of(days[0], zone)}
        return {**stays, "event": "gone", "state": "cancelled"}

    async def _note(self, connection: Connection, row: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Log what became of a promise; undone, it does not follow its event any more."""
        off = new["state"] == "cancelled"
        item = told_of(row["due_at"] if off else new["due_at"], row["timezone"], row["text"])
        old = {**logged(row), "event": ""}
        changed = {**logged({**row, **new}), "id": str(row["id"])}
        owner = Owner(row["tenant_id"], row["user_id"], row["expert_id"], row["space_id"])
        operation_id = await note(
            self._log,
            connection,
            owner,
            "cancel" if off else "move",
            old,
            changed,
            placed(Trigger("maintenance"), row["conversation_id"]),
            items=[item],
        )
        await connection.execute(sql.UNTOLD, {"id": operation_id, "tenant_id": row["tenant_id"]})
