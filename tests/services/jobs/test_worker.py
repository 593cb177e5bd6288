"""Workers that stop, are killed, lose the database, or are several."""

import asyncio
import signal
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from services.engines import Engines
from services.errors import DatabaseUnavailable
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.platform.postgres import Database
from tests.support.jobs import (
    HURRIED,
    defer,
    has_ended,
    hurried_queue,
    jobs_of,
    statuses,
    until,
    wait_for_line,
    worker_process,
)

pytestmark = pytest.mark.untraced


@pytest.mark.traced
async def test_a_stop_puts_a_running_job_back_with_all_its_tries(database: Database) -> None:
    started = asyncio.Event()
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob) -> None:
            started.set()
            await asyncio.Event().wait()

        await defer(database, jobs, "look")
        jobs.start_worker()
        async with asyncio.timeout(60):
            await started.wait()
    assert await statuses(database, "look") == ["todo"]
    assert (await jobs.records.state()).running == 0
    assert (await jobs.records.state()).heartbeat_s is None

    async with hurried_queue(database) as again:

        @again.task("look")
        async def look_again(job: RunningJob) -> None:
            return

        again.start_worker()
        await until(lambda: has_ended(database, "look", "succeeded"))
        [job] = await jobs_of(again, DEFAULT_TENANT, "look")
        assert job.failures == 0


@pytest.mark.traced
async def test_under_pressure_a_job_that_can_wait_makes_room_and_others_run(database: Database) -> None:
    pressed, ran = True, asyncio.Event()
    async with hurried_queue(database) as jobs:
        jobs.postpone_while(lambda: pressed)

        @jobs.task("compress", can_wait=True)
        async def compress(job: RunningJob) -> None:
            ran.set()

        @jobs.task("look")
        async def look(job: RunningJob) -> None:
            return

        await defer(database, jobs, "compress")
        await defer(database, jobs, "look")
        jobs.start_worker()
        await until(lambda: has_ended(database, "look", "succeeded"))
        assert not ran.is_set()
        pressed = False
        await until(lambda: has_ended(database, "compress", "succeeded"))
        [job] = await jobs_of(jobs, DEFAULT_TENANT, "compress")
        assert job.failures == 0


async def test_a_job_whose_worker_was_killed_runs_again_elsewhere(database: Database, engines: Engines) -> None:
    ran: list[int] = []
    jobs = JobQueue(database, timings=HURRIED)
    await jobs.open()
    await defer(database, jobs, "look")
    process = worker_process(engines.database_url, job_s=60)
    try:
        await asyncio.to_thread(wait_for_line, process, "started")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert await statuses(database, "look") == ["doing"]

    async with hurried_queue(database) as elsewhere:

        @elsewhere.task("look")
        async def look(job: RunningJob) -> None:
            ran.append(job.id)

        elsewhere.start_worker()
        await until(lambda: has_ended(database, "look", "succeeded"))
        [job] = await jobs_of(elsewhere, DEFAULT_TENANT, "look")
    assert ran == [job.id]
    assert (job.failures, job.reason) == (1, "WorkerLost: The process that ran the job ended before the job did.")


async def test_a_job_that_loses_every_worker_fails_in_the_end(database: Database, engines: Engines) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    await defer(database, jobs, "look")
    assert engines.owner_url
    for expected in ("todo", "todo", "todo", "failed"):
        with psycopg.connect(engines.owner_url, autocommit=True) as owner:
            owner.execute("UPDATE procrastinate_jobs SET status = 'doing', worker_id = NULL")
        assert await jobs.records.requeue_stalled(stalled_s=1, asking=None) == ["look"]
        assert await statuses(database, "look") == [expected]
    assert await jobs.records.requeue_stalled(stalled_s=1, asking=None) == []


@pytest.mark.traced
async def test_a_lost_job_that_was_replaced_meanwhile_is_not_run_twice(database: Database) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    assert await defer(database, jobs, "look", queueing_lock="the same")
    async with database.pool.connection() as connection:
        await connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")
    assert await defer(database, jobs, "look", queueing_lock="the same")
    await jobs.records.requeue_stalled(stalled_s=1, asking=None)
    assert await statuses(database, "look") == ["aborted", "todo"]


