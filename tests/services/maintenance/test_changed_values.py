"""A statement that gives another number, day or colour for the same thing contradicts the earlier one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.maintenance.changed_values import gives_another_value


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The rent is 900 euros", "Rent: 950 euros from the landlord's letter"),
        ("The ferry to Oban leaves at 8:15", "The Oban ferry leaves at 9:40 from pier 2"),
        ("Choir practice is on Tuesdays", "Choir practice is on Thursdays"),
        ("The garage door is green", "The garage door is blue"),
        ("房租每月两千", "房租每月2300"),
        ("牙医约在3月5日", "牙医改到3月12日"),
        ("每周三上陶艺课", "陶艺课换成每周五"),
    ],
)
def test_another_value_of_the_same(older: str, newer: str) -> None:
    assert gives_another_value(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Choir practice is on Tuesdays", "Choir practice is also on Thursdays"),
        ("Her brother turns 12 in May", "Her sister turns 15 in May"),
        ("The user ran 10 km in May", "The user ran 12 km in June"),
        ("The rent is 900 euros", "The deposit is 950 euros"),
        ("The dentist is on 3 May at 9:30", "The dentist is on May 3 at 9:30"),
        ("The vet is on 4 June at 2 pm", "The vet is on June 4th, 14:00"),
        ("The course costs $1,200", "The course costs 1200 dollars"),
        ("Father's name day is 3 June", "Father-in-law's name day is 5 June"),
        ("自行车花了两千六", "自行车2600元"),
        ("6月4日下午两点半看兽医", "6月4号14:30看兽医"),
        ("Ticket 4471 is for the opera", "Ticket 4472 is for the parking"),
        ("The garage door is green", "The garage door sticks"),
        ("房租每月两千", "房租每月2000"),
        ("女儿周三学琴", "儿子周五学琴"),
        ("去年跑了10公里", "今年跑了12公里"),
        ("房租每月两千", "水费每月一百"),
    ],
)
def test_what_may_both_hold(older: str, newer: str) -> None:
    assert not gives_another_value(older, newer)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_texts_are_compared(older: str, newer: str) -> None:
    assert not (gives_another_value(older, newer) and older == newer)
