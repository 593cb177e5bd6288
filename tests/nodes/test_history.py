from datetime import date
from typing import Any

import pytest

from nodes.history import history
from services.bootstrap import Services
from services.context.sources.core_memory import CoreMemorySource
from services.context.sources.days import DaysSource, days_text
from services.context.sources.time import UserActivitySource
from services.conversations.turn import TurnOutcome
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.memory.core.blocks import Owner
from services.memory.core.store import CoreMemory
from services.memory.operations import Trigger
from services.platform.postgres import Database
from services.summaries.daily_summaries import DailySummaries
from services.summaries.day_store import DayStore
from services.summaries.past_days import PastDays
from services.summaries.writer import SummaryWriter
from services.visits.visit import VisitSchedule
from state.conversation import ConversationState, section_named
from state.prompt import TimeReference
from state.turn import OpenTurn
from tests.support.core_memory import know
from tests.support.model_server import ModelServer, Reply
from tests.support.turns import exchange, new_turn, policy, runtime, state

pytestmark = pytest.mark.untraced

TOPIC = '{"topics": [{"title": "Dog", "summary": "Bruno is ill.", "start": 1, "end": 12, "keywords": ["dog"]}]}'


async def _history(
    services: Services,
    turn: OpenTurn,
    *,
    core: CoreMemory | None = None,
    days: PastDays | None = None,
    visits: Database | None = None,
    reference: TimeReference | None = None,
    **values: Any,
) -> ConversationState:
    # Read as late as possible: the tests change memory after the turn is opened.
    values = {"begins": False, "has_core_memory": True, "memory_generation": None, **values}
    replaced = {
        CoreMemorySource: CoreMemorySource(core) if core else None,
        DaysSource: DaysSource(days) if days else None,
        UserActivitySource: UserActivitySource(visits) if visits else None,
    }
    return await history(
        state(**{"time_reference": reference} if reference else {}),
        runtime(turn=turn, **values),
        sources=[replaced.get(type(source)) or source for source in services.sources],
        conversation=services.conversation,
        topics=services.topics,
        models=services.models,
        tools=services.tools,
        estimators=services.estimators,
        changes=services.memory.changes,
    )


def _text(update: ConversationState, name: str) -> str:
    """What a section says that loses no items."""
    section = section_named(update["sections"], name)
    return section.text if section else ""


def _said(update: ConversationState) -> list[str]:
    """The messages that the prompt shows of the conversation."""
    section = section_named(update["sections"], "history")
    return [item.message.text for item in section.items if item.message] if section else []


async def _exchanges(services: Services, count: int, length: int = 40) -> None:
    for number in range(count):
        await exchange(services.turns, f"question {number} {'x' * length}", f"answer {number} {'y' * length}")


async def test_history_is_the_completed_messages_before_this_one(services: Services) -> None:
    await exchange(services.turns, "My dog is called Bruno.", "A fine name.")
    broken = await services.turns.open(new_turn("And my cat?"))
    partial = TurnOutcome(status="partial", answer="Your cat is", error={"code": "x"})
    await services.turns.end(broken, partial)
    turn = await services.turns.open(new_turn("My dog is called Bruno."))

    update = await _history(services, turn)

    assert set(update) - {"timings"} == {
        "sections",
        "history",
        "epoch",
        "context_budget",
        "prompt_language",
        "context_filled",
        "summary_due",
        "not_recalled",
    }
    shown = [(message["role"], message["content"]) for message in update["history"]]
    # The equal earlier message stays, the broken answer does not enter, nor does the message itself.
    assert shown == [("user", "My dog is called Bruno."), ("assistant", "A fine name."), ("user", "And my cat?")]
    assert (update["epoch"]["number"], update["epoch"]["reason"]) == (1, "first turn")
    assert (update["context_budget"], update["summary_due"]) == (4000, False)


async def test_of_an_answer_that_broke_off_the_next_prompt_says_so_and_no_later_one(services: Services) -> None:
    broken = await services.turns.open(new_turn("Tell me of cats."))
    partial = TurnOutcome(status="partial", answer="A cat is </memory>", error={"code": "x"})
    await services.turns.end(broken, partial)
    turn = await services.turns.open(new_turn("Go on."))
    said = _text(await _history(services, turn), "cut_off")
    assert said == (
        "Your last answer was cut off; this is the end of what the user saw:\n"
        "<memory>\nA cat is ‹/memory>\n</memory>"
    )
    done = TurnOutcome(status="completed", answer="A small animal.")
    await services.turns.end(turn, done)
    later = await services.turns.open(new_turn("Thanks."))
    assert _text(await _history(services, later), "cut_off") == ""


async def test_the_epochs_summary_stays_until_the_history_is_long(
    services: Services, model_server: ModelServer
) -> None:
    await _exchanges(services, 5, length=200)
    model_server.script(Reply(["They talk."]))
    first = await services.turns.open(new_turn("Hello"))
    before = (await _history(services, first))["epoch"]
    ended = TurnOutcome(status="completed", answer="Hi", epoch=before)
    await services.turns.end(first, ended)
    assert await services.summaries.update(DEFAULT_TENANT, first.conversation_id)

    turn = await services.turns.open(new_turn("And?"))
    update = await _history(services, turn)
    assert (update["epoch"], len(update["history"])) == (before, 12)
    update = await _history(services, turn, max_context_tokens=500)
    assert (update["epoch"]["number"], update["epoch"]["reason"]) == (2, "history over its mark")
    assert update["epoch"]["summary"] == "They talk."
    assert len(update["history"]) == 6, "what the summary does not cover"


