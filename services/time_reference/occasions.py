"""Reads when something is to happen: "tomorrow at nine" or 每周一早上 as moments in the future.

`spelling.py` brings a text into one spelling, and `parse.py` reads the days, looking ahead; this module reads
times of day, minutes and hours from now, and what recurs. Every word must be understood: what cannot be read is an
error and is never ignored.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import zip_longest

from services.time_reference.clock_times import ClockTime, clock_time, minutes_from_now
from services.time_reference.feasts import OF_A_COUNTRY
from services.time_reference.local_days import time_zone
from services.time_reference.normalisation import Hours, folded, lowered, part_of_day, parts_of_day
from services.time_reference.numerals import CHINESE_NUMERAL, chinese_number
from services.time_reference.parse import parse
from services.time_reference.phrases import ONE_DAY, TimeRange, Unit, moved
from services.time_reference.places import is_american, on_its_clock
from services.time_reference.recurring import RECURS, BadOccasion, counted, recurs_daily, starting
from services.time_reference.spelling import written_out

LONGEST = 200
"""Maximum characters of a text that says when."""
_MORNING = ClockTime(9, 0)
"""Time of a day that is named without a time."""
_TIME_OF_PART = {0: 5, 4: 9, 6: 10, 11: 12, 12: 15, 16: 19, 17: 20}
"""Hour that stands for a part of a day without a time, by the first hour of that part."""
_FILLER = re.compile(
    r"\b(?:at|on|in|by|the|of|o'clock|this|and|again|please|pls|plz|around|sharp)\b|[那当][天日]"
    r"|[的在于去再就,、.。;!\s和及请]"
)
_CHINESE_UNITS = {
    **{"天": Unit.DAY, "日": Unit.DAY, "月": Unit.MONTH},
    **dict.fromkeys(("周", "星期", "礼拜"), Unit.WEEK),
}
_BEFOREHAND = re.compile(
    rf"(?<=[^\s,])(?:的?前|提前|早)(?P<count>{CHINESE_NUMERAL}{{1,2}})个?(?P<unit>{'|'.join(_CHINESE_UNITS)})"
)
"""除夕前一天, 中秋前三天: days before the one that is named."""
_EARLY = re.compile(
    r"^(?P<english>[^,]+?) before (?=.)|,?(?:要?提前|提早)(?P<chinese>.{1,6}?(?:小时|钟头|分钟|个钟))(?:的时候)?"
)
"""Two hours before noon, 晚上七点提前两个小时."""
_AT_THE_END = re.compile(r"^(?:the )?end of (?!.*week)|(?<!周)[底末]$")
_IN_THE_MONTH = re.compile(r"\bof the month\b|每个?月的?(?=最后|第)")
_CLOCK_WITHIN = re.compile(rf"{CHINESE_NUMERAL}(?:点|时|:\d)")
_WEEKDAY = re.compile("(?:周|星期|礼拜)([一二三四五六日天])")
_WORKDAYS = 5
_WHILE = timedelta(days=8)
"""Weekdays and relative days of so long ago are others."""


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
    text = written_out(said)
    if not text or len(said) > LONGEST:
        raise BadOccasion(f"is empty, or longer than {LONGEST} characters")
    if (minutes := minutes_from_now(text)) is not None:
        return Occasion(_to_the_minute(now + timedelta(minutes=minutes)))
    exact = _written_exactly(said.strip(), zone)
    if exact is None and OF_A_COUNTRY.search(text) and not is_american(timezone):
        raise BadOccasion(f"“{said}” is on another day in each country; give the day")
    try:
        rule, begin = starting(text, now.astimezone(zone).date())
        since = max(now, _instant(begin, 0, 0, zone) - timedelta(minutes=1)) if begin else now
        found = [exact] if exact else _moments(counted(rule)[0], since, zone)
    except (ValueError, OverflowError) as error:
        raise error if isinstance(error, BadOccasion) else BadOccasion("lies beyond the calendar") from error
    moment = next((each for each in found if each > since), None)
    if moment is None:
        raise BadOccasion(f"“{said}” lies in the past")
    return Occasion(moment, rule if exact is None and RECURS.search(rule) else "")


def next_moment(rule: str, after: datetime, timezone: str) -> datetime | None:
    """Return the first moment of a rule after another moment of it, in UTC; None if the calendar has no more.
    The time of day stays the same on the zone's clock when daylight saving begins or ends."""
    zone = time_zone(timezone)
    try:
        text, days = counted(starting(written_out(rule), after.date())[0])
        if days:
            day = after.astimezone(zone).date() + timedelta(days=days)
            after = _instant(day, 0, 0, zone) - timedelta(minutes=1)
        return next((each for each in _moments(text, after, zone) if each > after), None)
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
    text = lowered(folded(said.strip()))
    named = parse(text, datetime.combine(told, time()), ahead=True)
    is_ahead = not RECURS.search(text) and all(each.start >= told for each in named)
    return named if is_ahead else ()


def names_time(said: str, today: date) -> bool:
    """Whether a text names a time of day, or a day that is not past."""
    text = lowered(folded(said.strip()))
    days = parse(text, datetime.combine(today, time()), ahead=True)
    return clock_time(text) is not None or any(each.end >= today for each in days)


