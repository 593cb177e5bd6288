"""From a text to the dates that it speaks of, and to when a statement holds by the mark at its end."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from services.time_reference import chinese, english
from services.time_reference.phrases import DayAhead, Found, TimeRange

_ANOTHER_DAY = timedelta(days=200)
"""Neither a whole number of weeks nor of months nor of years away."""
_ENGLISH = re.compile(r"[A-Za-z0-9]")
_CHINESE = re.compile(r"[\u3400-\u9fff]")

_MARK = re.compile(r"[(（]([^()（）]{1,60})[)）]\W{0,8}$")
_UNTIL = re.compile(r"(?:until|till) |[到至].*止$", re.IGNORECASE)
_SINCE = re.compile(r"(?:since|from) (?!.{0,60} to )|(?:起|以来)$", re.IGNORECASE)
_BETWEEN = re.compile(r"(?<=.)(?: to |[到至–-])(?=.)", re.IGNORECASE)
_FORMERLY = re.compile(r"formerly|previously|以前|曾经?|过去", re.IGNORECASE)


def parse(text: str, now: datetime, *, ahead: bool = False) -> list[TimeRange]:
    """The stretches of time that a text names, in order of place, none within another; the longest wins.

    Relative words count from `now`'s date, which is the user's local one. Weeks begin on Monday. What is one of
    many (a weekday, a month without a year) is the latest that has begun, today's included; where the text looks
    `ahead`, it is the next. A day that does not exist (June 31) is nothing.
    """
    today = DayAhead.fromordinal(now.toordinal()) if ahead else now.date()
    found = english.found_in(text, today) if _ENGLISH.search(text) else []
    if _CHINESE.search(text):
        found += chinese.found_in(text, today)
    return [
        TimeRange(span.start, span.end, text[begin:stop], begin, stop)
        for span, begin, stop in _apart(found, len(text))
        if span is not None
    ]


def _apart(found: list[Found], length: int) -> list[Found]:
    """The longest first, and of the others those that touch none before; in order of place."""
    taken = bytearray(length)
    kept = []
    for each in sorted(found, key=lambda each: (each[1] - each[2], each[1])):
        _, begin, stop = each
        if not any(taken[begin:stop]):
            taken[begin:stop] = b"\1" * (stop - begin)
            kept.append(each)
    return sorted(kept, key=lambda each: each[1])


def named_days(text: str, today: date) -> tuple[date, date] | None:
    """The first and the last day, if the text names exactly one day, or none and exactly one longer time.

    Without a year they are the latest that do not begin after `today`. Days that count from today (yesterday,
    Monday, the 4th) are not named: said on another day, they are others.
    """
    found = parse(text, datetime.combine(today, time.min))
    if not found:
        return None
    elsewhere = {
        (each.begin, each.stop): _in_its_year(each)
        for each in parse(text, datetime.combine(today - _ANOTHER_DAY, time.min))
    }
    named = {
        (each.start, each.end) for each in found if elsewhere.get((each.begin, each.stop)) == _in_its_year(each)
    }
    days = {(start, end) for start, end in named if start == end} or named
    return days.pop() if len(days) == 1 else None


def _in_its_year(found: TimeRange) -> tuple[int, ...]:
    return found.start.month, found.start.day, found.end.month, found.end.day


@dataclass(frozen=True)
class Validity:
    """When something holds: local days, both inclusive; None = open, or not known."""

    valid_from: date | None = None
    valid_to: date | None = None
    ended: bool = False
    """Whether it is over, though it is not known since when."""

    def is_over(self, day: date) -> bool:
        """Whether it had ended before a day."""
        return self.ended or (self.valid_to is not None and self.valid_to < day)


ALWAYS = Validity()


def timed(text: str, now: datetime) -> Validity:
    """Read when a text holds, said at `now`, the user's local time."""
    mark = _MARK.search(text)
    if mark is None:
        return ALWAYS
    said = mark[1].strip()
    if _FORMERLY.fullmatch(said):
        return Validity(ended=True)
    days = parse(said, now)
    if not days:
        return ALWAYS
    first, last = days[0].start, days[-1].end
    if _UNTIL.match(said):
        return Validity(valid_to=last)
    if _SINCE.match(said) or _SINCE.search(said):
        return Validity(valid_from=first)
    return Validity(first, last) if _BETWEEN.search(said) and first < last else ALWAYS
