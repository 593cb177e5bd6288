"""What holds for every day, every hour and every text."""

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.time_reference.parse import parse
from services.time_reference.phrases import TimeRange

pytestmark = pytest.mark.untraced

NOWS = st.datetimes(datetime(1990, 1, 1), datetime(2100, 12, 31, 23))


def only(text: str, now: datetime) -> TimeRange:
    """The one range that is found, which is said by the whole text."""
    (found,) = parse(text, now)
    assert found.text
    return found


@given(NOWS, st.integers(0, 6))
def test_a_weekday_is_one_of_the_last_seven_days(now: datetime, number: int) -> None:
    english = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")[number]
    for text in (f"周{'一二三四五六日'[number]}", f"on {english}"):
        found = only(text, now)
        assert found.start.weekday() == number
        assert timedelta(0) <= now.date() - found.start < timedelta(days=7)


@given(NOWS, st.dates(date(1990, 1, 1), date(2100, 12, 31)))
def test_a_date_in_full_is_that_day(now: datetime, day: date) -> None:
    for text in (
        f"{day.year}年{day.month}月{day.day}日",
        f"{day.isoformat()}",
        f"{day.year}/{day.month}/{day.day}",
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
    ):
        found = only(text, now)
        assert (found.start, found.end, found.text) == (day, day, text)


def _sound(text: str, now: datetime) -> None:
    after = 0
    for found in parse(text, now):
        assert found.start <= found.end
        assert after <= found.begin < found.stop
        assert text[found.begin : found.stop] == found.text
        after = found.stop


@given(st.text(), NOWS)
def test_any_text_is_read(text: str, now: datetime) -> None:
    _sound(text, now)


@pytest.mark.parametrize("text", ["end of " * 1000, "今天" + " " * 8000, "2月30日" * 200, "the day before " * 500])
def test_a_long_text_is_read_too(text: str) -> None:
    _sound(text, datetime(2026, 11, 21))
