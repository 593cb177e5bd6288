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


FACTS = st.builds(
    "My {} is called {}.".format, st.sampled_from(["cat", "dog", "boat"]), st.sampled_from(["Mimi", "Rex", "阿猫"])
)


@given(
    old=st.lists(FACTS, max_size=4, unique=True),
    new=st.lists(st.tuples(FACTS, st.booleans()), max_size=6),
    most=st.integers(0, 80),
)
def test_it_is_made_of_whole_statements_in_their_order(
    old: list[str], new: list[tuple[str, bool]], most: int
) -> None:
    messages: list[Said] = [("user", f"{fact} Or not?") if mine else ("assistant", fact) for fact, mine in new]
    told = list(dict.fromkeys([*old, *(fact for fact, mine in new if mine)]))
    found = extract(" ".join(old), messages, "en", most)
    kept = [fact for fact in told if fact in found]
    assert found == " ".join(kept)
    if count_tokens(" ".join(told)) <= most:
        assert kept == told


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


def test_what_was_known_stands_before_what_is_new_and_once() -> None:
    messages: list[Said] = [("user", "I moved to Lijiang. I have a cat.")]
    assert extract("I live in Dali. I have a cat.", messages, "en", 100) == (
        "I live in Dali. I have a cat. I moved to Lijiang."
    )


def test_old_facts_stay_while_they_fit_and_the_least_telling_go_first() -> None:
    summary = ""
    facts = [f"My {thing} is called {name}." for thing, name in (("cat", "Mimi"), ("dog", "Rex"), ("boat", "Ada"))]
    for fact in facts:
        summary = extract(summary, [("user", f"{fact} Yes yes. Is that so?")], "en", 100)
    assert all(fact in summary for fact in facts)
    tight = extract(summary, [("user", "Yes.")], "en", count_tokens(" ".join(facts)))
    assert tight == " ".join(facts)


def test_nothing_said_is_nothing() -> None:
    assert extract("", [], "en", 100) == ""
    assert extract("", [("assistant", "Hello.")], "zh", 100) == ""


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
