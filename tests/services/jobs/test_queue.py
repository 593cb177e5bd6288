import asyncio
from uuid import UUID

import pytest

from services.bootstrap import Services
from services.conversations.turn import TurnOutcome
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.platform.postgres import Database
from services.platform.tracing import TRACING, span
from tests.support.trace_collector import trace_collector
from tests.support.turns import exchange, new_turn

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]


async def _jobs(database: Database) -> list[tuple[str, dict[str, str], str]]:
    async with database.pool.connection() as connection:
        rows = await connection.execute("SELECT task_name, args, status FROM procrastinate_jobs ORDER BY id")
        return list(await rows.fetchall())


async def test_a_job_is_deferred_in_the_transaction_that_completes_the_turn(services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi", jobs=["look_at_conversation"])
    tenant = str(DEFAULT_TENANT)
    assert await _jobs(services.database) == [
        (
            "look_at_conversation",
            {"tenant_id": tenant, "conversation_id": str(turn.conversation_id)},
            "todo",
        ),
    ]
    with pytest.raises(Conflict):
        await services.turns.end(
            turn.tenant_id,
            turn.turn_id,
            turn.user_message_id,
            TurnOutcome(status="completed", answer="again", jobs=["look_at_conversation"]),
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


async def test_a_job_names_every_trace_that_asked_for_it_and_passes_them_on(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = JobQueue(services.database)
    turn = await services.turns.open(new_turn())

    async def defer(name: str) -> bool:
        async with services.database.tenant(DEFAULT_TENANT) as connection:
            return await jobs.defer(
                connection, name, tenant_id=DEFAULT_TENANT, queueing_lock=name, turn_id=turn.turn_id
            )

    @jobs.task("look_at_turn")
    async def look_at_turn(job: RunningJob, *, turn_id: UUID) -> None:
        await defer("look_again")

    @jobs.task("look_again")
    async def look_again(job: RunningJob, *, turn_id: UUID) -> None:
        pass

    await jobs.open()
    with trace_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        TRACING.start()
        new = []
        for number in range(40):
            with span(f"turn {number}"):
                new.append(await defer("look_at_turn"))
        (waiting,) = await jobs.records.page(DEFAULT_TENANT, status="waiting", after=None, limit=9)
        await jobs.app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
        await asyncio.to_thread(TRACING.stop)
    assert new == [True] + [False] * 39
    assert waiting.ids == {"turn_id": str(turn.turn_id)}
    turns = [collector.one(f"turn {number}").trace_id for number in range(40)]
    first, second = collector.one("job look_at_turn"), collector.one("job look_again")
    assert first.linked == turns[:32]
    assert second.linked == [*turns[1:32], first.trace_id]