async def _long_talk(services: Services) -> OpenTurn:
    """A turn behind ten long exchanges, with an expert that archives topics."""
    await _exchanges(services, 10, length=400)
    turn = await services.turns.open(new_turn("And now?"))
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE experts SET context_strategy = 'topics'")
    return turn


@pytest.mark.traced
async def test_a_full_prompt_has_its_topics_archived_before_the_answer_or_the_turn_says_that_none_were_found(
    services: Services, model_server: ModelServer
) -> None:
    turn = await _long_talk(services)
    small = policy(strategy="topics", window=2000, threshold=0.7, min_archive_messages=10)
    model_server.script(Reply(["no idea"]), Reply(["none"]))
    update = await _history(services, turn, policy=small)
    assert (len(update["history"]), update["degraded"]) == (20, ["topics"])
    assert len(model_server.requests) == 2
    model_server.script(Reply([TOPIC]))

    update = await _history(services, turn, policy=small)

    assert update["epoch"]["topics"] == [{"title": "Dog", "summary": "Bruno is ill."}]
    assert update["history"][0]["content"][:10] == "question 6"
    assert update["context_budget"] == 1400
    assert "degraded" not in update


AGENT = Trigger("filing")


async def _end(services: Services, turn: OpenTurn, update: ConversationState) -> None:
    ended = TurnOutcome(status="completed", answer="Yes", epoch=update["epoch"])
    await services.turns.end(turn, ended)


@pytest.mark.parametrize("change", ["replace", "rollback", "forget"])
async def test_what_a_user_changes_begins_an_epoch_at_once(services: Services, change: str) -> None:
    turn = await services.turns.open(new_turn("Hello"))
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    core, by_user = services.memory.core, Trigger("user")
    await know(services, owner, "human", {"name": "Wang"}, AGENT)
    await _end(services, turn, await _history(services, turn))
    if change == "replace":
        await core.replace(owner, "human", {"name": "Wang", "age": 30}, by_user)
    elif change == "rollback":
        await core.rollback(owner, "human", 1, by_user)
    else:
        await core.forget(owner, "human", by_user)
    update = await _history(services, await services.turns.open(new_turn("And?")))
    reason = "core memory removed" if change == "forget" else "core memory rewritten"
    assert (update["epoch"]["number"], update["epoch"]["reason"]) == (2, reason)
    expected = {"replace": {"human": {"name": "Wang", "age": 30}}, "rollback": {"human": {"name": "Wang"}}}
    assert update["epoch"]["core_memory"] == expected.get(change, {})


async def test_core_memory_that_cannot_be_read_is_left_out_and_the_epoch_stays(services: Services) -> None:
    turn = await services.turns.open(new_turn("Hello"))
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    await know(services, owner, "human", {"name": "Wang"}, AGENT)
    await _end(services, turn, await _history(services, turn))
    turn = await services.turns.open(new_turn("And?"))
    away = CoreMemory(Database("postgresql://nobody@127.0.0.1:1/none"), services.memory.operations)
    update = await _history(services, turn, core=away)
    assert (_text(update, "core_memory"), update["degraded"]) == ("", ["core_memory"])
    assert update["epoch"]["core_memory"] == {"human": {"name": "Wang"}}
    assert update["epoch"]["number"] == 1
    update = await _history(services, turn)
    assert "degraded" not in update
    assert _text(update, "core_memory_changes") == ""


@pytest.mark.traced
async def test_days_that_cannot_be_read_are_unknown_and_not_empty(services: Services) -> None:
    turn = await services.turns.open(new_turn("昨天我们聊了什么？"))
    day = date(2026, 5, 2)
    asked = TimeReference(
        kind="days", start_date=day, end_date=day, hours=None, matched_text="昨天", detail=False, plain=True
    )
    nowhere = Database("postgresql://nobody@127.0.0.1:1/none")
    writer = SummaryWriter(services.models, most_tokens=1, chunk_tokens=1)
    store = DayStore(nowhere)
    daily = DailySummaries(store, writer, VisitSchedule(), JobQueue(nowhere))
    away = PastDays(daily, nowhere, most_tokens=500)
    update = await _history(services, turn, days=away, reference=asked)
    assert update["degraded"] == ["daily_summaries"]
    assert not update["told_without_model"]
    assert update["asked_days"] is not None
    assert "现在读不到" in days_text(update["asked_days"], "zh")
    update = await _history(services, turn, reference=asked)
    assert update["told_without_model"]


async def test_where_visits_cannot_be_read_no_absence_is_told(services: Services) -> None:
    turn = await services.turns.open(new_turn("I'm so worried"))
    away = Database("postgresql://nobody@127.0.0.1:1/none")
    update = await _history(services, turn, visits=away)
    assert update["degraded"] == ["visits"]
    time = section_named(update["sections"], "time")
    assert time
    assert "last here" not in time.items[0].text
