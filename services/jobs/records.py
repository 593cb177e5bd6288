"""Records of jobs: how many are waiting, which have failed and why, and which have lost their worker."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

import psycopg
import structlog
from psycopg.rows import class_row, tuple_row

from services.errors import Conflict, NotFound
from services.jobs.tasks import RETRIES, WORKER_LOST
from services.platform.connections import Connection, driver_errors_made_ours
from services.platform.postgres import Database

JobStatus = Literal["waiting", "running", "succeeded", "failed", "cancelled"]

# Each part uses its own index: succeeded jobs, the majority, are not read. A job that waits for its next try does
# not count as late before then.
_STATE = """
SELECT (SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo') AS waiting,
       (SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing') AS running,
       (SELECT count(*) FROM procrastinate_jobs WHERE status = 'failed') AS failed,
       extract(epoch FROM now() - least(
           (SELECT min(scheduled_at) FROM procrastinate_jobs WHERE status = 'todo' AND scheduled_at <= now()),
           (SELECT e.at FROM procrastinate_jobs j JOIN procrastinate_events e ON e.job_id = j.id
            WHERE j.status = 'todo' AND j.scheduled_at IS NULL AND e.type = 'deferred' ORDER BY j.id LIMIT 1)
       ))::float AS oldest_s,
       (SELECT extract(epoch FROM now() - max(last_heartbeat))::float FROM procrastinate_workers) AS heartbeat_s
"""

_COUNT_FAILURE = """
INSERT INTO job_failures (job_id, failures, reason)
SELECT id, 1, %(reason)s FROM procrastinate_jobs WHERE id = %(job_id)s
ON CONFLICT (job_id) DO UPDATE
SET failures = job_failures.failures + 1, reason = excluded.reason, failed_at = excluded.failed_at
RETURNING failures
"""

# A heartbeat in the future means that the clock was set back, and the worker has sent none since.
_SILENT: LiteralString = """(
    w.id IS NULL OR w.last_heartbeat < now() - make_interval(secs => %(stalled_s)s)
    OR w.last_heartbeat > now() + interval '1 minute')"""

_LOST: LiteralString = f"""
SELECT j.id FROM procrastinate_jobs j LEFT JOIN procrastinate_workers w ON w.id = j.worker_id
WHERE j.status = 'doing' AND (%(asking)s::bigint IS NULL OR j.worker_id IS DISTINCT FROM %(asking)s)
  AND {_SILENT}
ORDER BY j.id
"""  # noqa: S608 — our own text only

# Checked again under the row's lock, because the job may have been requeued meanwhile.
_GIVE_BACK: LiteralString = f"""
WITH lost AS (
    SELECT j.id FROM procrastinate_jobs j LEFT JOIN procrastinate_workers w ON w.id = j.worker_id
    WHERE j.id = %(job_id)s AND j.status = 'doing'
      AND {_SILENT}
    FOR UPDATE OF j SKIP LOCKED
), counted AS (
    INSERT INTO job_failures (job_id, failures, reason) SELECT id, 1, %(reason)s FROM lost
    ON CONFLICT (job_id) DO UPDATE
    SET failures = job_failures.failures + 1, reason = excluded.reason, failed_at = excluded.failed_at
    RETURNING job_id, failures
)
UPDATE procrastinate_jobs j
SET worker_id = NULL, abort_requested = false, attempts = attempts + 1, scheduled_at = now(),
    status = (CASE WHEN j.abort_requested OR %(replaced)s THEN 'aborted'
                   WHEN counted.failures > %(retries)s THEN 'failed'
                   ELSE 'todo' END)::procrastinate_job_status
FROM counted WHERE counted.job_id = j.id
RETURNING j.task_name
"""  # noqa: S608 — our own text only

# Jobs that were scheduled before the clock was set back.
_BRING_FORWARD = """
UPDATE procrastinate_jobs SET scheduled_at = now()
WHERE status = 'todo' AND scheduled_at > now() + make_interval(secs => %(longest_delay_s)s)
"""

_REMOVE_OLDER = """
DELETE FROM procrastinate_jobs WHERE task_name = %(task)s AND status = 'succeeded' AND id < %(job_id)s
"""

# The events of the jobs are deleted with them.
_TRIM = """
DELETE FROM procrastinate_jobs WHERE id IN (
    SELECT id FROM procrastinate_jobs
    WHERE status IN ('succeeded', 'cancelled', 'aborted') AND id <= (
        SELECT id FROM procrastinate_jobs WHERE status = 'succeeded' ORDER BY id DESC OFFSET %(kept)s LIMIT 1)
    ORDER BY id LIMIT %(at_once)s
)
"""
_TRIMMED_AT_ONCE = 5_000

_JOBS = """
SELECT * FROM (
    SELECT j.id, j.task_name AS task,
           CASE j.status WHEN 'todo' THEN 'waiting' WHEN 'doing' THEN 'running' WHEN 'succeeded' THEN 'succeeded'
                         WHEN 'failed' THEN 'failed' ELSE 'cancelled' END AS status,
           j.args - '{tenant_id,timestamp,traceparents}'::text[] AS ids, coalesce(f.failures, 0) AS failures,
           CASE WHEN j.status = 'failed' THEN coalesce(f.reason, 'TaskNotFound: This version has no such task.')
                ELSE f.reason END AS reason,
           f.failed_at, CASE WHEN j.status = 'todo' THEN j.scheduled_at END AS not_before,
           (SELECT min(e.at) FROM procrastinate_events e WHERE e.job_id = j.id AND e.type = 'deferred')
               AS created_at
    FROM procrastinate_jobs j LEFT JOIN job_failures f ON f.job_id = j.id
    WHERE coalesce(j.args->>'tenant_id', '00000000-0000-7000-8000-000000000001') = %(tenant_id)s::text
      AND (%(job_id)s::bigint IS NULL OR j.id = %(job_id)s)
      AND (%(after)s::bigint IS NULL OR j.id < %(after)s)
) AS jobs
WHERE %(status)s::text IS NULL OR status = %(status)s
ORDER BY id DESC LIMIT %(limit)s
"""

_RETRY = """
WITH found AS (
    SELECT id, status FROM procrastinate_jobs
    WHERE id = %(job_id)s
      AND coalesce(args->>'tenant_id', '00000000-0000-7000-8000-000000000001') = %(tenant_id)s::text
    FOR UPDATE
), again AS (
    UPDATE procrastinate_jobs j SET status = 'todo', scheduled_at = now(), attempts = attempts + 1
    FROM found WHERE j.id = found.id AND found.status = 'failed'
    RETURNING j.id
), forgiven AS (
    UPDATE job_failures SET failures = 0 FROM again WHERE job_id = again.id
)
SELECT status = 'failed' FROM found
"""


@dataclass(frozen=True)
class QueueState:
    """State of the queue of all tenants at one moment."""

    waiting: int
    running: int
    failed: int
    oldest_s: float | None
    """Seconds since the oldest runnable job was due; None = none is waiting."""
    heartbeat_s: float | None
    """Seconds since the last heartbeat of any worker; None = there is no worker."""

    def __str__(self) -> str:
        oldest = "" if self.oldest_s is None else f" (oldest {self.oldest_s:.0f} s)"
        return f"{self.waiting} waiting{oldest}, {self.failed} failed"


@dataclass(frozen=True)
class StoredJob:
    """A job's row in the queue."""

    id: int
    task: str
    status: JobStatus
    ids: dict[str, Any]
    """Ids of the records that the job is for."""
    failures: int
    """Number of failures since it was queued, or retried by hand."""
    reason: str | None
    """Reason of its last failure."""
    failed_at: datetime | None
    not_before: datetime | None
    """Earliest time of the next try."""
    created_at: datetime | None


class JobRecords:
    """Reads the queue and records failures."""

    def __init__(self, database: Database, *, settles_s: float = 0.0) -> None:
        """Take the seconds within which every live worker sends a heartbeat."""
        self._database = database
        self._clock = ClockWatch(settles_s=settles_s)

    async def state(self) -> QueueState:
        async with (
            self._connection() as connection,
            connection.cursor(row_factory=class_row(QueueState)) as cursor,
        ):
            found = await (await cursor.execute(_STATE)).fetchone()
        assert found is not None  # noqa: S101 — a SELECT without FROM has one row
        return found

    async def count_failure(self, job_id: int, reason: str) -> int | None:
        """Record a failure; return the number of the job's failures, or None if the job no longer exists."""
        async with self._connection() as connection:
            cursor = await connection.execute(_COUNT_FAILURE, {"job_id": job_id, "reason": reason})
            row = await cursor.fetchone()
        return row[0] if row else None

    async def requeue_stalled(self, *, stalled_s: float, asking: int | None) -> list[str]:
        """Requeue the jobs whose worker is gone, or fail them if they have used up their tries.

        For a while after the database's clock was set nothing is requeued: live workers send another heartbeat
        first.

        Args:
            stalled_s: Seconds of silence after which a worker counts as gone.
            asking: Id of the calling worker, which is alive.

        Returns:
            The names of the jobs' tasks.
        """
        names: list[str] = []
        async with self._connection() as connection:
            values = {"stalled_s": stalled_s, "asking": asking}
            asked = time.monotonic()
            clock = await (await connection.execute("SELECT now()")).fetchone()
            if clock is None or not self._clock.is_steady(clock[0], asked):
                return names
            for (job_id,) in await (await connection.execute(_LOST, values)).fetchall():
                given_back = {"job_id": job_id, "stalled_s": stalled_s, "retries": RETRIES, "reason": WORKER_LOST}
                try:
                    cursor = await connection.execute(_GIVE_BACK, {**given_back, "replaced": False})
                except psycopg.errors.UniqueViolation:  # an equal job is already waiting with its queueing lock
                    cursor = await connection.execute(_GIVE_BACK, {**given_back, "replaced": True})
                names.extend(row[0] for row in await cursor.fetchall())
        return names

    async def bring_forward(self, *, longest_delay_s: float) -> None:
        """Make jobs due that would wait longer than the maximum delay, because the clock was set back."""
        async with self._connection() as connection:
            await connection.execute(_BRING_FORWARD, {"longest_delay_s": longest_delay_s})

    async def remove_older(self, task: str, job_id: int) -> None:
        """Remove the task's succeeded jobs that are older than this one."""
        async with self._connection() as connection:
            await connection.execute(_REMOVE_OLDER, {"task": task, "job_id": job_id})

    async def trim(self, kept: int) -> int:
        """Remove succeeded and cancelled jobs, except the newest `kept`; return how many were removed."""
        removed = 0
        while True:
            async with self._connection() as connection:
                values = {"kept": kept, "at_once": _TRIMMED_AT_ONCE}
                found = (await connection.execute(_TRIM, values)).rowcount
            removed += found
            if found < _TRIMMED_AT_ONCE:
                return removed

    async def page(
        self, tenant_id: UUID, *, status: JobStatus | None, after: int | None, limit: int
    ) -> list[StoredJob]:
        """Return jobs of the tenant, newest first; those without a tenant belong to the default tenant."""
        values = {"tenant_id": tenant_id, "status": status, "after": after, "limit": limit, "job_id": None}
        return await self._database.fetch(tenant_id, _JOBS, values, class_row(StoredJob))

    async def retry(self, tenant_id: UUID, job_id: int) -> StoredJob:
        """Let a failed job run again, with all its tries. Raises `NotFound` if the tenant has no such job, and
        `Conflict` if the job has not failed, or an equal job is already waiting."""
        values = {"tenant_id": tenant_id, "job_id": job_id}
        try:
            found = await self._database.fetch(tenant_id, _RETRY, values, tuple_row)
        except psycopg.errors.UniqueViolation:
            raise Conflict("Another job for the same waits already.") from None
        if not found:
            raise NotFound(f"There is no job {job_id}.")
        if not found[0][0]:
            raise Conflict("Only a failed job can be retried.")
        values = {**values, "status": None, "after": None, "limit": 1}
        jobs = await self._database.fetch(tenant_id, _JOBS, values, class_row(StoredJob))
        if not jobs:
            raise NotFound(f"There is no job {job_id}.")
        return jobs[0]

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        async with driver_errors_made_ours(), self._database.pool.connection() as connection:
            yield connection


log = structlog.get_logger(__name__)

_JUMP_S = 2.0
_DRIFT = 0.001
"""Share of the elapsed time by which a clock may run fast or slow."""


class ClockWatch:
    """Compares another machine's clock with the seconds that pass here.

    After a jump forward every lease looks expired; after a jump back none does. Both effects end when live
    processes have renewed their leases, so whoever acts on an expired lease waits until then.
    """

    def __init__(self, *, settles_s: float) -> None:
        """Take the seconds within which every live process has written the time again."""
        self._settles_s = settles_s
        self._seen: tuple[datetime, float, float] | None = None
        self._steady_from = 0.0

    def is_steady(self, now: datetime, asked: float | None = None) -> bool:
        """Take the current time of the other clock; return whether it has run evenly for long enough.

        `asked` is when it was asked for, by `time.monotonic`, because a busy machine gets the answer late.
        """
        passed = time.monotonic()
        asked = passed if asked is None else asked
        if self._seen is not None:
            before, asked_before, then = self._seen
            shown = (now - before).total_seconds()
            least, most = asked - then, passed - asked_before
            jump = min(shown - least, 0.0) or max(shown - most, 0.0)
            if abs(jump) > _JUMP_S + most * _DRIFT:
                log.warning("the database's clock was set", by_s=round(jump))
                self._steady_from = passed + self._settles_s
        self._seen = (now, asked, passed)
        return passed >= self._steady_from
