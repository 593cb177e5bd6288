"""What is left of a message when pieces of it are forgotten or replaced."""

import pytest

from services.memory.commands.pieces import pieces
from services.memory.commands.removal import without_pieces, without_value


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        (
            "My ex is called Graham. He lives in Leith. The choir meets on Fridays.",
            "My ex is called Graham. ",
            "The choir meets on Fridays.",
        ),
        ("I'm vegan, have been for years, and I row at weekends.", "I'm vegan, ", "I row at weekends."),
        (
            "I study moss, supervised by Dr Oyelaran, at Uppsala.",
            "supervised by Dr Oyelaran, ",
            "I study moss, at Uppsala.",
        ),
        ("My gran's address is 4 Elm Row. She is ninety.", "My gran's address is 4 Elm Row. ", ""),
        ("在苏州租房，室友是鼓手", "在苏州租房，", "室友是鼓手"),
    ],
)
def test_what_only_goes_on_about_a_piece_goes_with_it(text: str, gone: str, left: str) -> None:
    number = pieces(text).index(gone)
    assert without_pieces(text, {number}).strip(" ,，") == left


def test_what_follows_stays_where_only_a_detail_goes() -> None:
    text = "My gran's address is 4 Elm Row. She is ninety."
    assert without_pieces(text, {0}, only_a_detail=True) == "She is ninety."


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