def _moments(text: str, now: datetime, zone: tzinfo) -> list[datetime]:
    """Return the moments that a text may mean, in order. Raises `BadOccasion` if the text names none, or says
    something else besides."""
    rest, zone = on_its_clock(text, zone)
    now = now.astimezone(zone)
    rest, early = _early(rest)
    today, recurs = now.date(), RECURS.search(rest)
    before = _BEFOREHAND.search(rest)
    rest = _without_rules(_blotted(rest, [before.span()] if before else []))
    clock = clock_time(rest)
    rest = _blotted(rest, [clock.place] if clock else [])
    named, part = parse(rest, datetime.combine(today, time()), ahead=True), part_of_day(rest)
    unread = _blotted(rest, [(each.begin, each.stop) for each in named])
    while left := part_of_day(unread):
        unread = _blotted(unread, [left[1:]])
    if words := _without_filler(unread):
        raise BadOccasion(f"cannot be read: “{' '.join(text[slice(*words)].split())}”")
    is_whole = recurs and recurs_daily(recurs)
    if not (named or clock or part or is_whole) or (recurs and not (named or is_whole or part)):
        raise BadOccasion("names no day" if recurs else "names no moment")
    _check(named, today, recurs=bool(recurs), has_clock=clock is not None)
    if any(one[1] <= other[0] for one in parts_of_day(rest) for other in parts_of_day(rest)):
        raise BadOccasion("names several parts of a day; each is a promise of its own")
    if recurs and recurs["workdays"]:
        days = [day for day in _next_days(today, 8) if day.weekday() < _WORKDAYS]
    else:
        days = _days_of(rest, named, today, recurs=bool(recurs)) if named else _next_days(today, 3)
    if before:
        count, unit = chinese_number(before["count"]), _CHINESE_UNITS[before["unit"]]
        days = [moved(day, unit, -count) for day in days] if named else []
    if "tonight" in rest:
        days = days[:1]
    at = clock or (ClockTime(_TIME_OF_PART[part[0][0]], 0) if part else _MORNING)
    hours = part[0] if part else None
    moments = sorted(
        _instant(day, *time_of_day, zone) - timedelta(minutes=early)
        for day in days
        for time_of_day in at.on_clock(hours, either=not recurs and day == today)
    )
    goes_on = hours and not (clock or recurs) and days[:1] == [today] and moments[0] <= now
    return [*_rest_of(hours, now, zone), *moments] if goes_on and hours else moments


def _check(named: Sequence[TimeRange], today: date, *, recurs: bool, has_clock: bool) -> None:
    """Raise `BadOccasion` if times that are named cannot be one moment, or one that recurs."""
    if any(each.text.endswith("起") for each in named):
        raise BadOccasion("says since when, and not when")
    if not has_clock and any(_CLOCK_WITHIN.search(each.text) for each in named):
        raise BadOccasion("has a time of day that cannot be read")
    if any(_is_no_such_weekday(each) for each in named):
        raise BadOccasion("names a day and a weekday that it is not")
    if recurs and any(each.end - each.start > ONE_DAY for each in named):
        raise BadOccasion("recurs over several days, or until one: give the days themselves")
    if not recurs and any(each.end < today for each in named):
        raise BadOccasion("lies in the past")
    if not recurs and len({each.start for each in named}) > 1:
        raise BadOccasion("names several days; each is a promise of its own")


def _is_no_such_weekday(named: TimeRange) -> bool:
    """Return whether a single day is named with a weekday that it is not: 两周后的周五."""
    said = _WEEKDAY.search(named.text) if named.start == named.end else None
    return said is not None and "一二三四五六日".index(said[1].replace("天", "日")) != named.start.weekday()


def _rest_of(hours: Hours, now: datetime, zone: tzinfo) -> list[datetime]:
    """Return the next full hour of a part of the day that goes on, if there is one."""
    following = now.hour + 1
    return [_instant(now.date(), following, 0, zone)] if hours[0] <= now.hour and following < hours[1] else []


def _days_of(text: str, named: Sequence[TimeRange], today: date, *, recurs: bool) -> list[date]:
    """Return the days that a text names; if it recurs and today is one of them, also the next one."""
    first = [_one_day(each, today, recurs=recurs) for each in named]
    tomorrow = datetime.combine(today + ONE_DAY, time())
    again = [_one_day(each, tomorrow.date(), recurs=recurs) for each in parse(text, tomorrow, ahead=True)]
    later = [each for each, before in zip_longest(again, first) if each and before and each - before > ONE_DAY]
    if recurs and _IN_THE_MONTH.search(text):
        following = datetime.combine(moved(today.replace(day=1), Unit.MONTH, 1), time())
        later += [each.start for each in parse(text, following, ahead=True)]
    return sorted({*first, *later})


def _one_day(named: TimeRange, today: date, *, recurs: bool) -> date:
    """Return the day of a time that is meant: of what goes on today, of an end the last, else the first."""
    if _AT_THE_END.search(named.text):
        return named.end
    return today if named.start < today <= named.end and not recurs else named.start


def _early(text: str) -> tuple[str, int]:
    """Return a text without the words for how long before its moment is meant, and these minutes."""
    found = _EARLY.search(text)
    minutes = minutes_from_now((found["english"] or found["chinese"]).strip()) if found else None
    return (_blotted(text, [found.span()]), minutes) if found and minutes else (text, 0)


def _without_rules(text: str) -> str:
    """Return a text without the words that say that it recurs; 每月最后一天 is then that of this month."""
    for each in RECURS.finditer(text):
        within = _IN_THE_MONTH.match(text, each.start())
        instead = "本月" if within and each[0].startswith("每") else ""
        text = text[: each.start()] + instead.ljust(len(each[0])) + text[each.end() :]
    return text


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
