"""Where texts speak of what is to be forgotten, and what is left of them without it."""

import pytest

from services.text.mentions import Subject, known_in, without, worth_keeping


@pytest.mark.parametrize(
    ("text", "named", "left"),
    [
        ("I'm allergic to peanuts and cats.", "the cats", "I'm allergic to peanuts."),
        ("I'm allergic to peanuts and cats.", "I'm allergic to peanuts", "I'm allergic to cats."),
        ("I'm allergic to peanuts and cats.", "I'm allergic to peanuts and cats", ""),
        ("We visited Riga, Vilnius or Tartu.", "we visited Vilnius", "We visited Riga or Tartu."),
        ("I like tea and hate cricket", "that I hate cricket", "I like tea"),
        ("I was diagnosed with diabetes and take insulin", "my diabetes", ""),
        ("I play chess and golf. I live in Oslo.", "I play golf", "I play chess. I live in Oslo."),
        ("I play chess and golf.", "I live in Oslo", None),
    ],
)
def test_of_a_list_only_the_member_that_is_named_goes(text: str, named: str, left: str | None) -> None:
    assert without(text, Subject.of(named)) == left


@pytest.mark.parametrize(
    ("item", "named", "is_known"),
    [
        ("过敏：虾", "我对虾过敏", True),
        ("對蝦過敏", "我对虾过敏", True),
        ("过敏：蟹", "我对虾过敏", False),
        ("爱吃虾", "我对虾过敏", False),
        ("怕狗", "我怕蛇", False),
        ("养了三只猫", "我对猫过敏", False),
    ],
)
def test_chinese_that_is_cut_into_other_words_is_found_by_its_characters(
    item: str, named: str, is_known: bool
) -> None:
    assert known_in([item], Subject.of(named)) == ([item] if is_known else [])


@pytest.mark.parametrize(
    ("text", "named", "left"),
    [
        ("我儿子小宇在北京读大学，对花粉过敏。", "我儿子过敏", "我儿子小宇在北京读大学"),
        ("我儿子对花粉过敏，喜欢下围棋。", "我儿子过敏", "喜欢下围棋。"),
        ("我爸爸血压高，每天要吃药。", "我爸爸血压高", ""),
    ],
)
def test_of_a_person_only_the_matter_that_is_named_goes(text: str, named: str, left: str) -> None:
    assert without(text, Subject.of(named)) == left


@pytest.mark.parametrize("text", ["Sophie came over.", "Andrew is my cousin.", "Soup calms me."])
def test_a_name_is_no_connective(text: str) -> None:
    assert worth_keeping(text) == text


def test_a_connective_goes_from_the_beginning_of_what_is_left() -> None:
    assert worth_keeping("but, we stayed in Rome") == "we stayed in Rome"
