"""Which members of a list go when they are named, and what stays of it."""

import pytest

from services.memory.commands.members import without_named


@pytest.mark.parametrize(
    ("text", "named", "left"),
    [
        ("I can't stand olives, beetroot or kale.", "beetroot", "I can't stand olives or kale."),
        ("I can't stand olives, beetroot or kale.", "the olives", "I can't stand beetroot or kale."),
        ("I play the oboe and the bassoon.", "bassoon", "I play the oboe."),
        ("我不吃香菜、折耳根和苦瓜。", "苦瓜", "我不吃香菜、折耳根。"),
        ("我开了爱奇艺、B站大会员和网易云黑胶。", "爱奇艺那个", "我开了B站大会员和网易云黑胶。"),
    ],
)
def test_a_member_that_is_named_goes_and_the_others_stay(text: str, named: str, left: str) -> None:
    found = without_named(text, named, "")
    assert found is not None
    assert found.text == left


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("I play the oboe and the bassoon.", "oboe and bassoon"),
        ("I play the oboe and the bassoon.", "my instruments"),
        ("I live in Leeds, work in York and hate trains.", "York"),
        ("I live with Tom and work at Shell.", "Tom"),
        ("I live in Leeds.", "Leeds"),
    ],
)
def test_what_is_no_list_or_is_named_as_a_whole_is_left_to_others(text: str, named: str) -> None:
    assert without_named(text, named, "") is None


def test_a_member_that_is_to_stay_does_not_go() -> None:
    found = without_named("I play the oboe, the bassoon and the flute.", "oboe and flute", "flute")
    assert found is not None
    assert found.text == "I play the bassoon and the flute."
