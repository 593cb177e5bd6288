"""Time zones as callers write them, IANA names or offsets such as +08:00, and their local days as instants.

Every function but `shows_hour` raises `BadTimeZone` for any other name.
"""

import re
from collections.abc import Container
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?")
_LARGEST_OFFSET = timedelta(hours=14)


class BadTimeZone(ValueError):
    """A name that is neither an IANA time zone nor an offset."""


@lru_cache(maxsize=1024)
def time_zone(name: str) -> tzinfo:
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset <= _LARGEST_OFFSET:
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadTimeZone(
            f"{name!r} is no time zone; give an IANA name such as Asia/Shanghai, or an offset such as +08:00"
        ) from None


def shows_hour(name: str, now: datetime, hours: Container[int]) -> bool:
    """Return whether clocks in a time zone show one of these hours, 0 to 23; False for an unknown zone."""
    try:
        return now.astimezone(time_zone(name)).hour in hours
    except BadTimeZone:
        return False


_DAY = timedelta(days=1)
_WIDEST = timedelta(hours=30)
"""Maximum distance of the beginning of a local day from the same wall time in UTC, as offsets are ≤ 16 hours."""
_INSTANT = timedelta(microseconds=1)


def bounds(start: date, end: date, timezone: str) -> tuple[datetime, datetime]:
    """Return when the day `start` begins and when the day after `end` begins, as instants in UTC; half-open.

    A day that the zone's calendar leaves out, as Samoa's did in 2011, begins and ends at the same instant. Days at
    the ends of the calendar are cut to what a datetime can hold. Raises `ValueError` if `end` is before `start`.
    """
    if end < start:
        raise ValueError(f"{start} is after {end}")
    zone = time_zone(timezone)
    until = _begins(end + _DAY, zone) if end < date.max else datetime.max.replace(tzinfo=UTC)
    return _begins(start, zone), until


def hours_of(day: date, hours: tuple[int, int], timezone: str) -> tuple[datetime, datetime]:
    """Return the instants, in UTC, of two hours of a day; an hour from 24 on is on the next day. Half-open."""
    zone = time_zone(timezone)
    begins, ends = (
        (datetime.combine(day, time()) + timedelta(hours=hour)).replace(tzinfo=zone).astimezone(UTC)
        for hour in hours
    )
    return begins, ends


def local_day(instant: datetime, timezone: str) -> date:
    """Return the day whose bounds hold an instant: the local date, except in an hour that is repeated after
    midnight.

    Where clocks go back across midnight, as in St. John's at 00:01 until 2011, that hour stays in the new day.
    """
    zone = time_zone(timezone)
    day = instant.astimezone(zone).date()
    repeated = day < date.max and _begins(day + _DAY, zone) <= instant
    return day + _DAY if repeated else day


def _begins(day: date, zone: tzinfo) -> datetime:
    """Return the first instant whose local date is `day` or later."""
    wall = datetime.combine(day, time())
    try:
        first = wall.replace(tzinfo=zone).astimezone(UTC)
        if _is_first(first, day, zone):
            return first
        return _search(wall.replace(tzinfo=UTC), day, zone)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _is_first(instant: datetime, day: date, zone: tzinfo) -> bool:
    return instant.astimezone(zone).date() == day and (instant - _INSTANT).astimezone(zone).date() < day


def _search(near: datetime, day: date, zone: tzinfo) -> datetime:
    """Find the beginning of a day by binary search, for days that have no midnight or two."""
    before, after = near - _WIDEST, near + _WIDEST
    while after - before > _INSTANT:
        middle = before + (after - before) // 2
        if middle.astimezone(zone).date() < day:
            before = middle
        else:
            after = middle
    return after
