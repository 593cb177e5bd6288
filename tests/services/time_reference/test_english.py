from datetime import date, datetime

import pytest

from services.time_reference.parse import parse

NOW = datetime(2026, 11, 21, 10, 30)
"""A Saturday."""


def said(text: str, now: datetime = NOW) -> list[str]:
    """What is found, as 2026-11-09..2026-11-15, or as one date."""
    return [
        f"{found.start}" if found.start == found.end else f"{found.start}..{found.end}"
        for found in parse(text, now)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # days
        ("what did I say today", "2026-11-21"),
        ("Yesterday's talk", "2026-11-20"),
        ("the day before yesterday", "2026-11-19"),
        ("2 days before yesterday", "2026-11-18"),
        ("last night", "2026-11-20"),
        ("this morning", "2026-11-21"),
        ("3 days ago", "2026-11-18"),
        ("twenty-three days ago", "2026-10-29"),
        ("a couple of days ago", "2026-11-19"),
        ("a few days ago", "2026-11-14..2026-11-19"),
        ("tomorrow", "2026-11-22"),
        ("the day after tomorrow", "2026-11-23"),
        ("in 3 days", "2026-11-24"),
        ("three days from now", "2026-11-24"),
        # counted units
        ("the last 3 days", "2026-11-18..2026-11-21"),
        ("past two weeks", "2026-11-07..2026-11-21"),
        ("over the past few months", "2026-04-21..2026-11-21"),
        ("in the last week", "2026-11-14..2026-11-21"),
        ("the 3 previous days", "2026-11-18..2026-11-20"),
        ("next 2 days", "2026-11-22..2026-11-23"),
        ("within a week", "2026-11-21..2026-11-28"),
        # weeks
        ("last week", "2026-11-09..2026-11-15"),
        ("this week", "2026-11-16..2026-11-22"),
        ("next week", "2026-11-23..2026-11-29"),
        ("the week before last", "2026-11-02..2026-11-08"),
        ("a week ago", "2026-11-09..2026-11-15"),
        ("two weeks ago", "2026-11-02..2026-11-08"),
        ("two weeks ago on Tuesday", "2026-11-03"),
        ("a fortnight ago", "2026-11-02..2026-11-08"),
        ("last weekend", "2026-11-14..2026-11-15"),
        ("beginning of last week", "2026-11-09..2026-11-11"),
        ("the week of May 6th", "2026-05-04..2026-05-10"),
        ("week 12", "2026-03-16..2026-03-22"),
        ("week 1 of 2018", "2018-01-01..2018-01-07"),
        ("rest of the week", "2026-11-21"),
        # days of the week
        ("on Monday", "2026-11-16"),
        ("Saturday", "2026-11-21"),
        ("on Sun.", "2026-11-15"),
        ("last Saturday", "2026-11-14"),
        ("last Friday night", "2026-11-20"),
        ("Tuesday of last week", "2026-11-10"),
        ("last week Tuesday", "2026-11-10"),
        ("this Monday", "2026-11-16"),
        ("next Friday", "2026-11-27"),
        ("two Mondays ago", "2026-11-09"),
        ("Friday the 13th", "2026-11-13"),
        ("Monday, February 16", "2026-02-16"),
        ("Monday (June 15)", "2026-06-15"),
        # months
        ("last month", "2026-10-01..2026-10-31"),
        ("three months ago", "2026-08-01..2026-08-31"),
        ("half a year ago", "2026-05-01..2026-05-31"),
        ("in May", "2026-05-01..2026-05-31"),
        ("December", "2025-12-01..2025-12-31"),
        ("May 2023", "2023-05-01..2023-05-31"),
        ("2014, jun", "2014-06-01..2014-06-30"),
        ("last September", "2025-09-01..2025-09-30"),
        ("this September", "2026-09-01..2026-09-30"),
        ("next March", "2027-03-01..2027-03-31"),
        ("March of last year", "2025-03-01..2025-03-31"),
        ("early May", "2026-05-01..2026-05-10"),
        ("mid-July", "2026-07-11..2026-07-20"),
        ("the end of last month", "2026-10-21..2026-10-31"),
        ("earlier this month", "2026-11-01..2026-11-20"),
        ("later this month", "2026-11-21..2026-11-30"),
        ("first Monday of last month", "2026-10-05"),
        ("the second week of May", "2026-05-11..2026-05-17"),
        ("last Friday of October 2025", "2025-10-31"),
        ("the third last day of June", "2026-06-28"),
        ("the 20th of last month", "2026-10-20"),
        ("first eight days of last year", "2025-01-01..2025-01-08"),
        ("last weekend of July", "2026-07-25..2026-07-26"),
        ("at the weekend", "2026-11-21..2026-11-22"),
        ("the weekend of the 5th", "2026-11-07..2026-11-08"),
        ("a month ago on the 5th", "2026-10-05"),
        # dates
        ("October 3 last year", "2025-10-03"),
        ("last year on October 3", "2025-10-03"),
        ("on the 27.", "2026-10-27"),
        ("10-Apr-13", "2013-04-10"),
        ("12-11-10", "2012-11-10"),
        ("8/5/26", "2026-08-05"),
        ("two days before May 3rd", "2026-05-01"),
        ("the day before May 3rd", "2026-05-02"),
        ("May 3rd", "2026-05-03"),
        ("may 3rd", "2026-05-03"),
        ("December 24", "2025-12-24"),
        ("3 May 2023", "2023-05-03"),
        ("the 4th of July", "2026-07-04"),
        ("May twenty-third", "2026-05-23"),
        ("March the twenty-fourth nineteen sixty nine", "1969-03-24"),
        ("20 June of 91", "1991-06-20"),
        ("7 Sep 94", "1994-09-07"),
        ("on the 4th", "2026-11-04"),
        ("on the 25th.", "2026-10-25"),
        ("February 29", "2024-02-29"),
        ("2014-03-27", "2014-03-27"),
        ("2015/Jun/09", "2015-06-09"),
        ("3/27/2014", "2014-03-27"),
        ("27/3/2014", "2014-03-27"),
        ("27.3.2014", "2014-03-27"),
        ("20150618", "2015-06-18"),
        ("on 4/5", "2026-04-05"),
        ("23/05", "2026-05-23"),
        ("10/2014", "2014-10-01..2014-10-31"),
        ("2014-10", "2014-10-01..2014-10-31"),
        # years and their parts
        ("last year", "2025-01-01..2025-12-31"),
        ("two years ago", "2024-01-01..2024-12-31"),
        ("a year and a half ago", "2025-05-01..2025-05-31"),
        ("2 months and 5 days ago", "2026-09-16"),
        ("a year ago today", "2025-11-21"),
        ("in 2016", "2016-01-01..2016-12-31"),
        ("the year 2007", "2007-01-01..2007-12-31"),
        ("late last year", "2025-10-01..2025-12-31"),
        ("last quarter", "2026-07-01..2026-09-30"),
        ("Q1", "2026-01-01..2026-03-31"),
        ("last year's Q1", "2025-01-01..2025-03-31"),
        ("Q2 of last year", "2025-04-01..2025-06-30"),
        ("the 2nd quarter", "2026-04-01..2026-06-30"),
        ("next summer", "2027-06-01..2027-08-31"),
        ("next 3 months", "2026-11-22..2027-02-21"),
        ("two coming weeks", "2026-11-22..2026-12-05"),
        ("this workweek", "2026-11-16..2026-11-20"),
        ("Q3 2024", "2024-07-01..2024-09-30"),
        ("2018-Q2", "2018-04-01..2018-06-30"),
        ("3rd quarter 2017", "2017-07-01..2017-09-30"),
        ("H2 2013", "2013-07-01..2013-12-31"),
        ("second half of last year", "2025-07-01..2025-12-31"),
        ("last summer", "2026-06-01..2026-08-31"),
        ("last fall", "2025-09-01..2025-11-30"),
        ("in the summer of 2019", "2019-06-01..2019-08-31"),
        ("the 1990s", "1990-01-01..1999-12-31"),
        ("in the '70s", "1970-01-01..1979-12-31"),
        ("the nineteen sixties", "1960-01-01..1969-12-31"),
        ("21st century", "2000-01-01..2099-12-31"),
        ("year to date", "2026-01-01..2026-11-20"),
        # from one to the other
        ("between March and May", "2026-03-01..2026-05-31"),
        ("from November to March", "2026-11-01..2027-03-31"),
        ("from February to June 2018", "2018-02-01..2018-06-30"),
        ("March 3-7", "2026-03-03..2026-03-07"),
        ("6 - 19 June 2014", "2014-06-06..2014-06-19"),
        ("June 4th through 11th", "2026-06-04..2026-06-11"),
        ("from 3 to March 18, 1998", "1998-03-03..1998-03-18"),
        ("4 to 22 this month", "2026-11-04..2026-11-22"),
        ("from Monday to Wednesday", "2026-11-16..2026-11-18"),
        ("Mon-Wed", "2026-11-16..2026-11-18"),
        ("between Tuesday and Thursday last week", "2026-11-10..2026-11-12"),
        ("from Dec 30 2024 to Jan 2", "2024-12-30..2025-01-02"),
        ("3/2/2021-3/9/2021", "2021-03-02..2021-03-09"),
        ("from 11/10 to 02/10", "2026-11-10..2027-02-10"),
        ("1972 - 1975", "1972-01-01..1975-12-31"),
        ("from 2012 to June 6th, 2014", "2012-01-01..2014-06-06"),
        ("from Jan. 5, 2020 until Feb. 3, 2020", "2020-01-05..2020-02-03"),
        ("between June 2013 and 2017", "2013-06-01..2017-12-31"),
        ("from the 5th to the 10th", "2026-11-05..2026-11-10"),
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
        "this may be wrong",
        "we march on",
        "just a second",
        "the sun is up, and we sat down",
        "she will wed, then fall",
        "April and June are my sisters",
        "3 apples",
        "the first time, the 3rd floor",
        "every Monday",
        "version 2.10.3",
        "call 555-1234",
        "3/4 cup of milk",
        "open 24/7",
        "at 10:30",
        "a ratio of 3:4",
        "$2015",
        "2013",
        "June 31",
        "April 12 - 31, 2021",
        "2023-02-30",
        "Monday the 31st of February",
        "in 2000 words",
        "the past is past",
        "last chance, next step, this one",
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
        (datetime(2027, 1, 1), "last month", "2026-12-01..2026-12-31"),
        (datetime(2027, 1, 5), "last week", "2026-12-28..2027-01-03"),
        (datetime(2027, 1, 1), "last December", "2026-12-01..2026-12-31"),
        (datetime(2027, 3, 31), "a month ago", "2027-02-01..2027-02-28"),
        (datetime(2027, 3, 31), "1 month and 1 day ago", "2027-02-27"),
        (datetime(2028, 2, 29), "a year ago today", "2027-02-28"),
        (datetime(2026, 7, 1), "last summer", "2025-06-01..2025-08-31"),
        (datetime(2026, 1, 10), "last summer", "2025-06-01..2025-08-31"),
        (datetime(2026, 11, 16), "Monday", "2026-11-16"),
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
