"""What a conversation repeats of what was said off the record in it is remembered nowhere either."""

from datetime import UTC, datetime

import pytest

from services.memory.commands.off_record import repetition_off_record
from state.conversation import ConversationState
from state.memory import MemoryChange, PlannedChange
from state.prompt import HistoryMessage
from tests.support.turns import state

pytestmark = [pytest.mark.anyio, pytest.mark.unit]

ENGLISH = "Off the record, I had a row with my manager over the budget."
CHINESE = "这个别记：我打算春节以后辞职。"


def _history(text: str, *, off_record: bool = True) -> list[HistoryMessage]:
    return [
        HistoryMessage(
            message_id="m",
            role="user",
            content=text,
            parts=[],
            token_count=9,
            created_at=datetime(2026, 11, 1, tzinfo=UTC),
            off_record=off_record,
        )
    ]


def _state(said: str, message: str) -> ConversationState:
    return state(history=_history(said), message=message, prompt_language="zh" if said == CHINESE else "en")


async def _left(said: str, message: str, answer: str) -> tuple[str | None, str | None] | None:
    """What memory keeps of message and answer; None where the turn is remembered as usual."""
    planned = await repetition_off_record(_state(said, message), answer, message_id="q", answer_id="a")
    if not planned:
        return None
    assert planned[0]["own"] == "off the record"
    texts = {each["message_id"]: each["memory_text"] for each in planned[0]["messages"]}
    return texts["q"], texts["a"]


@pytest.mark.parametrize(
    ("said", "message", "answer"),
    [
        (ENGLISH, "What did I say about the row with my manager?", "That it was over the budget."),
        (CHINESE, "我说过什么时候辞职来着？", "你说打算春节以后辞职。"),
    ],
)
async def test_a_question_about_it_goes_with_its_answer(said: str, message: str, answer: str) -> None:
    assert await _left(said, message, answer) == (None, None)


@pytest.mark.parametrize(
    ("said", "message", "answer", "left"),
    [
        (ENGLISH, "What should I cook tonight?", "Soup is quick. It calms after a row.", "Soup is quick."),
        (CHINESE, "今晚做什么菜好？", "番茄汤很快。想想辞职以后的日子吧。", "番茄汤很快。"),
    ],
)  # fmt: skip
async def test_of_an_answer_what_repeats_it_is_left_out(said: str, message: str, answer: str, left: str) -> None:
    assert await _left(said, message, answer) == (message, left)


@pytest.mark.parametrize(
    ("said", "message", "answer"),
    [(ENGLISH, "My sister lives in Turin.", "How nice!"), (CHINESE, "我妹妹住在都灵。", "真不错！")],
)
async def test_what_has_nothing_to_do_with_it_is_remembered(said: str, message: str, answer: str) -> None:
    assert await _left(said, message, answer) is None


async def test_what_only_repeated_it_adds_nothing_to_what_is_off_the_record() -> None:
    own = _state(ENGLISH, "Which film about a train was it?")
    own["history"] = _history("Which row did I tell you about, on the train?")
    assert await repetition_off_record(own, "The one about a train.", message_id="q", answer_id="a") == []


async def test_a_turn_that_is_left_out_anyway_is_left_out_once() -> None:
    own = _state(ENGLISH, "Forget the row with my manager.")
    change = MemoryChange(kind="forget", summary="-", operation_id="1", items=[])
    own["memory_plan"] = [
        PlannedChange(
            change=change, target="", messages=[], episodes=[], items=[], written=[], own="leave out",
            own_text=None, gives_away="", reaches_shared=False,
        )
    ]  # fmt: skip
    assert await repetition_off_record(own, "Done: the row is forgotten.", message_id="q", answer_id="a") == []
