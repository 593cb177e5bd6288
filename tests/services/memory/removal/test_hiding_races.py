"""What was made of words that were retracted meanwhile is never stored."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.errors import NotFound
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import Operation, Trigger
from tests.support.archiving import answer, archived, topic
from tests.support.filing import add, file, filed
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.retracting import PART, SECRET, forget, interrupted, long_talk, repeating, retelling, shown
from tests.support.talks import new_expert
from tests.support.turns import exchange, owner_of
from tests.support.upkeep import compared, everything, judging, keep_up, write
from tests.support.visits import days_of, import_lines, said, talk_at, visits_of

DAY = date(2026, 3, 10)
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


async def _texts(services: Services, statement: Any) -> str:
    return str(await services.database.fetch(DEFAULT_TENANT, statement, {}, tuple_row))


async def test_a_rolling_summary_is_made_again(services: Services, model_server: ModelServer) -> None:
    turn = await long_talk(services, PART, 7)
    model_server.default = interrupted(lambda: forget(services, owner_of(turn)), repeating)
    assert await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
    first, *_, last = model_server.requests
    assert SECRET in shown(first)
    assert SECRET not in shown(last)
    summary = await services.summaries.store.get(DEFAULT_TENANT, turn.conversation_id)
    assert summary
    assert SECRET not in summary.summary
    assert "Porto" in summary.summary


async def test_topics_are_found_again(services: Services, model_server: ModelServer) -> None:
    await services.experts.create(DEFAULT_TENANT, new_expert("archivist", context_strategy="topics"))
    turn = await long_talk(services, PART, 14, expert="archivist")

    def found(received: Received) -> Reply:
        return Reply([answer(topic(1, 12, summary=received.prompt[-1][1][:900]), topic(13, 22))])

    model_server.default = interrupted(lambda: forget(services, owner_of(turn)), found)
    assert await services.topics.archive(DEFAULT_TENANT, turn.conversation_id) == 2
    assert len(model_server.requests) == 2
    first, _ = await archived(services, turn.conversation_id)
    assert "question 0" in first.summary
    assert SECRET not in first.summary


@pytest.mark.parametrize("at", [1, 3], ids=["while a visit is summarised", "while the day is"])
async def test_visits_and_their_day_are_summarised_again(
    services: Services, model_server: ModelServer, at: int
) -> None:
    evening = talk_at(NOON + timedelta(hours=6), "cooking", session_id="s-2")
    await import_lines(services, said(NOON, PART), *talk_at(NOON + timedelta(minutes=1), "skiing"), *evening)
    owner = await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")
    model_server.default = interrupted(lambda: forget(services, owner), retelling, at=at)
    assert await services.daily.make(owner, DAY, "UTC")
    assert SECRET in shown(model_server.requests[0])
    (day,) = await days_of(services.database)
    visits = [visit["summary"] for visit in await visits_of(services.database)]
    assert "skiing" in day["summary"]
    assert all(visits)
    assert SECRET not in f"{day} {visits}"


async def test_memories_that_are_forgotten_meanwhile_are_not_merged(
    services: Services, model_server: ModelServer
) -> None:
    owner = owner_of(await exchange(services.turns, "Hello", "Hi"))
    old, new = await write(services, owner, "Takes tea against asthma", "Takes tea for the asthma")
    judge = judging(lambda *_: "same")
    model_server.default = interrupted(lambda: forget(services, owner, str(new)), judge)
    assert (await keep_up(services)).merged_ids == []
    assert SECRET in str(compared(model_server.requests[0]))
    stored = await everything(services, owner)
    assert (stored[old]["superseded_by"], bool(stored[new]["retracted_at"])) == (None, True)


async def test_a_thought_about_it_is_not_kept(services: Services, model_server: ModelServer) -> None:
    await services.experts.create(DEFAULT_TENANT, new_expert("thoughtful", reflection=True))
    turn = await exchange(services.turns, PART, "Noted.", expert="thoughtful")
    voice = Reply([json.dumps({"thoughts": "He has asthma.", "feeling": "warm", "intention": "Ask."})])
    model_server.default = interrupted(lambda: forget(services, owner_of(turn)), lambda _: voice)
    assert not await services.reflection.reflect(DEFAULT_TENANT, turn.turn_id)
    assert SECRET not in await _texts(services, "SELECT private_note FROM messages")


async def test_a_model_is_asked_again_what_to_file(services: Services, model_server: ModelServer) -> None:
    turn = await exchange(services.turns, PART, "Noted.")

    def filing(received: Received) -> Reply:
        sees = SECRET in shown(received)
        text, quote = (
            ("has asthma", "I have had asthma") if sees else ("sister in Porto", "My sister lives in Porto")
        )
        return filed(add(text, quote, "facts"))

    model_server.default = interrupted(lambda: forget(services, owner_of(turn)), filing)
    await file(services, turn)
    known = [block.content for block in await services.memory.core.read(owner_of(turn))]
    assert SECRET in shown(model_server.requests[0])
    assert SECRET not in str(known)
    assert "Porto" in str(known)


async def test_what_is_logged_of_a_user_erased_meanwhile_is_not_found(services: Services) -> None:
    erased, receipt = uuid4(), {"id": str(uuid4())}
    database = services.database
    with pytest.raises(NotFound, match="was removed at this moment"):
        async with database.tenant(DEFAULT_TENANT) as connection:
            await services.memory.operations.append(
                connection, DEFAULT_TENANT, erased, Operation("forget"), Trigger("user")
            )
    with pytest.raises(NotFound, match="was removed at this moment"):
        async with database.tenant(DEFAULT_TENANT) as connection:
            await services.forgetting.receipts.add(connection, DEFAULT_TENANT, erased, receipt)
