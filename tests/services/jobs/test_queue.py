import asyncio

import pytest

from services.bootstrap import Services
from services.conversations.turn import TurnOutcome
from services.conversations.turns import Turns
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.platform.postgres import Database
from tests.support.turns import exchange, new_turn

pytestmark = pytest.mark.anyio


async def _jobs(database: Database) -> list[tuple[str, dict[str, str], str]]:
    async with database.pool.connection() as connection:
        rows = await connection.execute("SELECT task_name, args, status FROM procrastinate_jobs ORDER BY id")
        return list(await rows.fetchall())


async def test_a_job_is_deferred_in_the_transaction_that_completes_the_turn(services: Services) -> None:
    jobs = JobQueue(services.database, after_turn=["look_at_turn"])
    await jobs.open()
    turns = Turns(services.database, jobs)
    turn = await exchange(turns, "Hello", "Hi")
    assert await _jobs(services.database) == [
        (
            "look_at_turn",
            {
                "tenant_id": str(DEFAULT_TENANT),
                "conversation_id": str(turn.conversation_id),
                "turn_id": str(turn.turn_id),
            },
            "todo",
        )
    ]
    with pytest.raises(Conflict):
        await turns.end(
            turn.tenant_id,
            turn.turn_id,
            turn.user_message_id,
            TurnOutcome(status="completed", answer="again"),
        )
    assert len(await _jobs(services.database)) == 1


async def test_a_transaction_that_is_undone_takes_its_job_with_it(services: Services) -> None:
    jobs = JobQueue(services.database, after_turn=["look_at_turn"])
    await jobs.open()
    turn = await services.turns.open(new_turn())

    async def defer_and_fail() -> None:
        async with services.database.tenant(DEFAULT_TENANT) as connection:
            await jobs.defer_after_turn(
                connection,
                tenant_id=DEFAULT_TENANT,
                conversation_id=turn.conversation_id,
                turn_id=turn.turn_id,
            )
            raise KeyError("undone")

    with pytest.raises(KeyError, match="undone"):
        await defer_and_fail()
    assert await _jobs(services.database) == []


async def test_a_turn_that_failed_causes_no_job(services: Services) -> None:
    jobs = JobQueue(services.database, after_turn=["look_at_turn"])
    await jobs.open()
    turns = Turns(services.database, jobs)
    turn = await turns.open(new_turn())
    await turns.end(turn.tenant_id, turn.turn_id, turn.answer_message_id, TurnOutcome(status="failed"))
    assert await _jobs(services.database) == []


async def test_the_worker_runs_what_is_deferred(services: Services) -> None:
    jobs = JobQueue(services.database, after_turn=["look_at_turn"])
    seen: asyncio.Queue[str] = asyncio.Queue()

    @jobs.app.task(name="look_at_turn")
    async def look_at_turn(tenant_id: str, conversation_id: str, turn_id: str) -> None:
        await seen.put(turn_id)

    await jobs.open()
    jobs.start_worker()
    assert jobs.worker_state == "running"
    turn = await exchange(Turns(services.database, jobs), "Hello", "Hi")
    async with asyncio.timeout(10):
        assert await seen.get() == str(turn.turn_id)
    await jobs.close()


async def test_finished_jobs_are_removed_in_the_course_of_time(services: Services) -> None:
    await services.jobs.app.configure_task("remove_finished_jobs").defer_async(timestamp=0)
    async with asyncio.timeout(10):
        await services.jobs.app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
    finished = [job for job in await _jobs(services.database) if job[0] == "remove_finished_jobs"]
    assert [status for _, _, status in finished] == ["succeeded"]
