from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from services.llm.request_form import ContextMessage, compatible
from services.llm.token_estimates import TokenEstimator
from state.prompt import HistoryMessage, Passage
from tests.support.prompts import prompt_of
from tests.support.turns import epoch, passage_of

TOPICS = [{"title": "Holiday", "summary": "They go to Lisbon."}, {"title": "Dog", "summary": "Bruno is ill."}]


def _shown(
    role: Literal["user", "assistant"],
    content: str,
    parts: list[dict[str, Any]] | None = None,
    message_id: str = "m",
) -> HistoryMessage:
    return HistoryMessage(
        message_id=message_id,
        role=role,
        content=content,
        parts=parts or [],
        token_count=7,
        created_at=datetime.now(UTC),
    )


def _passage(text: str, position: int = 0) -> Passage:
    return passage_of(text, position=position, score=1.0 / (position + 1))


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


def test_topics_stand_in_the_place_of_the_summary_oldest_first() -> None:
    prompt = prompt_of(epoch=epoch(strategy="topics", topics=TOPICS))
    assert prompt.messages[1].text.endswith("- Holiday: They go to Lisbon.\n- Dog: Bruno is ill.\n</memory>")
    assert "topics" in prompt.report["tokens"]


def test_one_prompt_has_headings_in_one_language() -> None:
    prompt = prompt_of(epoch=epoch(summary="The user has a cat."), message="你好")
    assert prompt.messages[1].text.startswith("这段对话更早的内容")


def test_the_share_of_the_turn_before_is_measured_and_grows_at_the_end_only() -> None:
    history = [_shown("user", "a" * 400), _shown("assistant", "b" * 400)]
    first = prompt_of(history=history, message="c")
    assert first.report["prefix"] == {"tokens": 0, "share": 0.0}
    longer = [*history, _shown("user", "c"), _shown("assistant", "d" * 40)]
    second = prompt_of(epoch=first.epoch, history=longer, message="e")
    stable = first.report["tokens"]["system"] + first.report["tokens"]["history"]
    assert second.report["prefix"]["tokens"] == stable
    assert second.report["prefix"]["share"] == pytest.approx(
        stable / (second.report["tokens"]["system"] + second.report["tokens"]["history"]), abs=1e-4
    )
    assert second.messages[: len(first.messages) - 1] == first.messages[:-1]


def test_another_system_prompt_shares_nothing() -> None:
    first = prompt_of(history=[_shown("user", "a")])
    second = prompt_of(epoch=first.epoch, history=[_shown("user", "a")], system_prompt="Be brief.")
    assert second.report["prefix"]["tokens"] == 0


def test_another_summary_shares_the_system_prompt_alone() -> None:
    first = prompt_of(epoch=epoch(summary="Old."), history=[_shown("user", "a")])
    second = prompt_of(epoch={**first.epoch, "summary": "New."}, history=[_shown("user", "a")])
    assert second.report["prefix"]["tokens"] == first.report["tokens"]["system"]


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


def test_the_system_prompt_the_summary_and_the_message_stay_whatever_the_budget() -> None:
    prompt = prompt_of(
        budget=10, system_prompt="s" * 400, epoch=epoch(summary="z" * 400), history=[_shown("user", "a")]
    )
    assert [message.text[-1] for message in prompt.messages] == ["s", ">", "o"]
    assert prompt.report["dropped"][0]["items"] == 1


@given(
    st.lists(st.integers(1, 400), max_size=30),
    st.lists(st.integers(1, 400), max_size=6),
    st.integers(500, 3000),
)
def test_nothing_is_dropped_needlessly_and_the_newest_stay(
    lengths: list[int], passage_lengths: list[int], budget: int
) -> None:
    history = [_shown("user", "w" * length, message_id=str(index)) for index, length in enumerate(lengths)]
    passages = [_passage("p" * length, position) for position, length in enumerate(passage_lengths)]
    prompt = prompt_of(history=history, passages=passages, budget=budget)
    shown = [message for message in prompt.messages[:-1] if isinstance(message, HumanMessage)]
    dropped = [entry for entry in prompt.report["dropped"] if entry["section"] == "history"]
    assert [message.text for message in shown] == ["w" * length for length in lengths[len(lengths) - len(shown) :]]
    assert sum(entry["items"] for entry in dropped) == len(history) - len(shown)
    size = sum(tokens for name, tokens in prompt.report["tokens"].items() if name != "message")
    assert size <= budget or not shown
    if dropped:
        last = lengths[len(lengths) - len(shown) - 1]
        assert size + TokenEstimator().count("w" * last) + 4 > budget


def test_the_time_ends_the_tail() -> None:
    prompt = prompt_of(
        passages=[_passage("Holidays: 30 days.")],
        time_note="It is noon.",
        epoch=epoch(persona_card="x"),
    )
    tail = prompt.messages[-2].text
    assert tail.index("Holidays") < tail.index("It is noon.")
    assert list(prompt.report["tokens"]) == [
        "system", "core_memory", "history", "knowledge", "time", "message",
    ]  # fmt: skip
    assert prompt.messages[1].text == "<memory>\nx\n</memory>"


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
