"""What a task is given, jobs that fail, and jobs that are wanted twice."""

import asyncio
import itertools
from typing import Any
from uuid import UUID

import pytest

from services.errors import Conflict, DatabaseUnavailable, InvalidInput, NotFound
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob, reason_of
from services.platform.postgres import Database
from tests.support.jobs import defer, has_ended, hurried_queue, jobs_of, statuses, until
from tests.support.turns import some_uuid

OTHER = UUID("0190a000-0000-7000-8000-0000000000aa")


async def test_a_task_is_given_ids_and_its_transactions_the_jobs_tenant(database: Database) -> None:
    seen: list[Any] = []
    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob, *, turn_id: UUID, message_ids: list[UUID]) -> None:
            async with job.transaction() as connection:
                rows = await connection.execute("SELECT current_setting('anamnesis.tenant_id')")
                seen.extend([job.tenant_id, turn_id, message_ids, await rows.fetchone()])

        await defer(database, jobs, "look", tenant_id=OTHER, turn_id=some_uuid(1), message_ids=[some_uuid(2)])
        jobs.start_worker()
        await until(lambda: has_ended(database, "look", "succeeded"))
    assert seen == [OTHER, some_uuid(1), [some_uuid(2)], (str(OTHER),)]


async def test_a_job_carries_ids_only(database: Database) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    with pytest.raises(ValueError, match="badly formed"):
        await defer(database, jobs, "look", message="what a user said")
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

        await defer(database, jobs, "look", turn_id=some_uuid(1))
        jobs.start_worker()
        await until(lambda: has_ended(database, "look", "failed"))
        waits = [later - earlier for earlier, later in itertools.pairwise(tries)]
        assert len(waits) == 3
        assert waits[0] >= 0.05
        assert waits[1] >= 0.1
        assert waits[2] >= 0.2

        [job] = await jobs_of(jobs, DEFAULT_TENANT, "look")
        assert (job.status, job.failures, job.ids) == ("failed", 4, {"turn_id": str(some_uuid(1))})
        assert job.reason == "KeyError: Not expected; the log has the place."
        assert job.failed_at is not None
        assert (await jobs.records.state()).failed == 1

        with pytest.raises(NotFound):
            await jobs.records.retry(OTHER, job.id)
        fails = False
        assert (await jobs.records.retry(DEFAULT_TENANT, job.id)).status in {"waiting", "running", "succeeded"}
        await until(lambda: has_ended(database, "look", "succeeded"))
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

        await defer(database, jobs, "hang")
        jobs.start_worker()
        await until(lambda: has_ended(database, "hang", "failed"))
        [job] = await jobs_of(jobs, DEFAULT_TENANT, "hang")
        assert "took too long" in (job.reason or "")


async def test_a_failed_job_that_was_replaced_meanwhile_is_not_run_twice(database: Database) -> None:
    async def is_given_up() -> bool:
        return (await statuses(database, "look"))[0] == "aborted"

    async with hurried_queue(database) as jobs:

        @jobs.task("look")
        async def look(job: RunningJob) -> None:
            if len(await statuses(database, "look")) == 1:
                await defer(database, jobs, "look", queueing_lock="the same", delay_s=60)
                raise KeyError

        await defer(database, jobs, "look", queueing_lock="the same")
        jobs.start_worker()
        await until(is_given_up)
        async with database.pool.connection() as connection:
            await connection.execute("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo'")
        await until(lambda: has_ended(database, "look", "succeeded"))
    assert await statuses(database, "look") == ["aborted", "succeeded"]


async def test_of_many_transactions_at_once_one_queues_the_job(database: Database) -> None:
    jobs = JobQueue(database)
    await jobs.open()
    added = await asyncio.gather(*(defer(database, jobs, "look", queueing_lock="the same") for _ in range(12)))
    assert sorted(added) == [False] * 11 + [True]
    assert await statuses(database, "look") == ["todo"]


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
            await defer(database, jobs, "look", lock="one conversation")
        jobs.start_worker()
        await until(lambda: has_ended(database, "look", "succeeded"))
    assert most == 1
