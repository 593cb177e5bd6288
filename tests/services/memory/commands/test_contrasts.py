"""What a message sets against each other."""

import pytest

from services.memory.commands.contrasts import Contrast, contrasts
from services.memory.commands.recogniser import recognise


@pytest.mark.parametrize(
    ("message", "old", "new"),
    [
        ("It's not Tamsin, it's Tegan.", "Tamsin", "Tegan"),
        ("My aunt isn't from Naples, she's from Bari.", "Naples", "Bari"),
        ("We're reading Emma, not Persuasion. I was a chapter ahead.", "Persuasion", "Emma"),
        ("The course is at the town hall and not the library.", "library", "town hall"),
        ("I don't work for Aldwych any more, since Monday I'm with Tamar Boats.", "Aldwych", "Tamar Boats"),
        ("It's the oboe she plays, not the flute.", "flute", "oboe"),
        ("The drill isn't in the cellar, it's in the garage and you may take it.", "cellar", "garage"),
        ("展览不在宁波，在绍兴。", "宁波", "绍兴"),
        ("我学的不是德语，是意大利语。", "德语", "意大利语"),
        ("是在东门集合，不是西门。", "西门", "东门集合"),
        ("我师傅姓佟不姓童。", "童", "佟"),
    ],
)
def test_a_contrast_names_what_does_not_hold_and_what_does(message: str, old: str, new: str) -> None:
    assert contrasts(message) == [Contrast(old, new)]


@pytest.mark.parametrize(
    "message",
    [
        "Is it Tuesday, not Monday?",
        "I don't want to block him because of the children, but I can't sleep.",
        "Don't forget to switch off the dishwasher, it's loud.",
        "I like tea and I don't like coffee.",
        "我今天不想出门，想在家看书。",
        "他不吃辣，给我推荐几个菜。",
    ],
)
def test_a_denial_without_a_value_beside_it_is_none(message: str) -> None:
    assert contrasts(message) == []


def test_what_an_order_sets_against_each_other_is_its_material() -> None:
    assert recognise("Write it in French, not German.").commands == ()
