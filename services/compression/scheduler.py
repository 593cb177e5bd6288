"""Schedules compression: at three o'clock in each user's time zone.

Each round finds the users whose clock shows three, and requests a run for each owner of memory that has grown.
Users who are active at that moment are skipped until the next round; after four o'clock, until the next night."""

from datetime import UTC, datetime, timedelta
from typing import LiteralString
from uuid import UUID

import procrastinate
import structlog
from psycopg.rows import tuple_row

from services.compression.compression import Compression
from services.jobs.queue import JobQueue
from services.memory.blocks import Owner
from services.platform.postgres import Database
from services.time_reference.zones import shows_hour

COMPRESSION_ROUND = "find_memory_to_compress"

_EVERY = "*/10 * * * *"
"""A cron expression: every ten minutes, to cover zones with offsets of 30 and 45 minutes."""
_HOUR = 3
_ACTIVE = timedelta(minutes=10)
_SAME_NIGHT = timedelta(hours=12)
_OWNERS_AT_ONCE = 50

log = structlog.get_logger(__name__)

_TIMEZONES: LiteralString = "SELECT DISTINCT timezone FROM users WHERE tenant_id = %(tenant_id)s"

# Those who waited longest come first: if there are too many for one night, nobody waits for ever.
_GROWN: LiteralString = """
SELECT u.id, x.id
FROM users u CROSS JOIN LATERAL (
    SELECT id FROM experts WHERE experts.tenant_id = u.tenant_id
) AS x
CROSS JOIN LATERAL (
    SELECT coalesce(max(r.created_at), '-infinity') AS at FROM compression_runs r
    WHERE r.user_id = u.id AND r.expert_id = x.id AND r.status = 'done' AND NOT r.dry_run
) AS last
WHERE u.tenant_id = %(tenant_id)s AND u.timezone = ANY(%(timezones)s)
  AND NOT EXISTS (SELECT FROM compression_runs r WHERE r.user_id = u.id AND r.expert_id = x.id
      AND (r.created_at > %(same_night)s AND NOT r.dry_run
           OR r.status IN ('waiting', 'running') AND r.lease_until > %(now)s))
  AND NOT EXISTS (SELECT FROM visits v WHERE v.user_id = u.id AND v.ended_at IS NULL
      AND v.last_active_at > %(active_since)s)
  AND EXISTS (SELECT FROM remembered_episodes e WHERE e.user_id = u.id AND e.expert_id = x.id
      AND e.episode_type <> 'consolidated' AND e.created_at > last.at)
ORDER BY last.at, u.id, x.id LIMIT %(limit)s
"""


class CompressionScheduler:
    """Finds whose memory to compress. Every process with a worker has one, which registers the jobs."""

    def __init__(self, database: Database, compression: Compression, jobs: JobQueue) -> None:
        self._database = database
        self._compression = compression
        self._jobs = jobs
        jobs.periodic(COMPRESSION_ROUND, _EVERY)(self._round)

    async def find(self, now: datetime) -> int:
        """Queue a job for each due owner of memory, of all tenants; return how many.

        Does nothing while another process does the same. Also removes the undo data of old runs.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        async with self._database.only_one(COMPRESSION_ROUND) as alone:
            tenants = await self._database.tenants() if alone else []
            count = 0
            for tenant_id in tenants:
                kept = now - timedelta(days=self._compression.rules.keep_days)
                await self._compression.undo.forget_older(tenant_id, kept)
                count += await self._find_of(tenant_id, now) if self._compression.rules.on else 0
        return count

    async def _find_of(self, tenant_id: UUID, now: datetime) -> int:
        rows = await self._database.fetch(tenant_id, _TIMEZONES, {"tenant_id": tenant_id}, tuple_row)
        values = {
            "tenant_id": tenant_id,
            "timezones": [row[0] for row in rows if shows_hour(row[0], now, _HOUR)],
            "now": now,
            "same_night": now - _SAME_NIGHT,
            "active_since": now - _ACTIVE,
            "limit": _OWNERS_AT_ONCE,
        }
        if not values["timezones"]:
            return 0
        count = 0
        async with self._database.tenant(tenant_id) as connection:
            for user_id, expert_id in await (await connection.execute(_GROWN, values)).fetchall():
                owner = Owner(tenant_id, user_id, expert_id)
                run = await self._compression.store.add(connection, owner, reason="night", dry_run=False, job=True)
                count += run is not None
        return count

    async def _round(self, context: procrastinate.JobContext) -> None:
        owners = await self.find(datetime.now(UTC))
        if owners:
            log.info("memory is compressed", owners=owners)
        await self._jobs.forget_older_runs(COMPRESSION_ROUND, context)
