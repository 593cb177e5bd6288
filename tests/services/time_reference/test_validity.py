"""When a statement holds, in both languages."""

from datetime import date, datetime

import pytest

from services.time_reference.validity import Validity, timed

NOW = datetime(2026, 11, 22, 12)


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ("I rent this flat until March", Validity(None, date(2027, 3, 31))),
        ("I rented that flat until March", Validity(None, date(2026, 3, 31))),
        ("she works nights until next month", Validity(None, date(2026, 12, 31))),
        ("I have had a limp since last winter", Validity(date(2025, 12, 1), None)),
        ("I've been with the choir since 2019", Validity(date(2019, 1, 1), None)),
        ("from next month I drive a bus", Validity(date(2026, 12, 1), None)),
        ("starting in May I will teach maths", Validity(date(2027, 5, 1), None)),
        ("we lived in Ghent from 2011 to 2014", Validity(date(2011, 1, 1), date(2014, 12, 31))),
        ("I used to keep bees", Validity(None, None, ended=True)),
        ("I used to keep bees until 2021", Validity(None, date(2021, 12, 31), ended=True)),
        ("I am here until Friday", Validity(None, date(2026, 11, 27))),
        ("到三月为止我租这套房子", Validity(None, date(2027, 3, 31))),
        ("我租这套房子直到明年三月", Validity(None, date(2027, 3, 31))),
        ("从去年起我在学校教书", Validity(date(2025, 1, 1), None)),
        ("我从下个月开始开公交车", Validity(date(2026, 12, 1), None)),
        ("自2019年以来我一直在合唱团", Validity(date(2019, 1, 1), None)),
        ("我2011年到2014年住在根特", Validity(date(2011, 1, 1), date(2014, 12, 31))),
        ("我以前养蜜蜂", Validity(None, None, ended=True)),
        ("我曾经养蜜蜂", Validity(None, None, ended=True)),
        ("以前我养蜜蜂", Validity(None, None, ended=True)),
    ],
)
def test_a_statement_says_when_it_holds(said: str, holds: Validity) -> None:
    assert timed(said, NOW) == holds


@pytest.mark.parametrize(
    "mark", [" (until 2026-06)", " (until 2026-06-30)", "（到2026-06为止）", "（到2026-06-30为止）"]
)
@pytest.mark.parametrize("text", ["works at Acme", "在阿里上班"])
def test_the_end_that_filing_notes_is_read(text: str, mark: str) -> None:
    assert timed(text + mark, NOW) == Validity(valid_to=date(2026, 6, 30))


def test_a_year_as_the_end_is_read() -> None:
    assert timed("在阿里上班（到2026年为止）", NOW) == timed("works at Acme (until 2026)", NOW)
    assert timed("works at Acme (until 2026)", NOW).valid_to == date(2026, 12, 31)


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
    assert timed(said, NOW) == timed(said, datetime(2031, 2, 3)) == Validity()
