from datetime import UTC, datetime
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from services.context.prompt import ContextBudget, build_prompt
from state.conversation import HistoryMessage


def _shown(
    role: Literal["user", "assistant"], content: str, parts: list[dict[str, Any]] | None = None
) -> HistoryMessage:
    return HistoryMessage(
        message_id="m",
        role=role,
        content=content,
        parts=parts or [],
        token_count=7,
        created_at=datetime.now(UTC),
    )


def _build(**values: Any) -> Any:
    given: dict[str, Any] = {
        "budget": ContextBudget(4000),
        "system_prompt": "Be kind.",
        "history": [],
        "history_dropped": 0,
        "passages": [],
        "message": "Hello",
        "images": [],
        "after": [],
    }
    return build_prompt(**{**given, **values})


def test_the_message_comes_last_and_the_system_prompt_first() -> None:
    prompt = _build(history=[_shown("user", "a"), _shown("assistant", "b")])
    assert [type(message) for message in prompt.messages] == [
        SystemMessage,
        HumanMessage,
        AIMessage,
        HumanMessage,
    ]
    assert prompt.messages[-1].text == "Hello"


def test_what_the_model_said_in_this_turn_follows_the_message() -> None:
    asked = AIMessage("", tool_calls=[{"name": "t", "args": {}, "id": "1"}])
    assert _build(after=[asked]).messages[-1] is asked


def test_the_beginning_stays_the_same_when_the_conversation_grows() -> None:
    history = [_shown("user", "a"), _shown("assistant", "b")]
    shorter = _build(history=history, message="c").messages
    longer = _build(history=[*history, _shown("user", "c"), _shown("assistant", "d")], message="e").messages
    assert longer[: len(shorter)] == shorter


def test_images_of_earlier_messages_are_shown_again() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    prompt = _build(history=[_shown("user", "Look", [part])])
    assert prompt.messages[1].content == [{"type": "text", "text": "Look"}, part]


def test_the_report_counts_every_section() -> None:
    passage = {"document": "d", "position": 0, "text": "text", "score": 1.0}
    report = _build(history=[_shown("user", "a")], passages=[passage], history_dropped=3).report
    assert set(report["tokens"]) == {"system", "history", "knowledge", "message"}
    assert report["tokens"]["history"] == 7
    assert report["dropped"] == [{"section": "history", "items": 3, "reason": "over the budget"}]
    assert _build().report["dropped"] == []


def test_a_system_prompt_over_the_budget_leaves_nothing_for_history() -> None:
    assert ContextBudget(10).for_history("x" * 1000) == 0
    assert 0 < ContextBudget(1000).for_history("x" * 1000) < 1000
