"""Reads when something is to happen: "tomorrow at nine" or 每周一早上 as moments in the future.

`parse.py` reads the days, looking ahead; this module reads times of day, minutes and hours from now, and what
recurs. Every word must be understood: what cannot be read is an error and is never ignored.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import zip_longest

from services.time_reference.clock_times import ClockTime, clock_time, minutes_from_now
from services.time_reference.local_days import time_zone
from services.time_reference.normalisation import folded, lowered, part_of_day
from services.time_reference.parse import parse
from services.time_reference.phrases import ONE_DAY, TimeRange

LONGEST = 200
"""Maximum characters of a text that says when."""
_MORNING = ClockTime(9, 0)
"""Time of a day that is named without a time."""
_TIME_OF_PART = {0: 5, 4: 9, 6: 10, 11: 12, 12: 15, 16: 19, 17: 20}
"""Hour that stands for a part of a day without a time, by the first hour of that part."""
_SHORT_PARTS = re.compile(r"([明今后每当])天?([早晚])(?![上晨间饭餐])")
"""Short forms that are written out before reading: 明早, 每晚 become 明天早上, 每天晚上."""
_RECURS = re.compile(
    r"(?P<daily>\bdaily\b|\b(?:every|each) (?:single )?day\b|每一?[天日])"
    r"|(?P<workdays>\b(?:every|each|on) (?:week|work|working )days?\b|\bweekdays\b|每个?工作日)"
    r"|\b(?:every|each) (?:week|month|year)\b|\b(?:week|month|year)ly\b|\b(?:every|each)\b"
    r"|每个?[月年](?:的|农历)?|每个?(?=[\u3400-\u9fff])"
)
_COUNTED = re.compile(
    r"\b(?:every|each) (?:other|few|couple|second|\d{1,3}\b|two|three|four|five|six|hour|minute)"
    r"|每(?:隔|[两三四五六七八九十\d])|每个?(?:小时|钟头|分钟)"
)
_FILLER = re.compile(r"\b(?:at|on|in|by|the|of|o'clock|this|and|again|please)\b|[的在于去再就,、.。;!\s和及请]")
_SATURDAY = 5
_WHILE = timedelta(days=8)
"""Weekdays and relative days of so long ago are others."""


class BadOccasion(ValueError):
    """A text that does not say when something is to happen; the message gives the reason."""


@dataclass(frozen=True)
class Occasion:
    """A moment in the future."""

    at: datetime
    """The moment in UTC, to the minute."""
    rule: str = ""
    """Words from which `next_moment` reads every further moment; empty = it comes once."""
    follows: bool = False
    """Whether it is the day of an event, and moves with it."""


def read_occasion(said: str, now: datetime, timezone: str) -> Occasion:
    """Read when something is to happen, as said at `now`, by the clock of a time zone. Raises `BadOccasion` if
    the text cannot be read, names no moment, or names a past one, and `BadTimeZone` if there is no such time
    zone."""
    zone = time_zone(timezone)
    text = _written_out(said)
    if not text or len(text) > LONGEST:
        raise BadOccasion(f"is empty, or longer than {LONGEST} characters")
    if (minutes := minutes_from_now(text)) is not None:
        return Occasion(_to_the_minute(now + timedelta(minutes=minutes)))
    exact = _written_exactly(said.strip(), zone)
    if exact is None and _COUNTED.search(text):
        raise BadOccasion(f"“{said}” recurs by a count; give a day, weekdays, or a date of the month or year")
    try:
        found = [exact] if exact else _moments(text, now, zone)
    except (ValueError, OverflowError) as error:
        raise error if isinstance(error, BadOccasion) else BadOccasion("lies beyond the calendar") from error
    moment = next((each for each in found if each > now), None)
    if moment is None:
        raise BadOccasion(f"“{said}” lies in the past")
    return Occasion(moment, text if exact is None and _RECURS.search(text) else "")


def next_moment(rule: str, after: datetime, timezone: str) -> datetime | None:
    """Return the first moment of a rule after another moment, in UTC; None if the calendar has no more. The
    time of day stays the same on the zone's clock when daylight saving begins or ends."""
    text = _written_out(rule)
    try:
        return next((each for each in _moments(text, after, time_zone(timezone)) if each > after), None)
    except (ValueError, OverflowError):
        return None


def last_day(said: str, told: date) -> date | None:
    """Return the last day that a text names; None = none of them lay ahead when it was told, or it recurs."""
    return max((each.end for each in _days_ahead(said, told)), default=None)


def fixed_day(said: str, today: date) -> date | None:
    """Return the day that a text names, from `today` on, if it is one and the same whenever the text is read."""
    days = _days_ahead(said, today)
    if len(days) != 1 or days[0].start != days[0].end:
        return None
    return days[0].end if days[0].end == last_day(said, today - _WHILE) else None


