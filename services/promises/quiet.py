"""Quiet hours: when the assistant says nothing that was not asked for."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from services.errors import Conflict, InvalidInput, NotFound
from services.memory.core.blocks import Owner
from services.memory.operations import Operation, OperationLog, Trigger
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.platform.setting_values import QUIET_HOURS
from services.promises import sql
from services.time_reference.local_days import time_zone


def is_quiet(hours: str, now: datetime, timezone: str) -> bool:
    """Return whether a moment lies within quiet hours on the clock of a zone."""
    if hours in {"always", "never"}:
        return hours == "always"
    begin, end = hours.split("-")
    clock = f"{now.astimezone(time_zone(timezone)):%H:%M}"
    return begin <= clock < end if begin <= end else clock >= begin or clock < end


class QuietHours:
    """Sets the quiet hours of users, through the log of operations."""

    OPERATION = "quiet_hours"
    """Type under which a change stands in the log."""

    def __init__(self, database: Database, log: OperationLog) -> None:
        self._database = database
        self._log = log

    async def set(self, owner: Owner, hours: str, trigger: Trigger) -> None:
        """Set when a user wants to be asked nothing: `22:00-07:00`, `always` or `never`. Raises `InvalidInput`
        if it is none of these."""
        if not re.fullmatch(QUIET_HOURS, hours):
            raise InvalidInput("when", "is always, never, or two times such as 22:00-07:00")

        async def change(connection: Connection) -> None:
            before = await self._hours(connection, owner)
            if before == hours:
                return
            await connection.execute(sql.BE_QUIET, {**vars(owner), "hours": hours})
            results = {"items": [hours]}
            operation = Operation(
                self.OPERATION, old_value={"hours": before}, new_value={"hours": hours}, results=results
            )
            why = replace(trigger, expert_id=owner.expert_id, space_id=None)
            await self._log.append(connection, owner.tenant_id, owner.user_id, operation, why)

        await self._database.transact(owner.tenant_id, change)

    async def take_back(
        self, connection: Connection, owner: Owner, old: Mapping[str, Any] | None, new: Mapping[str, Any]
    ) -> None:
        """Undo a change, in a transaction of the caller's. Raises `Conflict` if they were set since."""
        if await self._hours(connection, owner) != new["hours"]:
            raise Conflict("It cannot be undone any more: the quiet hours were set since.")
        await connection.execute(sql.BE_QUIET, {**vars(owner), "hours": (old or {}).get("hours")})

    @staticmethod
    async def _hours(connection: Connection, owner: Owner) -> str | None:
        row = await (await connection.execute(sql.QUIET_HOURS, vars(owner))).fetchone()
        if row is None:
            raise NotFound("There is no such user.")
        return None if row[0] is None else str(row[0])
