from datetime import UTC, datetime, timedelta

import pytest

from services.search.hits import Unit
from services.search.selection import newer_versions
from services.text.tokenizer import terms

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def units(*texts: str, by_assistant: bool = False) -> list[Unit]:
    """Units, each said a day after the one before."""
    return [
        Unit(str(at), str(at), NOW + timedelta(days=at), text, by_assistant=by_assistant)
        for at, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("Where is the office?", "The office is on Mill Lane.", "The office is on Harbour Road."),
        ("Who leads the choir?", "The leader of the choir is Ruth.", "The leader of the choir is Paul Meyer."),
        ("例会在哪天？", "例会定在每周三下午。", "例会定在每周五下午。"),
    ],
)
def test_of_statements_that_differ_in_one_value_the_newer_is_known(question: str, older: str, newer: str) -> None:
    asked = terms(question)
    assert newer_versions(units(older, newer), asked) == {0: 1}


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("Where is the office?", "The office is on Mill Lane.", "The bakery is on Harbour Road."),
        ("Where is the office?", "The office is on Mill Lane.", "The bakery is on Mill Lane."),
        ("Where was Ann born?", "Ann was born in Bath.", "Tom was born in York."),
    ],
)
def test_statements_about_something_else_are_no_versions(question: str, one: str, other: str) -> None:
    assert newer_versions(units(one, other), terms(question)) == {}


def test_a_long_text_is_no_version_of_a_statement() -> None:
    long = "The office is on Elm Row. " + "We walked there and back. " * 30
    assert newer_versions(units("The office is on Mill Lane.", long), terms("Where is the office?")) == {}


def test_what_the_assistant_says_is_no_version() -> None:
    found = units("The office is on Mill Lane.", "The office is on Elm Row.", by_assistant=True)
    assert newer_versions(found, terms("Where is the office?")) == {}