def _days_ahead(said: str, told: date) -> Sequence[TimeRange]:
    text = _written_out(said)
    named = parse(text, datetime.combine(told, time()), ahead=True)
    is_ahead = not _RECURS.search(text) and all(each.start >= told for each in named)
    return named if is_ahead else ()


def names_time(said: str, today: date) -> bool:
    """Whether a text names a time of day, or a day that is not past."""
    text = _written_out(said)
    days = parse(text, datetime.combine(today, time()), ahead=True)
    return clock_time(text) is not None or any(each.end >= today for each in days)


def _written_out(said: str) -> str:
    """Return a text with its short forms written out."""
    return _SHORT_PARTS.sub(r"\1天\2上", lowered(folded(said.strip())))


def _moments(text: str, now: datetime, zone: tzinfo) -> list[datetime]:
    """Return the moments that a text may mean, in order. Raises `BadOccasion` if the text names none, or says
    something else besides."""
    today = now.astimezone(zone).date()
    recurs = _RECURS.search(text)
    rest = _blotted(text, [each.span() for each in _RECURS.finditer(text)])
    clock = clock_time(rest)
    rest = _blotted(rest, [clock.place] if clock else [])
    named, part = parse(rest, datetime.combine(today, time()), ahead=True), part_of_day(rest)
    unread = _blotted(rest, [(each.begin, each.stop) for each in named])
    while left := part_of_day(unread):
        unread = _blotted(unread, [left[1:]])
    if words := _without_filler(unread):
        raise BadOccasion(f"cannot be read: “{' '.join(text[slice(*words)].split())}”")
    is_whole = recurs and (recurs["daily"] or recurs["workdays"])
    if not (named or clock or part or is_whole) or (recurs and not (named or is_whole or part)):
        raise BadOccasion("names no day" if recurs else "names no moment")
    if any(each.text.endswith("起") for each in named):
        raise BadOccasion("says since when, and not when")
    if recurs and any(each.end - each.start > ONE_DAY for each in named):
        raise BadOccasion("recurs over several days, or until one: give the days themselves")
    if recurs and recurs["workdays"]:
        days = [day for day in _next_days(today, 8) if day.weekday() < _SATURDAY]
    else:
        days = _days_of(rest, named, today, recurs=bool(recurs)) if named else _next_days(today, 3)
    if "tonight" in rest:
        days = days[:1]
    at = clock or (ClockTime(_TIME_OF_PART[part[0][0]], 0) if part else _MORNING)
    hours = part[0] if part else None
    return sorted(
        _instant(day, *time_of_day, zone)
        for day in days
        for time_of_day in at.on_clock(hours, either=not recurs and day == today)
    )


def _days_of(text: str, named: Sequence[TimeRange], today: date, *, recurs: bool) -> list[date]:
    """Return the days that a text names; if it recurs and today is one of them, also the next one."""
    first = [today if each.start < today <= each.end and not recurs else each.start for each in named]
    tomorrow = datetime.combine(today + ONE_DAY, time())
    again = [each.start for each in parse(text, tomorrow, ahead=True)]
    later = [each for each, before in zip_longest(again, first) if each and before and each - before > ONE_DAY]
    return sorted({*first, *later})


def _next_days(today: date, count: int) -> list[date]:
    return [today + timedelta(days=number) for number in range(count)]


def _blotted(text: str, places: Iterable[tuple[int, int]]) -> str:
    for begin, stop in places:
        text = text[:begin] + " " * (stop - begin) + text[stop:]
    return text


def _written_exactly(said: str, zone: tzinfo) -> datetime | None:
    """Return the moment of an ISO 8601 time; without an offset, it is on the zone's clock."""
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        return None
    if len(said) <= len("2026-12-24"):
        return None
    return _to_the_minute(moment if moment.tzinfo else moment.replace(tzinfo=zone))


def _instant(day: date, hour: int, minute: int, zone: tzinfo) -> datetime:
    """Return the instant at which a zone's clock shows a time; a time that the clock skips is an hour later."""
    days, hour = divmod(hour, 24)
    return datetime.combine(day + timedelta(days=days), time(hour, minute), zone).astimezone(UTC)


def _without_filler(text: str) -> tuple[int, int] | None:
    """Return where the words of a text that are no filler begin and end; None where there are none."""
    left = _FILLER.sub(lambda found: " " * len(found[0]), text)
    return (len(left) - len(left.lstrip()), len(left.rstrip())) if left.strip() else None


def _to_the_minute(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(second=0, microsecond=0)
