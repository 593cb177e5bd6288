"""When a statement holds, in both languages, and the mark that says so on any later day."""

from datetime import datetime

import pytest

from services.time_reference.validity import Validity, timed

NOW = datetime(2026, 11, 22, 12)


@pytest.mark.parametrize(
    ("said", "marked"),
    [
        ("I rent this flat until March", "I rent this flat (until 2027-03)"),
        ("I rented that flat until March", "I rented that flat (until 2026-03)"),
        ("she works nights until next month", "she works nights (until 2026-12)"),
        ("I have had a limp since last winter", "I have had a limp (since 2025-12)"),
        ("I've been with the choir since 2019", "I've been with the choir (since 2019)"),
        ("from next month I drive a bus", "I drive a bus (from 2026-12)"),
        ("starting in May I will teach maths", "I will teach maths (from 2027-05)"),
        ("we lived in Ghent from 2011 to 2014", "we lived in Ghent (2011 to 2014)"),
        ("I used to keep bees", "I keep bees (formerly)"),
        ("I used to keep bees until 2021", "I keep bees (until 2021)"),
        ("I am here until Friday", "I am here (until 2026-11-27)"),
        ("到三月为止我租这套房子", "我租这套房子（到2027-03为止）"),
        ("我租这套房子直到明年三月", "我租这套房子（到2027-03为止）"),
        ("从去年起我在学校教书", "我在学校教书（2025起）"),
        ("我从下个月开始开公交车", "我开公交车（2026-12起）"),
        ("自2019年以来我一直在合唱团", "我一直在合唱团（2019起）"),
        ("我2011年到2014年住在根特", "我住在根特（2011至2014）"),
        ("我以前养蜜蜂", "我养蜜蜂（以前）"),
        ("我曾经养蜜蜂", "我养蜜蜂（以前）"),
        ("以前我养蜜蜂", "我养蜜蜂（以前）"),
    ],
)
def test_a_statement_says_when_it_holds_as_a_mark_does(said: str, marked: str) -> None:
    found, read = timed(said, NOW), timed(marked, datetime(2031, 2, 3))
    assert (found.text, found.validity.valid_from, found.validity.valid_to) == (
        read.text,
        read.validity.valid_from,
        read.validity.valid_to,
    )
    assert found.validity.is_over(NOW.date()) == read.validity.is_over(NOW.date())
    assert found.validity != Validity()


@pytest.mark.parametrize(
    "said",
    [
        *(
            "I am used to the noise",
            "I come from Ghent",
            "I work from home",
            "the bus from Ghent leaves on Friday",
        ),
        *("I work from 9 to 5", "I have a dog", "I will see you on Monday", "through the garden"),
        *(
            "我来自根特",
            "我明天到北京",
            "我从北京搬到上海",
            "我三年以前去过日本",
            "我昨天去了上海",
            "原来你也喜欢茶",
        ),
    ],
)
def test_a_statement_that_does_not_say_when_it_holds_stays_as_it_is(said: str) -> None:
    assert timed(said, NOW) == timed(said, datetime(2031, 2, 3))
    assert (timed(said, NOW).text, timed(said, NOW).validity) == (said, Validity())


@pytest.mark.parametrize(
    "text", ["works (part time)", "likes Dune (2021)", "1984（2023）", "room (2026-13)", "茶（绿的）", "until"]
)
def test_other_brackets_are_no_marks(text: str) -> None:
    assert (timed(text, NOW).text, timed(text, NOW).validity) == (text, Validity())
