"""Schedule of daily summaries: they are due at half past midnight in each user's time zone.

The end of a visit makes its day due. Each round looks at what is due and postpones what is too early; so the next
round makes up for a round that was missed, for a long pause of the service, and for an import.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import LiteralString
from uuid import UUID

import structlog
from psycopg.rows import class_row

from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.memory.core.blocks import Owner
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.summaries.daily_summaries import DailySummaries, Day
from services.time_reference.local_days import bounds, local_day
from services.visits.visit import SUMMARISE_DAYS, defer_days

DAILY_ROUND = "find_days_to_summarise"

_AFTER_MIDNIGHT = timedelta(minutes=30)
_ACTIVE = timedelta(minutes=10)
"""Time after a message during which the user's days wait for the next round."""
_CLAIMED = timedelta(minutes=20)
"""Time after which work that a job has taken is due again, in case the job is lost or fails."""
_USERS_AT_ONCE = 5
_VISITS_AT_ONCE = 500
_DAYS_AT_ONCE = 5
_WAIT_S = 20.0
"""Seconds that a request for days waits for missing summaries."""

log = structlog.get_logger(__name__)

_DUE: LiteralString = """
SELECT v.id, v.user_id, v.expert_id, v.space_id, v.started_at, u.timezone,
       v.ended_at IS NULL OR v.message_count = 0 AS has_nothing, EXISTS (
    SELECT FROM visits other WHERE other.user_id = v.user_id AND other.ended_at IS NULL
      AND other.started_at >= v.started_at AND other.last_active_at > %(active_since)s
) AS is_active
FROM visits v JOIN users u ON u.id = v.user_id
WHERE v.tenant_id = %(tenant_id)s AND v.daily_due_at <= %(now)s
ORDER BY v.daily_due_at LIMIT %(limit)s FOR UPDATE OF v SKIP LOCKED
"""

_POSTPONE: LiteralString = """
UPDATE visits SET daily_due_at = due.at FROM unnest(%(ids)s::uuid[], %(ats)s::timestamptz[]) AS due (id, at)
WHERE visits.id = due.id AND visits.tenant_id = %(tenant_id)s
"""


@dataclass(frozen=True)
class DueVisit:
    """A visit whose day has to be checked."""

    id: UUID
    user_id: UUID
    expert_id: UUID
    space_id: UUID | None
    started_at: datetime
    has_nothing: bool
    """Whether the visit still continues, or holds only incomplete answers."""
    timezone: str
    is_active: bool
    """Whether the user is talking now."""


_UserDay = tuple[UUID, UUID, UUID | None, date]
"""A user, an expert, a space and a local day."""


