"""The job queue with short pauses, in this process or as a process of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID

from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue, WorkerTimings
from services.jobs.records import StoredJob
from services.platform.postgres import Database
from tests.support.fork_server import ForkedProcess

HURRIED = WorkerTimings(
    retry_wait_s=0.05,
    postponed_s=0.05,
    poll_s=0.05,
    heartbeat_s=0.2,
    stalled_s=1.0,
    rescue="* * * * * *",
    grace_s=0.2,
)

_WORKER = """
import asyncio, sys
from dataclasses import replace
from services.platform.postgres import Database
from services.jobs.queue import JobQueue
from tests.support.jobs import HURRIED

async def main():
    database = Database(sys.argv[1])
    await database.open()
    jobs = JobQueue(database, timings=replace(HURRIED, stalled_s=float(sys.argv[3])))
    @jobs.task("look")
    async def look(job, **ids):
        print("started", job.id, flush=True)
        await asyncio.sleep(float(sys.argv[2]))
        print("ended", job.id, flush=True)
    @jobs.app.periodic(cron="* * * * * *")
    @jobs.app.task(name="tick", queueing_lock="tick")
    async def tick(timestamp):
        print("tick", timestamp, flush=True)
    await jobs.open()
    jobs.start_worker()
    print("ready", flush=True)
    await jobs.worker_ended()

asyncio.run(main())
"""


def worker_process(database_url: str, *, job_s: float, stalled_s: float = HURRIED.stalled_s) -> ForkedProcess:
    """Run a worker whose jobs `look` take `job_s` seconds. It prints `ready`, `started ID` and `ended ID`, and
    counts other workers as lost after `stalled_s` seconds of silence."""
    return ForkedProcess("-c", _WORKER, database_url, str(job_s), str(stalled_s), merged=True)


@contextmanager
def running_worker(code: str, *arguments: str) -> Iterator[ForkedProcess]:
    """Run a worker of the test's own from the moment it prints `ready`; kill it at the end."""
    process = ForkedProcess("-c", code, *arguments, merged=True)
    try:
        wait_for_line(process, "ready")
        yield process
    finally:
        process.kill()
        process.wait(60)
        if process.stdout:
            process.stdout.close()


def wait_for_line(process: ForkedProcess, beginning: str) -> None:
    """Read the output of a process up to a line with this beginning."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(beginning):
            return
    raise AssertionError(f"the process ended without saying {beginning!r}")


@asynccontextmanager
async def hurried_queue(database: Database, timings: WorkerTimings = HURRIED) -> AsyncIterator[JobQueue]:
    """A queue whose worker is stopped at the end."""
    jobs = JobQueue(database, timings=timings)
    await jobs.open()
    try:
        yield jobs
    finally:
        await jobs.close()


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = 60) -> None:
    """Wait until the condition holds; long, because a machine under load must not decide a test."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def waits_for_a_lock(database: Database) -> bool:
    """Return whether a transaction is waiting for another."""
    async with database.pool.connection() as connection:
        waiting = await connection.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return await waiting.fetchone() is not None


async def statuses(database: Database, task: str) -> list[str]:
    """Return procrastinate's status of each job of a task, oldest first."""
    async with database.pool.connection() as connection:
        rows = await connection.execute(
            "SELECT status::text FROM procrastinate_jobs WHERE task_name = %s ORDER BY id", [task]
        )
        return [row[0] for row in await rows.fetchall()]


async def defer(database: Database, jobs: JobQueue, task: str, **values: Any) -> bool:
    """Defer a job of the default tenant, or of another that is named."""
    async with database.tenant(DEFAULT_TENANT) as connection:
        return await jobs.defer(connection, task, **{"tenant_id": DEFAULT_TENANT, **values})


async def jobs_of(jobs: JobQueue, tenant_id: UUID, task: str) -> list[StoredJob]:
    """What the tenant sees of a task's jobs, newest first."""
    found = await jobs.records.page(tenant_id, status=None, after=None, limit=100)
    return [job for job in found if job.task == task]


async def has_ended(database: Database, task: str, status: str) -> bool:
    """Return whether no job of the task waits or runs, and the newest ended with the status."""
    found = await statuses(database, task)
    return bool(found) and found[-1] == status and not {"todo", "doing"} & set(found)
