import asyncio

import pytest
from psycopg.rows import TupleRow, tuple_row

from services.bootstrap import Services
from services.conversations.turn import TurnOutcome
from services.conversations.turns import Turns
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.memory.waiting import defer_filing
from tests.support.turns import messages_of, new_turn

pytestmark = pytest.mark.untraced


async def test_a_new_user_keeps_the_time_zone_and_each_turn_may_have_its_own(services: Services) -> None:
    await services.turns.open(new_turn(timezone="Asia/Kathmandu"))
    assert (await services.turns.open(new_turn())).timezone == "Asia/Kathmandu"
    assert (await services.turns.open(new_turn(timezone="+08:00"))).timezone == "+08:00"
    assert (await services.turns.open(new_turn(user_id="u-2"))).timezone == "Asia/Shanghai"


async def test_fifty_first_messages_at_once_make_one_user_and_ten_conversations(services: Services) -> None:
    asked = [new_turn(f"message {n}", session_id=f"s-{n % 10}") for n in range(50)]
    turns = await asyncio.gather(*(services.turns.open(new) for new in asked))
    assert len({turn.conversation_id for turn in turns}) == 10
    messages = await messages_of(services, turns[3].conversation_id)
    assert sorted(message.content for message in messages) == sorted(f"message {n}" for n in range(3, 50, 10))
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        assert await (await connection.execute("SELECT count(*) FROM users")).fetchone() == (1,)


async def test_a_turn_ends_once_whoever_comes_second(services: Services) -> None:
    turn = await services.turns.open(new_turn())
    complete = TurnOutcome(status="completed", answer="whole")
    failed = TurnOutcome(status="partial", answer="half")
    await services.turns.end(turn, complete)
    with pytest.raises(Conflict):
        await services.turns.end_elsewhere(turn.tenant_id, turn.turn_id, failed)
    assert (await services.turns.get(DEFAULT_TENANT, turn.turn_id)).answer == "whole"


async def test_the_end_of_a_turn_queues_the_same_filing_job_as_the_queue(services: Services) -> None:
    turns = Turns(services.database, services.jobs, filing_quiet_s=30)
    for _ in range(2):
        turn = await turns.open(new_turn())
        outcome = TurnOutcome(status="completed", answer="Nice.", files=True)
        await turns.end(turn, outcome)
    [of_turns] = await _waiting_jobs(services)  # one job waits for both
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("DELETE FROM procrastinate_jobs")
        await defer_filing(services.jobs, connection, DEFAULT_TENANT, turn.user_id, delay_s=30)
    [queued] = await _waiting_jobs(services)
    assert of_turns == queued
    assert queued[-1] is True


async def _waiting_jobs(services: Services) -> list[TupleRow]:
    return await services.database.fetch(
        DEFAULT_TENANT,
        """
        SELECT queue_name, task_name, priority, lock, queueing_lock, args, status,
               scheduled_at BETWEEN now() + interval '20 seconds' AND now() + interval '30 seconds'
        FROM procrastinate_jobs WHERE task_name = 'file_memory'
        """,
        {},
        tuple_row,
    )
