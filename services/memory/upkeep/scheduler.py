"""The only nightly scheduler: retires past plans, merges memories, lets them fade, and has days summarised.

Each round finds the users for whom it is three o'clock or later at night and whose memory is due. It queues a job
for each of them, as many as the workers can take. Users who are active at that moment wait for the next round.
Summaries of days are due from half past midnight on.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import LiteralString
from uuid import UUID

import structlog
from psycopg.rows import tuple_row

from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.memory.upkeep.past_plans import PastPlans
from services.memory.upkeep.policy import policy_of
from services.memory.upkeep.upkeep import Upkeep
from services.platform.postgres import Database
from services.time_reference.local_days import shows_hour

UPKEEP = "keep_up_memory"
"""Task that does the upkeep of a user's memory for a night."""
ROUND = "find_memory_to_keep_up"

_EVERY = "* * * * *"
"""Schedule as a cron expression: every minute, so that workers have work as long as users wait."""
_HOURS = range(3, 9)
"""Hours of the users' clocks in which it runs. The first is usually enough; the others are for very many users."""
_ACTIVE = timedelta(minutes=10)
_SAME_NIGHT = timedelta(hours=12)
_WAITING_AT_MOST = 10_000
"""Maximum number of a tenant's users whose jobs wait: more than its workers can do until the next round."""
_QUEUED_AT_ONCE = 500
_AFTER_OTHERS = -10
"""Priority of the jobs; all other jobs come first."""

log = structlog.get_logger(__name__)

_TIMEZONES: LiteralString = "SELECT DISTINCT timezone FROM users WHERE tenant_id = %(tenant_id)s"

_WAITING: LiteralString = """
SELECT count(*) FROM procrastinate_jobs
WHERE status = 'todo' AND task_name = %(task)s AND args->>'tenant_id' = %(tenant_id)s::text
"""

# Those who waited longest come first. Memory with nothing new since, in which nothing fades and no plan is past,
# is not due.
_DUE: LiteralString = """
SELECT u.id FROM users u LEFT JOIN upkeep_nights last ON last.user_id = u.id
WHERE u.tenant_id = %(tenant_id)s AND u.timezone = ANY(%(timezones)s)
  AND (last.at IS NULL OR last.at < %(same_night)s)
  AND NOT EXISTS (SELECT FROM procrastinate_jobs j
      WHERE j.status = 'todo' AND j.queueing_lock = %(task)s || ':' || u.id)
  AND NOT EXISTS (SELECT FROM visits v WHERE v.user_id = u.id AND v.ended_at IS NULL
      AND v.last_active_at > %(active_since)s)
  AND (EXISTS (SELECT FROM remembered_episodes e WHERE e.user_id = u.id AND (
      e.content IS NOT NULL AND e.learned_at > coalesce(last.at, '-infinity')
      OR %(fades)s AND e.importance < %(importance)s::real AND e.learned_at < %(before)s AND e.pinned_at IS NULL
         AND (e.last_recalled_at IS NULL OR e.last_recalled_at < %(before)s)))
    OR last.again_at <= %(now)s
    OR EXISTS (SELECT FROM core_memory_blocks b
      WHERE b.user_id = u.id AND b.updated_at > coalesce(last.at, '-infinity')))
ORDER BY last.at NULLS FIRST, u.id LIMIT %(limit)s
"""

# The moment up to which upkeep has looked through the user's memory.
_LAST: LiteralString = """
SELECT n.at FROM users u LEFT JOIN upkeep_nights n ON n.user_id = u.id
WHERE u.id = %(user_id)s AND u.tenant_id = %(tenant_id)s
"""

_DONE: LiteralString = """
INSERT INTO upkeep_nights (user_id, tenant_id, at, again_at)
SELECT id, tenant_id, %(at)s, %(again_at)s FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s
ON CONFLICT (user_id, tenant_id) DO UPDATE SET at = excluded.at, again_at = excluded.again_at
"""


class UpkeepScheduler:
    """Finds whose memory is due, and does its upkeep. Every process with a worker has one."""

    def __init__(
        self,
        database: Database,
        upkeep: Upkeep,
        plans: PastPlans,
        jobs: JobQueue,
        *,
        find_days: Callable[[datetime], Awaitable[int]] | None,
        on: bool,
    ) -> None:
        """Register the jobs.

        `find_days` queues the summaries of days that are due, None = days are not summarised; `on` = whether
        nights merge and let fade.
        """
        self._database = database
        self._upkeep = upkeep
        self._plans = plans
        self._jobs = jobs
        self._find_days = find_days
        self._on = on
        jobs.task(UPKEEP, can_wait=True, priority=_AFTER_OTHERS)(self._job)
        jobs.periodic(ROUND, _EVERY)(self._round)

    async def find(self, now: datetime) -> int:
        """Queue a job for each due user of all tenants; return their number. Does nothing while another process
        does this."""
        async with self._database.only_one(ROUND) as alone:
            tenants = await self._database.tenants() if alone and self._on else []
            return sum([await self._find_of(tenant_id, now) for tenant_id in tenants])

    async def keep_up(self, tenant_id: UUID, user_id: UUID, now: datetime) -> None:
        """Carry out one night's upkeep of a user's memory."""
        values = {"tenant_id": tenant_id, "user_id": user_id, "at": now}
        rows = await self._database.fetch(tenant_id, _LAST, values, tuple_row)
        if not rows:
            return
        again_at = await self._plans.retire(tenant_id, user_id, now)
        await self._upkeep.run_by_night(tenant_id, user_id, rows[0][0], now)
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute(_DONE, {**values, "again_at": again_at})

    async def _find_of(self, tenant_id: UUID, now: datetime) -> int:
        rows = await self._database.fetch(tenant_id, _TIMEZONES, {"tenant_id": tenant_id}, tuple_row)
        timezones = [row[0] for row in rows if shows_hour(row[0], now, _HOURS)]
        if not timezones:
            return 0
        queued = {"tenant_id": tenant_id, "task": UPKEEP}
        ((waiting,),) = await self._database.fetch(tenant_id, _WAITING, queued, tuple_row)
        policy = await policy_of(self._database, tenant_id)
        values = {
            **queued,
            "timezones": timezones,
            "now": now,
            "same_night": now - _SAME_NIGHT,
            "active_since": now - _ACTIVE,
            "fades": policy.fading != "never",
            "importance": policy.fading_importance,
            "before": now - timedelta(days=policy.fading_days),
            "limit": max(_WAITING_AT_MOST - waiting, 0),
        }
        due = await self._database.fetch(tenant_id, _DUE, values, tuple_row)
        for at in range(0, len(due), _QUEUED_AT_ONCE):
            async with self._database.tenant(tenant_id) as connection:
                for (user_id,) in due[at : at + _QUEUED_AT_ONCE]:
                    await self._jobs.defer(
                        connection, UPKEEP, tenant_id=tenant_id, one_of=user_id, user_id=user_id
                    )
        return len(due)

    async def _job(self, job: RunningJob, *, user_id: UUID, **_: UUID) -> None:
        await self.keep_up(job.tenant_id, user_id, datetime.now(UTC))

    async def _round(self) -> None:
        now = datetime.now(UTC)
        days = await self._find_days(now) if self._find_days else 0
        users = await self.find(now)
        if users or days:
            log.info("the night's work is queued", users=users, days=days)
