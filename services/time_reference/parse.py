"""Reads the dates that a text names, and from when to when a statement holds by the mark at its end."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from services.time_reference import chinese, english
from services.time_reference.phrases import DayAhead, Found, TimeRange

_ANOTHER_DAY = timedelta(days=200)
"""A distance that is neither a whole number of weeks nor of months or years."""
_ENGLISH = re.compile(r"[A-Za-z0-9]")
_CHINESE = re.compile(r"[\u3400-\u9fff]")

_MARK = re.compile(r"[(（]([^()（）]{1,60})[)）]\W{0,8}$")
_UNTIL = re.compile(r"(?:until|till) |[到至].*止$", re.IGNORECASE)
_SINCE = re.compile(r"(?:since|from) (?!.{0,60} to )|(?:起|以来)$", re.IGNORECASE)
_BETWEEN = re.compile(r"(?<=.)(?: to |[到至–-])(?=.)", re.IGNORECASE)
_FORMERLY = re.compile(r"formerly|previously|以前|曾经?|过去", re.IGNORECASE)


def parse(text: str, now: datetime, *, ahead: bool = False) -> list[TimeRange]:
    """Return the times that a text names, in order of place; where they overlap, the longest.

    Relative words count from the date of `now`, the user's local date. Weeks begin on Monday. A time that recurs
    (a weekday, a month without a year) is the latest that has begun, including today; with `ahead`, it is the next
    one. A day that does not exist (June 31) is left out.
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
    """Return the longest, and of the others those that do not touch a longer one; in order of place."""
    taken = bytearray(length)
    kept = []
    for each in sorted(found, key=lambda each: (each[1] - each[2], each[1])):
        _, begin, stop = each
        if not any(taken[begin:stop]):
            taken[begin:stop] = b"\1" * (stop - begin)
            kept.append(each)
    return sorted(kept, key=lambda each: each[1])


def named_days(text: str, today: date) -> tuple[date, date] | None:
    """Return the first and last day if the text names exactly one day, or no day and exactly one longer time.

    Times without a year are the latest that do not begin after `today`. Days that are relative to today
    (yesterday, Monday, the 4th) do not count: said on another day, they would be other days.
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
    """When something holds: local days, both inclusive; None = open, or unknown."""

    valid_from: date | None = None
    valid_to: date | None = None
    ended: bool = False
    """Whether it is over, although the day of its end is unknown."""

    def is_over(self, day: date) -> bool:
        """Return whether it had ended before a day."""
        return self.ended or (self.valid_to is not None and self.valid_to < day)


ALWAYS = Validity()


def timed(text: str, now: datetime) -> Validity:
    """Read when a text holds; `now` is the user's local time when it was said."""
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
