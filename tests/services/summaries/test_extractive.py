"""Summaries without a model: the user's own statements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm.token_estimates import count_tokens
from services.summaries.prompts import Said
from services.summaries.writer import extract, title_from
from services.text.language import Language

PIECES = st.sampled_from(
    [
        "I live in Dali",
        "我住在大理",
        "the train leaves at nine",
        "五点吗",
        "x" * 90,
        "cat",
        "猫",
        "\n",
        " ",
        "?",
        "。",
        ".",
        "！",
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
MESSAGES = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), TEXTS), max_size=8)
LANGUAGES = st.sampled_from(["zh", "en"])


@given(summary=TEXTS, messages=MESSAGES, language=LANGUAGES, most=st.integers(0, 120))
def test_it_is_never_over_the_limit(summary: str, messages: list[Said], language: Language, most: int) -> None:
    assert count_tokens(extract(summary, messages, language, most)) <= most


def test_statements_are_kept_and_questions_and_answers_are_not() -> None:
    messages: list[Said] = [
        ("user", "I live in Dali. Is it cold there? My cat is called Mimi!"),
        ("assistant", "It is mild all year."),
        ("user", "Which train"),
        ("user", "What is new？"),
    ]
    assert extract("", messages, "en", 100) == "I live in Dali. My cat is called Mimi! Which train"
    chinese: list[Said] = [("user", "我住在大理。那里冷吗？我的猫呢\n它叫咪咪。")]
    assert extract("", chinese, "zh", 100) == "我住在大理。它叫咪咪。"


@pytest.mark.parametrize(
    ("messages", "title"),
    [
        ([("assistant", "Welcome."), ("user", " A trip\nto  Dali ")], "A trip to Dali"),
        ([("user", "猫" * 40)], "猫" * 40),
        ([("user", "猫" * 41)], "猫" * 39 + "…"),
        ([("assistant", "Welcome.")], "…"),
        ([], "…"),
    ],
)
def test_a_title_is_the_beginning_of_what_the_user_says(messages: list[Said], title: str) -> None:
    assert title_from(messages) == title
