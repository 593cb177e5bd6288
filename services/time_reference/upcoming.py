"""The next one of what a text names without its year or its week, when it speaks of the future."""

import re
from datetime import date, datetime, timedelta

from services.time_reference.parse import parse
from services.time_reference.ranges import TimeRange

_ELSEWHERE = timedelta(days=565)
"""A day so far away is neither a whole number of weeks nor of months nor of years away, and in another year."""
_RELATIVE = re.compile(r"\b(?:next|last|this|coming|past)\b|[明去前今后]年", re.IGNORECASE)
_PAST = re.compile(r"\b(?:last|ago|yesterday|past|earlier|previous|since)\b|[昨前上去]|以来|刚")
_WEEK = timedelta(days=7)


def is_calendar_date(found: TimeRange, text: str, now: datetime) -> bool:
    """Whether it is the same day or month in every year (May 3, 5月3号), named without a relative word."""
    elsewhere = {(each.begin, each.stop): each for each in parse(text, now - _ELSEWHERE)}
    other = elsewhere.get((found.begin, found.stop))
    same = other is not None and (other.start.month, other.start.day) == (found.start.month, found.start.day)
    return same and not _RELATIVE.search(found.text)


def upcoming(found: TimeRange, now: datetime, *, is_fixed: bool | None = None) -> tuple[date, date]:
    """The days that are meant if they are yet to come: a past day of the year or the week is the next one.

    Args:
        found: as read, which of one of many is the latest that has begun.
        now: when it was said, in the user's local time.
        is_fixed: whether it is a calendar date; None = to be found out.
    """
    start, end, today = found.start, found.end, now.date()
    if end >= today or _PAST.search(found.text) or re.search(r"\d{4}", found.text):
        return start, end
    if is_fixed is None:
        alone = " " * found.begin + found.text
        is_fixed = is_calendar_date(found, alone, now)
    if is_fixed:
        try:
            return start.replace(year=start.year + 1), end.replace(year=end.year + 1)
        except ValueError:  # February 29
            return start, end
    while end < today:
        start, end = start + _WEEK, end + _WEEK
    return start, end
