from datetime import date, datetime

import pytest

from services.time_reference.parse import parse
from tests.support.dates import NOW, said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yesterday's talk", "2026-11-20"),
        ("the day before yesterday", "2026-11-19"),
        ("2 days before yesterday", "2026-11-18"),
        ("last night", "2026-11-20"),
        ("twenty-three days ago", "2026-10-29"),
        ("a couple of days ago", "2026-11-19"),
        ("a few days ago", "2026-11-14..2026-11-19"),
        ("in 3 days", "2026-11-24"),
        ("three days from now", "2026-11-24"),
        ("the last 3 days", "2026-11-18..2026-11-21"),
        ("over the past few months", "2026-04-21..2026-11-21"),
        ("in the last week", "2026-11-14..2026-11-21"),
        ("the 3 previous days", "2026-11-18..2026-11-20"),
        ("next 2 days", "2026-11-22..2026-11-23"),
        ("last week", "2026-11-09..2026-11-15"),
        ("the week before last", "2026-11-02..2026-11-08"),
        ("two weeks ago on Tuesday", "2026-11-03"),
        ("last weekend", "2026-11-14..2026-11-15"),
        ("beginning of last week", "2026-11-09..2026-11-11"),
        ("the week of May 6th", "2026-05-04..2026-05-10"),
        ("week 12", "2026-03-16..2026-03-22"),
        ("week 1 of 2018", "2018-01-01..2018-01-07"),
        ("rest of the week", "2026-11-21"),
        ("on Monday", "2026-11-16"),
        ("last Friday night", "2026-11-20"),
        ("last week Tuesday", "2026-11-10"),
        ("this Monday", "2026-11-16"),
        ("two Mondays ago", "2026-11-09"),
        ("Friday the 13th", "2026-11-13"),
        ("Monday, February 16", "2026-02-16"),
        ("last month", "2026-10-01..2026-10-31"),
        ("half a year ago", "2026-05-01..2026-05-31"),
        ("in May", "2026-05-01..2026-05-31"),
        ("May 2023", "2023-05-01..2023-05-31"),
        ("2014, jun", "2014-06-01..2014-06-30"),
        ("next March", "2027-03-01..2027-03-31"),
        ("March of last year", "2025-03-01..2025-03-31"),
        ("the end of last month", "2026-10-21..2026-10-31"),
        ("earlier this month", "2026-11-01..2026-11-20"),
        ("later this month", "2026-11-21..2026-11-30"),
        ("the 20th of last month", "2026-10-20"),
        ("last weekend of July", "2026-07-25..2026-07-26"),
        ("at the weekend", "2026-11-21..2026-11-22"),
        ("the weekend of the 5th", "2026-11-07..2026-11-08"),
        ("on the 27.", "2026-10-27"),
        ("10-Apr-13", "2013-04-10"),
        ("12-11-10", "2012-11-10"),
        ("two days before May 3rd", "2026-05-01"),
        ("May 3rd", "2026-05-03"),
        ("December 24", "2025-12-24"),
        ("March the twenty-fourth nineteen sixty nine", "1969-03-24"),
        ("20 June of 91", "1991-06-20"),
        ("7 Sep 94", "1994-09-07"),
        ("2014-03-27", "2014-03-27"),
        ("3/27/2014", "2014-03-27"),
        ("23/05", "2026-05-23"),
        ("10/2014", "2014-10-01..2014-10-31"),
        ("last year", "2025-01-01..2025-12-31"),
        ("a year and a half ago", "2025-05-01..2025-05-31"),
        ("a year ago today", "2025-11-21"),
        ("in 2016", "2016-01-01..2016-12-31"),
        ("the year 2007", "2007-01-01..2007-12-31"),
        ("Q1", "2026-01-01..2026-03-31"),
        ("next summer", "2027-06-01..2027-08-31"),
        ("two coming weeks", "2026-11-22..2026-12-05"),
        ("this workweek", "2026-11-16..2026-11-20"),
        ("Q3 2024", "2024-07-01..2024-09-30"),
        ("H1 of 2019", "2019-01-01..2019-06-30"),
        ("25 November '98.", "1998-11-25"),
        ("Friday 3", "2026-07-03"),
        ("2018-Q2", "2018-04-01..2018-06-30"),
        ("3rd quarter 2017", "2017-07-01..2017-09-30"),
        ("last fall", "2025-09-01..2025-11-30"),
        ("in the summer of 2019", "2019-06-01..2019-08-31"),
        ("the 1990s", "1990-01-01..1999-12-31"),
        ("in the '70s", "1970-01-01..1979-12-31"),
        ("the nineteen sixties", "1960-01-01..1969-12-31"),
        ("21st century", "2000-01-01..2099-12-31"),
        ("year to date", "2026-01-01..2026-11-20"),
        ("between March and May", "2026-03-01..2026-05-31"),
        ("from November to March", "2026-11-01..2027-03-31"),
        ("March 3-7", "2026-03-03..2026-03-07"),
        ("from 3 to March 18, 1998", "1998-03-03..1998-03-18"),
        ("4 to 22 this month", "2026-11-04..2026-11-22"),
        ("between Tuesday and Thursday last week", "2026-11-10..2026-11-12"),
        ("from Dec 30 2024 to Jan 2", "2024-12-30..2025-01-02"),
        ("since Monday", "2026-11-16..2026-11-21"),
        ("from April to date", "2026-04-01..2026-11-21"),
        ("between now and tomorrow", "2026-11-21..2026-11-22"),
    ],
)
def test_a_time_is_read(text: str, expected: str) -> None:
    assert said(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "May I come in?",
        "I may 3 times",
        "we march on",
        "she will wed, then fall",
        "3 apples",
        "the first time, the 3rd floor",
        "every Monday",
        "version 2.10.3",
        "3/4 cup of milk",
        "open 24/7",
        "2013",
        "April 12 - 31, 2021",
        "2023-02-30",
        "Monday the 31st of February",
        "in 2000 words",
        "the past is past",
        "",
    ],
)
def test_what_only_looks_like_a_time_is_none(text: str) -> None:
    assert said(text) == []


