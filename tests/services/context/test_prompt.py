from datetime import UTC, datetime
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from services.llm.request_form import ContextMessage, compatible
from state.prompt import HistoryMessage, Passage
from tests.support.prompts import prompt_of
from tests.support.turns import epoch, passage_of


def _shown(
    role: Literal["user", "assistant"],
    content: str,
    parts: list[dict[str, Any]] | None = None,
    message_id: str = "m",
) -> HistoryMessage:
    return HistoryMessage(
        message_id=message_id, role=role, content=content, parts=parts or [], created_at=datetime.now(UTC)
    )


def _passage(text: str, position: int = 0) -> Passage:
    return passage_of(text, position=position, score=0.9 - position / 20)


def test_the_order_is_from_what_never_changes_to_what_always_does() -> None:
    prompt = prompt_of(
        epoch=epoch(summary="They have a dog.", summary_version=3),
        history=[_shown("user", "a"), _shown("assistant", "b")],
        passages=[_passage("Holidays: 30 days.")],
        after=[AIMessage("Let me see.")],
    )
    assert [(type(message), message.text[:12]) for message in prompt.messages] == [
        (SystemMessage, "Be kind."),
        (SystemMessage, "Earlier in t"),
        (HumanMessage, "a"),
        (AIMessage, "b"),
        (ContextMessage, "From the kno"),
        (HumanMessage, "Hello"),
        (AIMessage, "Let me see."),
    ]
    assert list(prompt.report["tokens"]) == ["system", "summary", "history", "knowledge", "message"]


def test_over_the_budget_passages_go_before_history_and_two_stay() -> None:
    passages = [_passage("x" * 800, position) for position in range(5)]
    history = [_shown("user", "y" * 400, message_id=f"m{number}") for number in range(8)]
    report = prompt_of(budget=1000, passages=passages, history=history).report
    knowledge = [entry for entry in report["dropped"] if entry["section"] == "knowledge"]
    assert [entry["position"] for entry in knowledge] == [4, 3, 2]
    (dropped,) = (entry for entry in report["dropped"] if entry["section"] == "history")
    assert (dropped["first_message_id"], dropped["reason"]) == ("m0", "over the budget")
    assert dropped["last_message_id"] == f"m{dropped['items'] - 1}"
    assert sum(size for name, size in report["tokens"].items() if name != "message") <= 1000


def test_passages_far_behind_the_best_are_left_out_and_counted_but_not_those_just_given() -> None:
    scored = [passage_of(f"p{at}", position=at, score=score) for at, score in enumerate((0.5, 0.95, 0.8, 0.6))]
    prompt = prompt_of(passages=scored)
    assert [each in str(prompt.messages) for each in ("p0", "p1", "p2", "p3")] == [True, True, True, False]
    assert {"section": "knowledge", "items": 1, "reason": "far behind the best"} in prompt.report["dropped"]


def test_notes_go_last_of_all_and_as_a_whole() -> None:
    values: dict[str, Any] = {"history": [_shown("user", "a " * 50)], "time_note": "It is noon."}
    prompt = prompt_of(budget=30, **values)
    assert [entry["section"] for entry in prompt.report["dropped"]] == ["history"]
    assert "time" in prompt.report["tokens"]
    prompt = prompt_of(budget=5, **values)
    assert [entry["section"] for entry in prompt.report["dropped"]] == ["time", "history"]
    assert [type(message) for message in prompt.messages] == [SystemMessage, HumanMessage]


def test_in_the_compatible_form_a_prompt_begins_with_all_of_the_one_before_but_its_last_message() -> None:
    known = epoch(core_memory={"human": {"name": "Wang"}}, summary="They talk.", summary_version=1)
    said = [_shown("user", "Hello"), _shown("assistant", "Hi")]
    before = prompt_of(epoch=known, history=said, message="Where is it?", time_note="It is noon.")
    more = [*said, _shown("user", "Where is it?"), _shown("assistant", "Here.")]
    after = prompt_of(epoch=before.epoch, history=more, message="Thanks.", time_note="It is one.")
    first, second = compatible(before.messages), compatible(after.messages)
    assert second[: len(first) - 1] == first[:-1]
    assert "noon" not in str(second), "what belonged to the message before is not stored with it"
    assert after.report["prefix"]["tokens"] == sum(
        before.report["tokens"][name] for name in ("system", "core_memory", "summary", "history")
    )
