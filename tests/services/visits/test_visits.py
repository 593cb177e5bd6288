"""A visit begins with a message, goes on with the next, and ends by silence or when it is closed."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.bootstrap import Services
from services.conversations.turn import TurnOutcome
from services.identity.tenants import DEFAULT_TENANT
from services.visits.visit import SUMMARISE_VISIT
from tests.support.jobs import statuses
from tests.support.turns import exchange, new_turn
from tests.support.visits import let_pass, visits_of

pytestmark = pytest.mark.untraced

IDLE = timedelta(minutes=30)


def _shape(visits: list[dict[str, Any]]) -> list[tuple[int, str | None]]:
    return [(visit["message_count"], visit["end_reason"]) for visit in visits]


async def test_a_visit_begins_with_the_first_message_and_goes_on_with_the_next(services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi")
    (first,) = await visits_of(services.database)
    await let_pass(services.database, timedelta(minutes=29))
    await exchange(services.turns, "Still there?", "Yes")
    (visit,) = await visits_of(services.database)
    assert visit["id"] == first["id"]
    assert visit["conversation_id"] == turn.conversation_id
    assert _shape([visit]) == [(4, None)]
    assert visit["ended_at"] is None
    assert visit["last_active_at"] - visit["started_at"] > timedelta(minutes=28)


async def test_a_message_after_a_long_silence_begins_a_visit_and_the_one_before_has_ended(
    services: Services,
) -> None:
    await exchange(services.turns, "Hello", "Hi")
    await exchange(services.turns, "I moved to Bergen", "Nice")
    await let_pass(services.database, timedelta(minutes=31))
    await exchange(services.turns, "Good morning", "Good morning")
    before, now = await visits_of(services.database)
    assert _shape([before, now]) == [(4, "idle"), (2, None)]
    assert before["ended_at"] == before["last_active_at"] + IDLE
    assert await statuses(services.database, SUMMARISE_VISIT) == ["todo"]


@pytest.mark.parametrize(
    ("status", "answer", "messages"), [("failed", "", 1), ("partial", "Half an", 1), ("completed", "An answer", 2)]
)
async def test_only_complete_messages_are_counted(
    services: Services, status: Any, answer: str, messages: int
) -> None:
    turn = await services.turns.open(new_turn())
    outcome = TurnOutcome(status=status, answer=answer)
    await services.turns.end(turn, outcome)
    assert _shape(await visits_of(services.database)) == [(messages, None)]


async def test_a_turn_under_way_belongs_to_the_visit_that_is_closed_meanwhile(services: Services) -> None:
    await exchange(services.turns, "Hello", "Hi")
    running = await services.turns.open(new_turn("And what of Bergen?"))
    await services.visits.close(DEFAULT_TENANT, running.conversation_id)
    outcome = TurnOutcome(status="completed", answer="It rains.")
    await services.turns.end(running, outcome)
    (visit,) = await visits_of(services.database)
    assert _shape([visit]) == [(4, "closed")]
    assert visit["ended_at"] >= visit["last_active_at"]
    assert visit["daily_due_at"] is not None, "its day is looked at again"


async def test_silence_ends_visits_whoever_looks_and_however_many_look(services: Services) -> None:
    for session in ("s-1", "s-2"):
        await exchange(services.turns, "I moved to Bergen last month", "Nice", session_id=session)
        await exchange(services.turns, "It rains a lot", "It does", session_id=session)
    now = datetime.now(UTC)
    assert await services.visits.end_idle(now + timedelta(minutes=29)) == 0
    found = await asyncio.gather(*(services.visits.end_idle(now + timedelta(minutes=31)) for _ in range(4)))
    assert sum(found) == 2
    assert _shape(await visits_of(services.database)) == [(4, "idle"), (4, "idle")]
    assert await statuses(services.database, SUMMARISE_VISIT) == ["todo", "todo"]
