"""Which statements are meant where the user names them in other words, and what is left of their messages."""

import pytest

from services.memory.commands.candidates import CandidateScorer

_TOLD = [
    "I make 74k a year at the dockyard.",
    "My ex-husband is called Graham.",
    "I'm on 30 mg of citalopram since August.",
    "My son got suspended for vaping.",
    "I can't eat shellfish.",
    "The choir meets on Fridays.",
]
_TOLD_IN_CHINESE = ["我月薪税后一万七千五。", "我最近在吃舍曲林。", "我对芒果过敏。", "周末去合唱团。"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("how much I earn", 0),
        ("my ex", 1),
        ("my medication", 2),
        ("the suspension", 3),
    ],
)
def test_the_statement_that_stands_out_is_meant(words: str, meant: int) -> None:
    assert CandidateScorer(words).meant(_TOLD) == [meant]


@pytest.mark.parametrize(("words", "meant"), [("工资", 0), ("吃药", 1), ("芒果", 2)])
def test_chinese_is_meant_by_its_concepts_too(words: str, meant: int) -> None:
    assert CandidateScorer(words).meant(_TOLD_IN_CHINESE) == [meant]


@pytest.mark.parametrize("words", ["", "my yacht", "游艇"])
def test_nothing_is_meant_where_nothing_comes_near(words: str) -> None:
    assert CandidateScorer(words).meant([*_TOLD, *_TOLD_IN_CHINESE]) == []


def test_nothing_is_meant_where_several_come_as_near() -> None:
    told = ["Biscuit hates the vacuum.", "Biscuit is nine.", "Biscuit sleeps a lot.", "Biscuit eats tuna."]
    assert CandidateScorer("Biscuit and the doorbell").meant(told) == []


def test_what_goes_on_about_it_goes_too_and_what_is_to_stay_stays() -> None:
    gone = ["My ex is called Graham. "]
    text = "My ex is called Graham. He lives in Leith. The choir meets on Fridays."
    assert CandidateScorer("my ex").left_of(text, gone, CandidateScorer("")) == "The choir meets on Fridays."
    passport = "My passport number is 553201877, expires 2031."
    assert (
        CandidateScorer("passport number").left_of(passport, [passport], CandidateScorer("the expiry date"))
        == "expires 2031."
    )
