import asyncio

import pytest
from psycopg import sql

from services.bootstrap import Services
from services.conversations.turn import TurnOutcome
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from state.turn import OpenTurn
from tests.support.turns import exchange, messages_of, new_turn

pytestmark = pytest.mark.untraced


async def _expire(services: Services) -> None:
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE turns SET lease_expires_at = now() - interval '1 hour'")


async def _set_clock_back(services: Services) -> None:
    """By a day: whatever is stored is from tomorrow."""
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        for table, columns in (
            ("messages", ["created_at"]),
            ("turns", ["accepted_at", "started_at", "lease_expires_at"]),
            ("visits", ["started_at", "last_active_at"]),
        ):
            later = ", ".join(f"{column} = {column} + interval '1 day'" for column in columns)
            await connection.execute(sql.SQL(f"UPDATE {table} SET {later}"))


async def _end(services: Services, turn: OpenTurn, answer: str = "answer") -> None:
    outcome = TurnOutcome(status="completed", answer=answer)
    await services.turns.end(turn, outcome)


async def _messages(services: Services, turn: OpenTurn) -> list[tuple[str, bool]]:
    found = await messages_of(services, turn.conversation_id)
    return [(message.content, message.completed) for message in found]


async def test_of_twenty_at_once_one_runs_five_wait_and_the_rest_are_refused(services: Services) -> None:
    found = await asyncio.gather(
        *(services.turns.open(new_turn(f"message {n}")) for n in range(20)), return_exceptions=True
    )
    opened = [turn for turn in found if isinstance(turn, OpenTurn)]
    refused = [error for error in found if isinstance(error, Conflict)]
    assert (len(opened), len(refused)) == (6, 14)
    assert sorted(turn.waiting for turn in opened) == [False] + [True] * 5
    assert "5 messages wait" in refused[0].message
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        stored = await (await connection.execute("SELECT count(*) FROM messages")).fetchone()
    assert stored == (6,)


async def test_turns_begin_in_the_order_in_which_they_were_accepted(services: Services) -> None:
    first, second, third = [await services.turns.open(new_turn(f"message {n}")) for n in range(3)]
    for turn in (second, third):
        assert await services.leases.begin(DEFAULT_TENANT, turn.turn_id) == "waiting"
    await _end(services, first)
    assert await services.leases.begin(DEFAULT_TENANT, third.turn_id) == "waiting"
    late = await services.turns.open(new_turn("late"))
    assert late.waiting, "nobody overtakes those who wait"
    assert await services.leases.begin(DEFAULT_TENANT, second.turn_id) == "running"
    assert await services.leases.begin(DEFAULT_TENANT, third.turn_id) == "waiting"


async def test_turns_whose_process_is_gone_are_found_and_those_alive_are_not(services: Services) -> None:
    abandoned = await services.turns.open(new_turn("gone"))
    waiting = await services.turns.open(new_turn("waits"))
    alive = await services.turns.open(new_turn("alive", session_id="s-2"))
    assert await services.leases.expired() == []
    await _expire(services)
    await services.leases.renew(DEFAULT_TENANT, {alive.turn_id: False})
    found = await services.leases.expired()
    assert [(turn.turn_id, turn.status) for turn in found] == [
        (abandoned.turn_id, "running"),
        (waiting.turn_id, "waiting"),
    ]


async def test_a_lease_from_before_the_clock_was_set_back_has_expired(services: Services) -> None:
    running = await services.turns.open(new_turn("gone"))
    waiting = await services.turns.open(new_turn("waits"))
    await _set_clock_back(services)
    assert {turn.turn_id for turn in await services.leases.expired()} == {running.turn_id, waiting.turn_id}
    await services.turns.end_elsewhere(
        DEFAULT_TENANT, running.turn_id, TurnOutcome(status="failed"), abandoned=True
    )
    assert await services.leases.adopt(DEFAULT_TENANT, waiting.turn_id) is not None


async def test_what_is_said_after_the_clock_was_set_back_comes_last(services: Services) -> None:
    await exchange(services.turns, "one", "first answer")
    running = await services.turns.open(new_turn("two"))
    waiting = await services.turns.open(new_turn("three"))
    await _set_clock_back(services)
    last = await services.turns.open(new_turn("four"))
    await _end(services, running, "second answer")
    assert await services.leases.begin(DEFAULT_TENANT, last.turn_id) == "waiting", "the other was accepted before"
    for turn, answer in ((waiting, "third answer"), (last, "fourth answer")):
        assert await services.leases.begin(DEFAULT_TENANT, turn.turn_id) == "running"
        await _end(services, turn, answer)
    said = [content for content, _ in await _messages(services, last)]
    answers = ["first answer", "second answer", "third answer", "fourth answer"]
    assert said == [text for pair in zip(["one", "two", "three", "four"], answers, strict=True) for text in pair]


async def test_a_turn_that_waited_is_adopted_once_with_all_that_was_asked(services: Services) -> None:
    await services.turns.open(new_turn("one"))
    asked = new_turn("two", images=["https://example.org/cat.png"], debug=True, timezone="+08:00")
    waiting = await services.turns.open(asked)
    assert await services.leases.adopt(DEFAULT_TENANT, waiting.turn_id) is None, "its process lives"
    await services.leases.release(DEFAULT_TENANT, waiting.turn_id)
    found = await asyncio.gather(*(services.leases.adopt(DEFAULT_TENANT, waiting.turn_id) for _ in range(5)))
    (adopted,) = [one for one in found if one]
    assert adopted.input == waiting.input
    assert (adopted.timezone, adopted.user_message_id) == ("+08:00", waiting.user_message_id)
