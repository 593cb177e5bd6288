"""Quiet hours: when the assistant says nothing that was not asked for."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from services.errors import Conflict, InvalidInput, NotFound
from services.memory.core.blocks import Owner
from services.memory.operations import Operation, OperationLog, Trigger
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.platform.setting_values import QUIET_HOURS
from services.promises import sql
from services.time_reference.clock_times import clock_time
from services.time_reference.local_days import time_zone
from services.time_reference.normalisation import part_of_day
from services.time_reference.spelling import written_out
from state.memory import PlainQuiet

_LONGEST = 120
"""Characters of a message that sets them."""
_CUE = re.compile(r"quiet hours|免打扰|免打擾", re.IGNORECASE)
_FORM = re.compile(
    r"(?:(?:please|pls|set|change|turn|my|the)[ ,]+){0,4}(?P<no>no )?quiet hours"
    r"(?:(?: are| to| from| between| should be)*:? ?(?P<value>\S.*?))?(?:,? please)?"
    r"|(?:请|麻烦|把|将|设置|设定|帮我|我的){0,4}免打扰(?:时间|时段)?(?:改|设|定|是|为|成|在|从|[:,]){0,3}(?P<chinese>\S.*?)吧?"
)
_VALUES = {
    **dict.fromkeys(("always", "全天", "一直"), "always"),
    **dict.fromkeys(("never", "off", "关闭", "关掉", "取消"), "never"),
}
_BETWEEN = re.compile(r" ?[-–—~] ?| (?:to|until|till|and) |到|至")
_EDGES = " \t.!。！"


def is_quiet(hours: str, now: datetime, timezone: str) -> bool:
    """Return whether a moment lies within quiet hours on the clock of a zone."""
    if hours in {"always", "never"}:
        return hours == "always"
    begin, end = hours.split("-")
    clock = f"{now.astimezone(time_zone(timezone)):%H:%M}"
    return begin <= clock < end if begin <= end else clock >= begin or clock < end


def plain_quiet(message: str) -> PlainQuiet | None:
    """Return the quiet hours that a message sets in plain form: it is nothing but their name and their value."""
    if len(message) > _LONGEST or not _CUE.search(message):
        return None
    found = _FORM.fullmatch(written_out(message.replace("擾", "扰")).strip(_EDGES))
    if found is None:
        return None
    value = "never" if found["no"] else (found["value"] or found["chinese"] or "").strip(_EDGES)
    if hours := _VALUES.get(value, value if value == "never" else None):
        return PlainQuiet(hours)
    ends = _BETWEEN.split(value)
    times = [_time_of(each) for each in ends] if len(ends) == 2 else []  # noqa: PLR2004 — two ends
    if not times or not all(times) or not any(is_exact for _, is_exact in filter(None, times)):
        return None
    return PlainQuiet("-".join(clock for clock, _ in filter(None, times)))


def _time_of(said: str) -> tuple[str, bool] | None:
    """Return a time of day as it is stored, and whether it says which half of the day it means; None = it is
    none, or says something else besides."""
    clock, part = clock_time(said), part_of_day(said)
    if clock is None:
        return None
    places = sorted([clock.place, *([part[1:]] if part else [])], reverse=True)
    rest = said
    for begin, stop in places:
        rest = rest[:begin] + rest[stop:]
    if re.sub(r"\b(?:in|at|the)\b|[的 ]", "", rest):
        return None
    hour, minute = clock.on_clock(part[0], either=False)[0] if part else (clock.hour, clock.minute)
    return f"{hour % 24:02}:{minute:02}", clock.is_exact or part is not None


class QuietHours:
    """Sets the quiet hours of users, through the log of operations."""

    OPERATION = "quiet_hours"
    """Type under which a change stands in the log."""

    def __init__(self, database: Database, log: OperationLog) -> None:
        self._database = database
        self._log = log

    async def set(self, owner: Owner, hours: str, trigger: Trigger) -> UUID | None:
        """Set when a user wants to be asked nothing: `22:00-07:00`, `always` or `never`. Return the operation
        that undoes it; None = they were set so. Raises `InvalidInput` if it is none of these."""
        if not re.fullmatch(QUIET_HOURS, hours):
            raise InvalidInput("when", "is always, never, or two times such as 22:00-07:00")

        async def change(connection: Connection) -> UUID | None:
            before = await self._hours(connection, owner)
            if before == hours:
                return None
            await connection.execute(sql.BE_QUIET, {**vars(owner), "hours": hours})
            results = {"items": [hours]}
            operation = Operation(
                self.OPERATION, old_value={"hours": before}, new_value={"hours": hours}, results=results
            )
            why = replace(trigger, expert_id=owner.expert_id, space_id=None)
            return await self._log.append(connection, owner.tenant_id, owner.user_id, operation, why)

        return await self._database.transact(owner.tenant_id, change)

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