class DailyScheduler:
    """Finds the days whose summaries are due, for the nightly scheduler; registers the job that makes them."""

    def __init__(self, database: Database, daily: DailySummaries, jobs: JobQueue, *, on: bool = True) -> None:
        self._database = database
        self._daily = daily
        self._jobs = jobs
        self.is_on = on
        jobs.task(SUMMARISE_DAYS, can_wait=True)(self._summarise)

    async def find(self, now: datetime) -> int:
        """Defer jobs for every day whose summary is due, of all tenants; return the number of days. Nothing is
        done while another process does it."""
        async with self._database.only_one(DAILY_ROUND) as alone:
            tenants = await self._database.tenants() if alone else []
            return sum([await self._find_of(tenant_id, now) for tenant_id in tenants])

    async def up_to_date(self, owner: Owner, start: date, end: date, timezone: str, *, newest: int) -> list[Day]:
        """Return the newest days with messages, oldest first, with summaries that are as fresh as possible. A
        few missing or stale summaries are made now, unless that takes long; a job makes the others."""
        days = (await self._daily.days(owner, start, end, timezone))[-newest:]
        missing = [day for day in days if day.fresh is None]
        if not missing or not self.is_on:
            return days
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_S), asyncio.TaskGroup() as group:
                for day in missing[-_DAYS_AT_ONCE:]:
                    group.create_task(self._daily.try_to_make(owner, day.date, timezone))
        days = (await self._daily.days(owner, start, end, timezone))[-newest:]
        await self.summarise_later(owner.tenant_id, [day.visits[0].id for day in days if day.fresh is None])
        return days

    async def summarise_later(self, tenant_id: UUID, visit_ids: Sequence[UUID]) -> None:
        """Defer a job that summarises the days of these visits, unless one is already waiting."""
        if visit_ids and self.is_on:
            async with self._database.tenant(tenant_id) as connection:
                await defer_days(self._jobs, connection, tenant_id, visit_ids)

    async def _find_of(self, tenant_id: UUID, now: datetime) -> int:
        values = {"tenant_id": tenant_id, "now": now, "active_since": now - _ACTIVE, "limit": _VISITS_AT_ONCE}
        count = 0
        while True:
            async with self._database.tenant(tenant_id) as connection:
                async with connection.cursor(row_factory=class_row(DueVisit)) as cursor:
                    due = await (await cursor.execute(_DUE, values)).fetchall()
                if not due:
                    return count
                ready = await self._claim(connection, tenant_id, due, now)
                for visit_ids in _five_users_each(ready):
                    await defer_days(self._jobs, connection, tenant_id, visit_ids)
                count += len(ready)

    async def _claim(
        self, connection: Connection, tenant_id: UUID, due: Sequence[DueVisit], now: datetime
    ) -> dict[_UserDay, UUID]:
        """Postpone all visits: to their time, to the next round, or until their job counts as lost.

        Returns:
            The days whose time has come, each with one of its visits.
        """
        ready: dict[_UserDay, UUID] = {}
        ats: list[datetime | None] = []
        for visit in due:
            day = local_day(visit.started_at, visit.timezone)
            _, over = bounds(day, day, visit.timezone)
            if visit.has_nothing:
                ats.append(None)  # due again when the visit ends or grows
            elif over + _AFTER_MIDNIGHT > now:
                ats.append(over + _AFTER_MIDNIGHT)
            elif visit.is_active:
                ats.append(now + timedelta(seconds=1))
            else:
                ready.setdefault((visit.user_id, visit.expert_id, visit.space_id, day), visit.id)
                ats.append(now + _CLAIMED)
        postponed = {"tenant_id": tenant_id, "ids": [visit.id for visit in due], "ats": ats}
        await connection.execute(_POSTPONE, postponed)
        return ready

    async def _summarise(self, job: RunningJob, *, visit_ids: list[UUID]) -> None:
        at_once = asyncio.Semaphore(_USERS_AT_ONCE)

        async def one(visit_id: UUID) -> None:
            async with at_once:
                await self._day_of(job.tenant_id, visit_id)

        async with asyncio.TaskGroup() as group:
            for visit_id in visit_ids:
                group.create_task(one(visit_id))

    async def _day_of(self, tenant_id: UUID, visit_id: UUID) -> None:
        visit = await self._daily.store.visit(tenant_id, visit_id)
        if visit is not None:
            owner = Owner(tenant_id, visit.user_id, visit.expert_id, visit.space_id)
            day = local_day(visit.started_at, visit.timezone)
            await self._daily.try_to_make(owner, day, visit.timezone)


def _five_users_each(ready: Mapping[_UserDay, UUID]) -> list[list[UUID]]:
    """Group visits of the days: each group has the days of the few users who are summarised at once."""
    by_user: dict[UUID, list[UUID]] = defaultdict(list)
    for (user_id, *_), visit_id in ready.items():
        by_user[user_id].append(visit_id)
    users = list(by_user.values())
    groups = [users[at : at + _USERS_AT_ONCE] for at in range(0, len(users), _USERS_AT_ONCE)]
    return [[visit_id for user in group for visit_id in user] for group in groups]
