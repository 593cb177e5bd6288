from datetime import UTC, datetime

import pytest

from services.knowledge.following import followed
from state.prompt import HistoryMessage


def said(role: str, content: str) -> HistoryMessage:
    return HistoryMessage(
        message_id="m",
        role=role,  # type: ignore[typeddict-item]
        content=content,
        parts=[],
        token_count=1,
        created_at=datetime.now(UTC),
    )


HISTORY = [said("user", "Older"), said("user", "How many days of leave?"), said("assistant", "Thirty.")]


@pytest.mark.parametrize(
    "message",
    [
        "And when do they expire?",
        "what about sick leave?",
        "Is there a form for it?",
        "那病假呢？",
        "它多久要换？",
    ],
)
def test_a_message_that_names_little_itself_goes_on_from_the_one_before(message: str) -> None:
    assert followed(message, HISTORY) == "How many days of leave?"
    assert followed(message, []) is None


@pytest.mark.parametrize(
    "message",
    [
        "When does the greenhouse open?",
        "And I also wanted to tell you about my sister's wedding in Lisbon last summer, it was lovely",
        "植物园几点关门",
        "那我想给家里的阳台种一些玫瑰和月季，你觉得呢",
        "",
    ],
)
def test_one_that_says_what_it_is_about_stands_by_itself(message: str) -> None:
    assert followed(message, HISTORY) is None
