"""Replaces relative dates in a text to be stored: "tomorrow" and 明天 mean another day when read later."""

import re
from datetime import date, datetime, timedelta

from services.time_reference.parse import parse
from services.time_reference.ranges import TimeRange
from services.time_reference.upcoming import is_calendar_date, upcoming
from services.time_reference.zones import time_zone

_CHINESE = re.compile(r"[\u3400-\u9fff]")
_REPEATED = re.compile(r"(?:\b(?:every|each)\s+(?:\w+\s+)?|每个?|逢)$", re.IGNORECASE)
_AFTER_PLURAL = re.compile(r"s\b", re.IGNORECASE)
_PART_OF_YEAR = re.compile(r"(?P<unit>[年月])(?P<part>[底初])$")
_DAY_SIGNS = "号日號"
_LONGEST_MONTH = 31
_SHORTEST_YEAR = 360
_PARTS_OF_DAY = (
    (re.compile(r"晚$"), "晚上"),
    (re.compile(r"早$"), "早上"),
    (re.compile(r"\b(?:tonight|last night)$", re.IGNORECASE), " in the evening"),
)


def make_dates_absolute(text: str, at: datetime, timezone: str, *, is_upcoming: bool = False) -> str:
    """Return a text with its relative dates as dates (2026-11-23; a month as 2026-11, a year as 2026).

    Calendar dates (May 3, 5月3号) and repeated ones (every Friday) are left unchanged.

    Args:
        text: a sentence or a value.
        at: when it was said.
        timezone: where it was said: an IANA name, or an offset such as +08:00.
        is_upcoming: it is about the future: a bare weekday or day of the year is the next one, and gets its year.
    """
    now = at.astimezone(time_zone(timezone))
    written = text
    for found in reversed(parse(text, now)):
        before = text[: found.begin]
        if _REPEATED.search(before) or _AFTER_PLURAL.match(text[found.stop :]):
            continue
        is_fixed = is_calendar_date(found, text, now)
        if (is_fixed and not is_upcoming) or re.search(r"\d{4}", found.text):
            continue
        start, end = (found.start, found.end)
        if is_upcoming:
            start, end = upcoming(found, now, is_fixed=is_fixed)
        place, rest = _without_time_of_day(found, now)
        written = (
            written[:place] + _as_text(start, end, found.text[: place - found.begin]) + rest + written[place:]
        )
        written = written[: found.begin] + written[place:]
    return written


def _without_time_of_day(found: TimeRange, now: datetime) -> tuple[int, str]:
    """Return where the words for the day end, and the words for the time of day that would be lost with them."""
    for stop in range(1, len(found.text)):
        day = parse(found.text[:stop], now)
        if len(day) == 1 and (day[0].start, day[0].end) == (found.start, found.end) and day[0].begin == 0:
            rest = found.text[stop:]
            if rest[0] in _DAY_SIGNS:
                continue
            if not rest[0].isascii() or not rest[0].isalnum() or not found.text[stop - 1].isalnum():
                return found.begin + stop, ""
    part = next((words for pattern, words in _PARTS_OF_DAY if pattern.search(found.text)), "")
    return found.stop, part


def _as_text(start: date, end: date, words: str) -> str:
    if start == end:
        return start.isoformat()
    days = (end - start).days + 1
    chinese = _CHINESE.search(words) is not None
    if part := _PART_OF_YEAR.search(words):
        return f"{start:%Y}年{part['part']}" if part["unit"] == "年" else f"{start:%Y-%m}{part.group()}"
    if start.day == 1 and days <= _LONGEST_MONTH and (end + timedelta(days=1)).day == 1:
        return f"{start:%Y-%m}"
    if days >= _SHORTEST_YEAR and start.day == start.month == 1:
        return f"{start:%Y}年" if chinese else f"{start:%Y}"
    joint = "至" if chinese else " to "
    return f"{start.isoformat()}{joint}{end.isoformat()}"
