"""What is left of a message when pieces of it are forgotten or replaced."""

import pytest

from services.memory.commands.pieces import pieces
from services.memory.commands.removal import going_with, without_pieces, without_value
from services.memory.commands.targets import Sought


@pytest.mark.parametrize(
    ("text", "gone", "named", "left"),
    [
        (
            "My ex is called Graham. He lives in Leith. The choir meets on Fridays.",
            "My ex is called Graham. ",
            "my ex",
            "The choir meets on Fridays.",
        ),
        ("I'm vegan, have been for years, and I row at weekends.", "I'm vegan, ", "my diet", "I row at weekends."),
        ("我有哮喘。他在厦门当导游，二十岁。", "他在厦门当导游，", "他的工作", "我有哮喘。"),
        (
            "My gran's address is 4 Elm Row. She is ninety.",
            "My gran's address is 4 Elm Row. ",
            "my gran's address",
            "She is ninety.",
        ),
        (
            "I had asthma as a child. I live in Porto.",
            "I had asthma as a child. ",
            "my asthma",
            "I live in Porto.",
        ),
    ],
)
def test_what_only_goes_on_about_a_piece_goes_with_it(text: str, gone: str, named: str, left: str) -> None:
    sought = Sought("forget", f"Forget {named}", named, "")
    going = going_with(text, {pieces(text).index(gone)}, sought)
    assert without_pieces(text, going).strip(" ,，") == left


@pytest.mark.parametrize(
    ("text", "old", "new", "left"),
    [
        (
            "I swapped the cello for a viola. Which strings?",
            "cello",
            "viola",
            "I swapped for a viola. Which strings?",
        ),
        ("Lindgren left, so Ada runs the lab.", "Lindgren", "Ada", "so Ada runs the lab."),
        ("小米摔了，换了个荣耀", "小米", "荣耀", "换了个荣耀"),
    ],
)
def test_a_correction_is_kept_without_the_value_that_holds_no_more(
    text: str, old: str, new: str, left: str
) -> None:
    assert without_value(text, old, new) == left
