"""Jobs that fail, are cut off, lose their worker, or are wanted twice."""

import asyncio
import itertools
import signal
from typing import Any
from uuid import UUID

import psycopg
import pytest

from services.bootstrap import Engines
from services.errors import Conflict, DatabaseUnavailable, InvalidInput, NotFound
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.jobs.records import StoredJob
from services.jobs.tasks import RunningJob, reason_of
from services.platform.postgres import Database
from tests.support.jobs import HURRIED, hurried_queue, next_line, statuses, until, worker_process
from tests.support.turns import some_uuid

pytestmark = pytest.mark.anyio

OTHER = UUID("0190a000-0000-7000-8000-0000000000aa")


async def _defer(database: Database, jobs: JobQueue, task: str, **values: Any) -> bool:
    async with database.tenant(DEFAULT_TENANT) as connection:
        return await jobs.defer(connection, task, **{"tenant_id": DEFAULT_TENANT, **values})


async def _jobs_of(jobs: JobQueue, tenant_id: UUID, task: str) -> list[StoredJob]:
    found = await jobs.records.page(tenant_id, status=None, after=None, limit=100)
    return [job for job in found if job.task == task]


async def test_a_task_is_given_ids_and_its_transactions_the_jobs_tenant(database: Database) -> None:
    seen: list[Any] = []
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob, *, turn_id: UUID, message_ids: list[UUID]) -> None:
            async with job.transaction() as connection:
                rows = await connection.execute("SELECT current_setting('anamnesis.tenant_id')")
                seen.extend([job.tenant_id, turn_id, message_ids, await rows.fetchone()])

        await _defer(database, jobs, "look", tenant_id=OTHER, turn_id=some_uuid(1), message_ids=[some_uuid(2)])
        jobs.start_worker()
        await until(lambda: _has_ended(database, "look", "succeeded"))
    assert seen == [OTHER, some_uuid(1), [some_uuid(2)], (str(OTHER),)]


async def test_a_job_carries_ids_only(database: Database) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    with pytest.raises(ValueError, match="badly formed"):
        await _defer(database, jobs, "look", message="what a user said")
    assert await statuses(database, "look") == []


async def test_a_job_is_tried_four_times_and_then_keeps_its_reason_and_can_be_retried(database: Database) -> None:
    tries: list[float] = []
    fails = True
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob, *, turn_id: UUID) -> None:
            tries.append(asyncio.get_running_loop().time())
            if fails:
                raise KeyError("what a user said")

        await _defer(database, jobs, "look", turn_id=some_uuid(1))
        jobs.start_worker()
        await until(lambda: _has_ended(database, "look", "failed"))
        waits = [later - earlier for earlier, later in itertools.pairwise(tries)]
        assert len(waits) == 3
        assert waits[0] >= 0.05
        assert waits[1] >= 0.1
        assert waits[2] >= 0.2

        [job] = await _jobs_of(jobs, DEFAULT_TENANT, "look")
        assert (job.status, job.failures, job.ids) == ("failed", 4, {"turn_id": str(some_uuid(1))})
        assert job.reason == "KeyError: Not expected; the log has the place."
        assert job.failed_at is not None
        assert (await jobs.records.state()).failed == 1

        with pytest.raises(NotFound):
            await jobs.records.retry(OTHER, job.id)
        fails = False
        assert (await jobs.records.retry(DEFAULT_TENANT, job.id)).status in {"waiting", "running", "succeeded"}
        await until(lambda: _has_ended(database, "look", "succeeded"))
        with pytest.raises(Conflict, match="Only a failed job"):
            await jobs.records.retry(DEFAULT_TENANT, job.id)
    assert len(tries) == 5


async def test_a_reason_never_quotes_an_errors_message() -> None:
    assert (
        reason_of(InvalidInput("expert", "no expert 'secret'")) == "InvalidInput: A value of the request is wrong."
    )
    assert reason_of(DatabaseUnavailable("secret")).startswith("DatabaseUnavailable: The database does not answer")
    assert "secret" not in reason_of(ValueError("secret"))
    assert "too long" in reason_of(TimeoutError("secret"))


async def test_a_job_that_hangs_fails_when_its_time_is_up(database: Database) -> None:
    async with hurried_queue(database) as jobs:

        @jobs.task("hang", longest_s=0.05)
        async def hang(job: RunningJob) -> None:
            await asyncio.Event().wait()

        await _defer(database, jobs, "hang")
        jobs.start_worker()
        await until(lambda: _has_ended(database, "hang", "failed"))
        [job] = await _jobs_of(jobs, DEFAULT_TENANT, "hang")
        assert "took too long" in (job.reason or "")


async def test_a_stop_puts_a_running_job_back_with_all_its_tries(database: Database) -> None:
    started = asyncio.Event()
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob) -> None:
            started.set()
            await asyncio.Event().wait()

        await _defer(database, jobs, "look")
        jobs.start_worker()
        async with asyncio.timeout(5):
            await started.wait()
    assert await statuses(database, "look") == ["todo"]
    assert (await jobs.records.state()).running == 0
    assert (await jobs.records.state()).heartbeat_s is None

    async with hurried_queue(database) as again:

        @again.task("look")
        async def look_again(job: RunningJob) -> None:
            return

        again.start_worker()
        await until(lambda: _has_ended(database, "look", "succeeded"))
        [job] = await _jobs_of(again, DEFAULT_TENANT, "look")
        assert job.failures == 0


async def test_a_job_that_can_end_within_the_grace_ends(database: Database) -> None:
    started = asyncio.Event()
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob) -> None:
            started.set()
            await asyncio.sleep(HURRIED.grace_s / 4)

        await _defer(database, jobs, "look")
        jobs.start_worker()
        async with asyncio.timeout(5):
            await started.wait()
    assert await statuses(database, "look") == ["succeeded"]