async def test_two_workers_run_each_job_and_each_tick_once(database: Database, engines: Engines) -> None:
    # neither takes the other for lost because the machine is busy
    processes = [worker_process(engines.database_url, job_s=0.01, stalled_s=60) for _ in range(2)]
    try:
        for process in processes:
            await asyncio.to_thread(wait_for_line, process, "ready")
        jobs = JobQueue(database, timings=HURRIED)
        await jobs.open()
        async with database.tenant(DEFAULT_TENANT) as connection:
            for _ in range(40):
                await jobs.defer(connection, "look", tenant_id=DEFAULT_TENANT)
        await until(lambda: has_ended(database, "look", "succeeded"))
        await until(lambda: _has_run(database, "tick", 3))
    finally:
        for process in processes:
            process.kill()
        lines = [line for process in processes for line in process.communicate()[0].splitlines()]
    ticks = [line for line in lines if line.startswith("tick")]
    assert len(ticks) == len(set(ticks)) >= 3
    started = [line for line in lines if line.startswith("started")]
    assert len(started) == len(set(started)) == 40
    assert sorted(line.split()[1] for line in lines if line.startswith("ended")) == sorted(
        line.split()[1] for line in started
    )


async def test_the_worker_goes_on_after_the_database_cut_its_connections(
    database: Database, engines: Engines
) -> None:
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob) -> None:
            return

        jobs.start_worker()
        await defer(database, jobs, "look")
        await until(lambda: has_ended(database, "look", "succeeded"))
        with psycopg.connect(engines.database_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
            )

        async def has_run_again() -> bool:
            try:
                if len(await statuses(database, "look")) == 1:
                    await defer(database, jobs, "look")
                return await statuses(database, "look") == ["succeeded", "succeeded"]
            except (DatabaseUnavailable, psycopg.OperationalError):  # while the connections end
                return False

        await until(has_run_again)
        assert jobs.worker_state == "running"


async def test_the_worker_starts_again_when_it_was_taken_for_lost(database: Database) -> None:
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob) -> None:
            return

        jobs.start_worker()
        await until(lambda: _beats(jobs))
        async with database.pool.connection() as connection:
            await connection.execute("DELETE FROM procrastinate_workers")
        await defer(database, jobs, "look")
        await until(lambda: has_ended(database, "look", "succeeded"))


@pytest.mark.traced
async def test_a_stop_ends_though_the_database_is_away(database: Database) -> None:
    async with hurried_queue(database) as jobs:
        jobs.start_worker()
        await until(lambda: _beats(jobs))
        await database.close()
        async with asyncio.timeout(60):
            await jobs.close()
    assert jobs.worker_state == "stopped"


async def _has_run(database: Database, task: str, times: int) -> bool:
    return (await statuses(database, task)).count("succeeded") >= times


async def _beats(jobs: JobQueue) -> bool:
    return (await jobs.records.state()).heartbeat_s is not None


async def test_jobs_and_heartbeats_from_before_the_clock_was_set_back_are_taken_up(
    database: Database, engines: Engines
) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    await defer(database, jobs, "look", delay_s=60)
    await defer(database, jobs, "see", delay_s=60)
    assert engines.owner_url
    with psycopg.connect(engines.owner_url, autocommit=True) as owner:
        owner.execute("UPDATE procrastinate_jobs SET scheduled_at = scheduled_at + interval '1 day'")
        owner.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() + interval '1 day')")
        owner.execute(
            "UPDATE procrastinate_jobs SET status = 'doing',"
            " worker_id = (SELECT max(id) FROM procrastinate_workers)"
            " WHERE task_name = 'see'"
        )
    assert await jobs.records.requeue_stalled(stalled_s=1, asking=None) == ["see"]
    await jobs.records.bring_forward(longest_delay_s=900)
    [job] = await jobs_of(jobs, DEFAULT_TENANT, "look")
    assert job.not_before is not None
    assert job.not_before < datetime.now(UTC) + timedelta(minutes=1)