def test_the_longest_is_taken() -> None:
    (found,) = parse("Was it the day before yesterday?", NOW)
    assert (found.start, found.text, found.begin) == (date(2026, 11, 19), "the day before yesterday", 7)


def test_several_times_stand_in_their_order() -> None:
    assert said("Nov 20, May 3 and last week") == ["2026-11-20", "2026-05-03", "2026-11-09..2026-11-15"]
    assert said("上周 or last month") == ["2026-11-09..2026-11-15", "2026-10-01..2026-10-31"]


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        (datetime(2027, 1, 1), "yesterday", "2026-12-31"),
        (datetime(2027, 1, 5), "last week", "2026-12-28..2027-01-03"),
        (datetime(2027, 3, 31), "a month ago", "2027-02-01..2027-02-28"),
        (datetime(2028, 2, 29), "a year ago today", "2027-02-28"),
        (datetime(2026, 1, 10), "last summer", "2025-06-01..2025-08-31"),
        (datetime(2026, 11, 16), "last Monday", "2026-11-09"),
        (datetime(2026, 11, 22), "rest of the week", "2026-11-22"),
        (datetime(2026, 11, 18), "rest of the week", "2026-11-18..2026-11-21"),
    ],
)
def test_years_and_months_end(now: datetime, text: str, expected: str) -> None:
    assert said(text, now) == [expected]


@pytest.mark.parametrize("now", [datetime(1, 1, 1), datetime(9999, 12, 31)])
def test_beyond_the_calendar_is_nothing(now: datetime) -> None:
    texts = (
        "3 days ago",
        "last week",
        "last month",
        "9999 years ago",
        "next week",
        "in 3 months",
        "two Mondays ago",
    )
    assert all(len(said(text, now)) <= 1 for text in texts)


def test_nested_references_end_somewhere() -> None:
    assert said("the end of " * 400 + "May") == ["2026-05-21..2026-05-31"]