async def test_a_job_whose_worker_was_killed_runs_again_elsewhere(database: Database, engines: Engines) -> None:
    ran: list[int] = []
    jobs = JobQueue(database, tempo=HURRIED)
    await jobs.open()
    await _defer(database, jobs, "look")
    process = worker_process(engines.database_url, job_s=60)
    try:
        assert await asyncio.to_thread(next_line, process) == "ready"
        assert (await asyncio.to_thread(next_line, process)).startswith("started")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert await statuses(database, "look") == ["doing"]

    async with hurried_queue(database) as elsewhere:

        @elsewhere.task("look")
        async def look(job: RunningJob) -> None:
            ran.append(job.id)

        elsewhere.start_worker()
        await until(lambda: _has_ended(database, "look", "succeeded"))
        [job] = await _jobs_of(elsewhere, DEFAULT_TENANT, "look")
    assert ran == [job.id]
    assert (job.failures, job.reason) == (1, "WorkerLost: The process that ran the job ended before the job did.")


async def test_a_job_that_loses_every_worker_fails_in_the_end(database: Database, engines: Engines) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    await _defer(database, jobs, "look")
    assert engines.owner_url
    for expected in ("todo", "todo", "todo", "failed"):
        with psycopg.connect(engines.owner_url, autocommit=True) as owner:
            owner.execute("UPDATE procrastinate_jobs SET status = 'doing', worker_id = NULL")
        assert await jobs.records.give_back_lost(stalled_s=1, asking=None) == ["look"]
        assert await statuses(database, "look") == [expected]
    assert await jobs.records.give_back_lost(stalled_s=1, asking=None) == []


async def test_a_lost_job_that_was_replaced_meanwhile_is_not_run_twice(database: Database) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    assert await _defer(database, jobs, "look", queueing_lock="the same")
    async with database.pool.connection() as connection:
        await connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")
    assert await _defer(database, jobs, "look", queueing_lock="the same")
    await jobs.records.give_back_lost(stalled_s=1, asking=None)
    assert await statuses(database, "look") == ["aborted", "todo"]


async def test_a_failed_job_that_was_replaced_meanwhile_is_not_run_twice(database: Database) -> None:
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob) -> None:
            if len(await statuses(database, "look")) == 1:
                await _defer(database, jobs, "look", queueing_lock="the same", delay_s=0.3)
                raise KeyError

        await _defer(database, jobs, "look", queueing_lock="the same")
        jobs.start_worker()
        await until(lambda: _has_ended(database, "look", "succeeded"))
    assert await statuses(database, "look") == ["aborted", "succeeded"]


async def test_a_queueing_lock_admits_one_and_leaves_the_callers_transaction_whole(database: Database) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    async with database.tenant(DEFAULT_TENANT) as connection:
        values: dict[str, Any] = {"tenant_id": DEFAULT_TENANT, "queueing_lock": "the same"}
        assert await jobs.defer(connection, "look", **values)
        assert not await jobs.defer(connection, "look", **values)
        assert await jobs.defer(connection, "other", tenant_id=DEFAULT_TENANT)
    assert await statuses(database, "look") == ["todo"]
    assert await statuses(database, "other") == ["todo"]


async def test_jobs_of_a_lock_run_one_after_the_other(database: Database) -> None:
    running, most = 0, 0
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.05)
            running -= 1

        for _ in range(3):
            await _defer(database, jobs, "look", lock="one conversation")
        jobs.start_worker()
        await until(lambda: _has_ended(database, "look", "succeeded"))
    assert most == 1


async def test_two_workers_run_each_job_and_each_tick_once(database: Database, engines: Engines) -> None:
    processes = [worker_process(engines.database_url, job_s=0.01) for _ in range(2)]
    try:
        for process in processes:
            assert await asyncio.to_thread(next_line, process) == "ready"
        jobs = JobQueue(database, tempo=HURRIED)
        await jobs.open()
        async with database.tenant(DEFAULT_TENANT) as connection:
            for _ in range(40):
                await jobs.defer(connection, "look", tenant_id=DEFAULT_TENANT)
        await until(lambda: _has_ended(database, "look", "succeeded"))
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
        await _defer(database, jobs, "look")
        await until(lambda: _has_ended(database, "look", "succeeded"))
        with psycopg.connect(engines.database_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

        async def has_run_again() -> bool:
            try:
                if len(await statuses(database, "look")) == 1:
                    await _defer(database, jobs, "look")
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
        await _defer(database, jobs, "look")
        await until(lambda: _has_ended(database, "look", "succeeded"))


async def test_the_oldest_that_could_run_is_told_and_one_that_waits_for_its_time_is_not(
    database: Database,
) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    await _defer(database, jobs, "look", delay_s=60)
    state = await jobs.records.state()
    assert (state.waiting, state.oldest_s) == (1, None)
    await _defer(database, jobs, "look")
    async with database.pool.connection() as connection:
        await connection.execute("UPDATE procrastinate_events SET at = now() - interval '90 s'")
    state = await jobs.records.state()
    assert state.waiting == 2
    assert state.oldest_s == pytest.approx(90, abs=10)


async def _has_ended(database: Database, task: str, status: str) -> bool:
    found = await statuses(database, task)
    return bool(found) and found[-1] == status and not {"todo", "doing"} & set(found)


async def _has_run(database: Database, task: str, times: int) -> bool:
    return (await statuses(database, task)).count("succeeded") >= times


async def _beats(jobs: JobQueue) -> bool:
    return (await jobs.records.state()).heartbeat_s is not None
