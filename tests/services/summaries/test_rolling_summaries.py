"""At every moment each completed message is in the summary or behind its point; nothing goes back or is lost."""

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from services.bootstrap import Services, open_services
from services.conversations.turn import TurnOutcome
from services.engines import Engines
from services.errors import BadModelOutput, ModelFailed
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.tasks import SUMMARISE
from services.platform.settings import Settings, load_settings
from state.prompt import Epoch
from state.turn import OpenTurn
from tests.support.jobs import has_ended, statuses, until
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.prompts import shown_conversation
from tests.support.transcripts import say
from tests.support.turns import exchange, new_turn

pytestmark = pytest.mark.untraced

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def small(settings: Settings, engines: Engines) -> AsyncIterator[Services]:
    """Services with its own small model, that is given little at a time."""
    values = settings.model_dump(exclude_unset=True)
    given = load_settings(**{**values, "small_llm_model": "small", "memory_summary_chunk_tokens": 500})
    async with open_services(given, engines) as opened:
        yield opened


async def _talk(services: Services, count: int, length: int = 20) -> OpenTurn:
    turn = None
    for number in range(count):
        turn = await exchange(services.turns, f"question {number} {'x' * length}", f"answer {number}")
    assert turn is not None
    return turn


async def _covered(services: Services, turn: OpenTurn) -> int:
    summary = await services.summaries.store.get(DEFAULT_TENANT, turn.conversation_id)
    return summary.covered_message_count if summary else 0


@pytest.mark.settings(memory_summary_min_messages=20, memory_summary_update_delta=10)
async def test_a_conversation_is_summarised_from_twenty_messages_on(
    services: Services, model_server: ModelServer
) -> None:
    covered = []
    for number in range(1, 16):
        turn = await exchange(services.turns, f"question {number}", "answer")
        await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
        covered.append(await _covered(services, turn))
    assert covered == [*([0] * 9), *([14] * 5), 24], "the newest six are never covered"
    assert len(model_server.requests) == 2
    for number in range(5):
        long = await exchange(services.turns, f"{number} {'A long question. ' * 80}", "answer", session_id="long")
    await services.summaries.update(DEFAULT_TENANT, long.conversation_id)
    assert await _covered(services, long) == 4, "of long messages from ten on"
    defaults = Settings.model_fields
    assert defaults["memory_summary_min_messages"].default == 20
    assert defaults["memory_summary_update_delta"].default == 10


async def test_with_smaller_numbers_every_third_turn_makes_a_call(
    services: Services, model_server: ModelServer
) -> None:
    covered = []
    for number in range(1, 13):
        turn = await exchange(services.turns, f"question {number}", "answer")
        await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
        covered.append(await _covered(services, turn))
    # Of 2, 4, 6 … messages
    assert covered == [0, 0, 0, 0, 4, 4, 4, 10, 10, 10, 16, 16]
    assert len(model_server.requests) == 3


@pytest.mark.traced
async def test_an_increment_sees_the_old_summary_and_what_came_since_and_nothing_else(
    services: Services, model_server: ModelServer
) -> None:
    model_server.script(Reply(["Her dog is called Bruno."]), Reply(["Both."]))
    turn = await _talk(services, 5)
    await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
    broken = await services.turns.open(new_turn("And my cat?"))
    partial = TurnOutcome(status="partial", answer="Your cat is half", error={"code": "x"})
    await services.turns.end(broken, partial)
    await exchange(services.turns, "And a bird.", "A bird?")
    await _talk(services, 2)
    running = await services.turns.open(new_turn("not answered yet"))
    await services.summaries.update(DEFAULT_TENANT, running.conversation_id)
    _, text = model_server.requests[-1].prompt[1]
    today = f"{datetime.now(UTC):%A %Y-%m-%d}"  # by which “next month” becomes a date
    assert text.startswith(f"Old summary:\nHer dog is called Bruno.\n\nNew messages:\n[{today}]\nUser: question 2")
    assert "And my cat?" in text
    assert "half" not in text
    assert "not answered" not in text
    assert "A bird." not in text, "the newest six are not covered"
    assert "question 0" not in text


async def test_a_long_transcript_is_read_in_parts_that_are_never_read_again(
    small: Services, model_server: ModelServer
) -> None:
    model_server.default = lambda request: Reply([f"Summary {len(model_server.requests)}."])
    turn = await _talk(small, 40, length=100)
    await small.summaries.update(DEFAULT_TENANT, turn.conversation_id)
    first = len(model_server.requests)
    assert first > 3
    for received in model_server.requests:
        assert len(received.prompt[1][1]) < 500 * 5
        assert received.body["model"] == "small"
    assert "Summaries of the parts:\n1. Summary 1." in model_server.requests[-1].prompt[1][1]
    for _ in range(11):
        await _talk(small, 3)
        await small.summaries.update(DEFAULT_TENANT, turn.conversation_id)
    # Ten increments; then one call for the whole, and perhaps one for a part that has filled.
    assert len(model_server.requests) - first in (11, 12)


