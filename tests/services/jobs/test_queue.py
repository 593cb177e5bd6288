from dataclasses import replace

import pytest

from services.bootstrap import Services
from services.conversations.turn import TurnOutcome
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.platform.postgres import Database
from tests.support.turns import exchange, new_turn

pytestmark = pytest.mark.untraced


async def _jobs(database: Database) -> list[tuple[str, dict[str, str], str]]:
    async with database.pool.connection() as connection:
        rows = await connection.execute("SELECT task_name, args, status FROM procrastinate_jobs ORDER BY id")
        return list(await rows.fetchall())


async def test_a_job_is_deferred_in_the_transaction_that_completes_the_turn(services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi", summary_due=True)
    tenant = str(DEFAULT_TENANT)
    assert await _jobs(services.database) == [
        ("update_summary", {"tenant_id": tenant, "conversation_id": str(turn.conversation_id)}, "todo")
    ]
    with pytest.raises(Conflict):
        await services.turns.end(
            replace(turn, answer_message_id=turn.user_message_id),
            TurnOutcome(status="completed", answer="again", summary_due=True),
        )
    assert len(await _jobs(services.database)) == 1


async def test_a_transaction_that_is_undone_takes_its_job_with_it(services: Services) -> None:
    turn = await services.turns.open(new_turn())

    async def defer_and_fail() -> None:
        async with services.database.tenant(DEFAULT_TENANT) as connection:
            await services.jobs.defer(connection, "look_at_turn", tenant_id=DEFAULT_TENANT, turn_id=turn.turn_id)
            raise KeyError("undone")

    with pytest.raises(KeyError, match="undone"):
        await defer_and_fail()
    assert await _jobs(services.database) == []


async def test_a_job_of_another_version_is_left_to_a_worker_of_that_version(services: Services) -> None:
    turn = await services.turns.open(new_turn())
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await services.jobs.defer(
            connection, "of_the_next_version", tenant_id=DEFAULT_TENANT, turn_id=turn.turn_id
        )
    await services.jobs.app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
    async with services.database.pool.connection() as connection:
        later = "SELECT status::text, scheduled_at > now() FROM procrastinate_jobs WHERE task_name LIKE 'of_the%'"
        assert await (await connection.execute(later)).fetchone() == ("todo", True)


async def test_only_the_newest_jobs_that_ended_well_are_kept_with_their_events(services: Services) -> None:
    statuses = ("succeeded", "cancelled", "failed", "succeeded", "todo", "succeeded", "succeeded")
    async with services.database.pool.connection() as connection:
        add = "INSERT INTO procrastinate_jobs (queue_name, task_name, status, args) VALUES ('q', %s, %s, '{}')"
        for number, status in enumerate(statuses):
            await connection.execute(add, [f"task-{number}", status])
    assert await services.jobs.records.trim(2) == 3
    kept = [name for name, _, _ in await _jobs(services.database)]
    assert kept == ["task-2", "task-4", "task-5", "task-6"]
    async with services.database.pool.connection() as connection:
        of_others = (
            "SELECT count(*) FROM procrastinate_events WHERE job_id NOT IN (SELECT id FROM procrastinate_jobs)"
        )
        assert await (await connection.execute(of_others)).fetchone() == (0,)
