"""Local days tile time, on the days too that have 23 or 25 hours, or no midnight."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import available_timezones

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.time_reference.local_days import BadTimeZone, bounds, local_day, time_zone

OFFSETS = ["+05:45", "-03:30", "+14:00", "-12:00", "UTC"]
zones = st.sampled_from(sorted(available_timezones()) + OFFSETS)
days = st.dates(min_value=date(1900, 1, 1), max_value=date(2100, 1, 1))
instants = st.datetimes(datetime(1900, 1, 2), datetime(2100, 1, 1)).map(
    lambda instant: instant.replace(tzinfo=UTC)
)

ONE_DAY = timedelta(days=1)


@given(day=days, zone=zones)
@example(date(2011, 12, 29), "Pacific/Apia")
@example(date(2011, 12, 30), "Pacific/Apia")
@example(date(2026, 3, 28), "Asia/Beirut")
@example(date(2018, 11, 3), "America/Sao_Paulo")
def test_consecutive_days_tile_time(day: date, zone: str) -> None:
    begins, ends = bounds(day, day, zone)
    next_begins, _ = bounds(day + ONE_DAY, day + ONE_DAY, zone)
    assert begins <= ends == next_begins
    assert begins.tzinfo is ends.tzinfo is UTC


@given(instant=instants, zone=zones)
@example(datetime(2010, 11, 7, 3, 0, tzinfo=UTC), "America/St_Johns")
def test_the_local_day_is_the_one_whose_bounds_hold_the_instant(instant: datetime, zone: str) -> None:
    day = local_day(instant, zone)
    begins, ends = bounds(day, day, zone)
    assert begins <= instant < ends


@pytest.mark.parametrize(
    ("day", "zone", "begins", "hours"),
    [
        (date(2026, 3, 8), "America/New_York", "2026-03-08T05:00", 23),
        (date(2026, 11, 1), "America/New_York", "2026-11-01T04:00", 25),
        (date(2026, 3, 29), "Asia/Beirut", "2026-03-28T22:00", 23),
        (date(2026, 10, 24), "Asia/Beirut", "2026-10-23T21:00", 25),
        (date(2011, 12, 30), "Pacific/Apia", "2011-12-30T10:00", 0),
    ],
)
def test_days_that_are_not_like_others(day: date, zone: str, begins: str, hours: int) -> None:
    begun, ended = bounds(day, day, zone)
    assert begun == datetime.fromisoformat(begins).replace(tzinfo=UTC)
    assert ended - begun == timedelta(hours=hours)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="after"):
        bounds(date(2026, 5, 2), date(2026, 5, 1), "UTC")
    with pytest.raises(BadTimeZone):
        bounds(date(2026, 5, 2), date(2026, 5, 2), "Mars/Olympus")
    with pytest.raises(BadTimeZone):
        local_day(datetime(2026, 5, 2, tzinfo=UTC), "Mars/Olympus")


NOON = datetime(2026, 7, 1, 12)


@pytest.mark.parametrize(
    ("name", "hours"), [("Asia/Shanghai", 8), ("+08:00", 8), ("-03:30", -3.5), ("+0545", 5.75), ("UTC+2", 2)]
)
def test_names_and_offsets_are_understood(name: str, hours: float) -> None:
    assert NOON.replace(tzinfo=time_zone(name)).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize("name", ["", "Mars", "+25:00", "+8:99", "../etc/passwd", "a\x00b"])
def test_anything_else_is_refused_by_name(name: str) -> None:
    with pytest.raises(BadTimeZone, match="is no time zone"):
        time_zone(name)