@pytest.mark.parametrize("bad", ["\x00", "word " * 3000])
async def test_a_bad_summary_is_asked_for_once_more_and_never_stored(
    services: Services, model_server: ModelServer, bad: str
) -> None:
    turn = await _talk(services, 5)
    model_server.script(Reply([bad]), Reply([bad]), Reply([bad]), Reply(["Good."]))
    with pytest.raises(BadModelOutput):
        await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
    assert (await _covered(services, turn), len(model_server.requests)) == (0, 2)


async def test_while_the_model_fails_the_old_summary_stays(services: Services, model_server: ModelServer) -> None:
    turn = await _talk(services, 5)
    await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
    await _talk(services, 3)
    model_server.script(Reply(status=500))
    with pytest.raises(ModelFailed):
        await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
    assert await _covered(services, turn) == 4


async def test_a_message_that_is_committed_while_the_model_thinks_is_not_missed(
    services: Services, model_server: ModelServer
) -> None:
    is_stored = threading.Event()

    def answer_when_it_is_stored(_: Received) -> Reply:
        is_stored.wait(60)
        return Reply(["They talk."])

    model_server.default = answer_when_it_is_stored
    turn = await _talk(services, 5)
    update = asyncio.create_task(services.summaries.update(DEFAULT_TENANT, turn.conversation_id))
    await model_server.asked()
    await say(services.database, turn, "from an import", START)
    is_stored.set()
    assert await update
    assert await _covered(services, turn) == 5
    assert "from an import" in model_server.requests[-1].prompt[1][1]


async def test_the_job_runs_behind_the_turn_once_for_a_burst(
    services: Services, model_server: ModelServer
) -> None:
    await _talk(services, 5)
    for number in range(3):
        turn = await services.turns.open(new_turn(f"again {number}"))
        ended = TurnOutcome(status="completed", answer="yes", summary_due=True)
        await services.turns.end(turn, ended)
    assert await statuses(services.database, SUMMARISE) == ["todo"]
    services.jobs.start_worker()
    await until(lambda: has_ended(services.database, SUMMARISE, "succeeded"))
    assert await _covered(services, turn) == 10
    assert len(model_server.requests) == 1


Step = tuple[str, int, bool]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(-40, 40), st.booleans()),
        st.tuples(st.sampled_from(["turn", "summarise", "summarise twice", "shrink"]), st.just(0), st.just(True)),
    ),
    min_size=10,
    max_size=45,
)


@limits(max_examples=5, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
@example(steps=[("turn", 0, True)] * 6 + [("summarise", 0, True), ("say", -40, True), ("turn", 0, True)] * 3)
async def test_every_message_is_in_the_summary_or_in_the_history(
    services: Services, model_server: ModelServer, steps: list[Step]
) -> None:
    """Over histories with equal contents and times, incomplete messages, and commits out of order."""
    await _check_coverage(services, model_server, steps)


async def _check_coverage(services: Services, model_server: ModelServer, steps: list[Step]) -> None:
    # The stand-in's summary is what it was given: so we can look what it covers.
    model_server.default = lambda request: Reply([_ids_in(request.prompt[1][1]) or "nothing"])
    key = f"s-{datetime.now(UTC).timestamp()}"
    opened = await exchange(services.turns, "m0", "ok", session_id=key)
    said: list[str] = []
    point = None
    for number, (what, second, whole) in enumerate(steps, 1):
        budget = None
        if what == "say":
            at = START + timedelta(seconds=second // 2) if second < 0 else datetime.now(UTC)
            await say(services.database, opened, f"<{number}>", at, completed=whole)
            if whole:
                said.append(f"<{number}>")
        elif what == "shrink":
            budget = 60
        elif what.startswith("summarise"):
            updates = 2 if "twice" in what else 1
            await asyncio.gather(
                *(services.summaries.update(DEFAULT_TENANT, opened.conversation_id) for _ in range(updates))
            )
        visible, epoch = await _look(services, key, budget)
        seen = epoch["summary"] + "".join(visible)
        assert [text for text in said if text not in seen] == []
        summary = await services.summaries.store.get(DEFAULT_TENANT, opened.conversation_id)
        if summary:
            assert point is None or summary.through >= point, "the point never goes back"
            point = summary.through


def _ids_in(text: str) -> str:
    return "".join(part.split(">")[0].join("<>") for part in text.split("<")[1:])


async def _look(services: Services, key: str, budget: int | None) -> tuple[list[str], Epoch]:
    turn = await services.turns.open(new_turn("m", session_id=key))
    shown = await shown_conversation(services, turn, max_context_tokens=budget)
    ended = TurnOutcome(status="completed", answer="ok", epoch=shown.epoch)
    await services.turns.end(turn, ended)
    return [message["content"] for message in shown.history], shown.epoch
