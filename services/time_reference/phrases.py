"""Ranges of days, and phrases for times whose date is not decided yet: Monday, May, the 5th, last week.

A phrase without a fixed year or week (May) recurs. By itself it means the latest that has begun; in "from May to
July" and "from February to June 2018" its neighbour decides. Weeks begin on Monday. Nothing here reads a clock.
"""

from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import Enum

_CYCLES_TRIED = 30
"""Maximum units that are tried: a 31st that is a Friday is at most 13 months away, a 29th of February 8 years."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time that a text names: local dates, both inclusive, and its words, `text[begin:stop]`."""

    start: date
    end: date
    text: str
    begin: int
    stop: int


class DayAhead(date):
    """A date from which a text looks ahead: a recurring time is then the first that begins no earlier."""


class Unit(Enum):
    """A unit of the calendar; the value is its length in months, or in days if it is shorter than a month."""

    DAY = (0, 1)
    WEEK = (0, 7)
    MONTH = (1, 0)
    QUARTER = (3, 0)
    HALF = (6, 0)
    YEAR = (12, 0)
    DECADE = (120, 0)
    CENTURY = (1200, 0)

    @property
    def months(self) -> int:
        """Return the length in months; 0 for a day or a week."""
        return self.value[0]

    @property
    def days(self) -> int:
        """Return the length in days; 0 for units made of months."""
        return self.value[1]

    @property
    def half(self) -> tuple[int, "Unit"]:
        """Return half of the unit as a number and a unit: six months, 15 days, three days."""
        if self.months > 1:
            return self.months // 2, Unit.MONTH
        return 15 if self is Unit.MONTH else self.days // 2, Unit.DAY


ONE_DAY = timedelta(days=1)
FEW = (2, 7)
"""Minimum and maximum that "a few" or 几 means."""
MONTH_NUMBERS = range(1, 13)
DAY_NUMBERS = range(1, 32)
TWO_FIGURES = range(100)
"""Years that are written without a century."""


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `start` to `end`, both inclusive; `unit` is the unit of the calendar that they are, if any."""

    start: date
    end: date
    unit: Unit | None = None


Step = Callable[[Span], Span | None]
"""Function from a range of days to a part of it, or to another range; None if there is none."""
Found = tuple[Span | None, int, int]
"""A range of days, or None if the words name a day that does not exist, and the place of the words."""


def day(of: date) -> Span:
    """Return the range of one day."""
    return Span(of, of, Unit.DAY)


def month_after(of: date, months: int) -> date:
    """Return the first day of the month that is `months` after the month of a date, or before it if negative.
    Raises `ValueError` if the result is outside the calendar."""
    years, month = divmod(of.year * 12 + of.month - 1 + months, 12)
    return date(years, month + 1, 1)


def moved(of: date, unit: Unit, count: int) -> date:
    """Return the date that many units later, or earlier; a month that is too short gives its last day.

    Raises:
        ValueError, OverflowError: The result is outside the calendar.
    """
    if unit.days:
        return of + timedelta(days=unit.days * count)
    month = month_after(of, unit.months * count)
    return month.replace(day=min(of.day, monthrange(month.year, month.month)[1]))


def period(unit: Unit, of: date, later: int = 0) -> Span:
    """Return the calendar unit that holds the date, or the one that many units later.

    Raises:
        ValueError, OverflowError: The result is outside the calendar.
    """
    if unit.days:
        start = of - timedelta(days=of.weekday() if unit is Unit.WEEK else 0) + timedelta(days=unit.days * later)
        return Span(start, start + timedelta(days=unit.days - 1), unit)
    into = (of.year * 12 + of.month - 1) % unit.months
    start = month_after(of, unit.months * later - into)
    return Span(start, month_after(start, unit.months) - ONE_DAY, unit)


def full_year(digits: int, today: date) -> int:
    """Return the year that two digits stand for, at most ten years ahead."""
    year = today.year - today.year % 100 + digits
    return year - 100 if year > today.year + 10 else year


@dataclass(frozen=True, slots=True)
class Phrase:
    """Steps from a known range of days (`base`), or from each unit of a recurring kind (`cycle`)."""

    base: Span | None = None
    cycle: Unit | None = None
    steps: tuple[Step, ...] = ()

    def narrowed(self, *steps: Step) -> "Phrase":
        return replace(self, steps=self.steps + steps)

    def within(self, span: Span) -> "Phrase":
        """Return this phrase inside a range: the Monday of last week."""
        return replace(self, base=span, cycle=None)

    def resolved(self, today: date) -> Span | None:
        """Return the range that is meant: if the phrase recurs, the latest that has begun, or the next."""
        return self.after(today) if isinstance(today, DayAhead) else self.until(today)

    def until(self, latest: date) -> Span | None:
        """Return the last range that begins no later than `latest`."""
        if self.base:
            return self._in(self.base)
        return next((span for span in self._all(latest, -1) if span.start <= latest), None)

    def after(self, earliest: date) -> Span | None:
        """Return the first range that begins no earlier than `earliest`."""
        if self.base:
            return self._in(self.base)
        return next((span for span in self._all(earliest, 1) if span.start >= earliest), None)

    def _in(self, span: Span) -> Span | None:
        found: Span | None = span
        try:
            for step in self.steps:
                found = step(found) if found else None
        except (ValueError, OverflowError):  # outside the calendar
            return None
        return found

    def _all(self, around: date, direction: int) -> Iterator[Span]:
        """Yield the range of each unit of the cycle: from one unit against `direction`, then on in `direction`."""
        if self.cycle is None:
            return
        for number in range(-1, _CYCLES_TRIED):
            try:
                span = self._in(period(self.cycle, around, number * direction))
            except (ValueError, OverflowError):
                return
            if span is not None:
                yield span


def about(today: date, unit: Unit, sign: int, counts: tuple[int, int] = FEW) -> Phrase:
    """Return from `counts[0]` to `counts[1]` units ahead, or ago with a `sign` of -1: a few days ago."""
    first, last = (period(unit, moved(today, unit, count)) for count in sorted(sign * each for each in counts))
    return Phrase(Span(first.start, last.end))


def one_of(cycle: Unit, *steps: Step) -> Phrase:
    """Return a recurring phrase: the part that the steps lead to, in any unit of this kind."""
    return Phrase(None, cycle, steps)


def joined(first: Phrase, last: Phrase, today: date) -> Span | None:
    """Return from the beginning of one phrase to the end of the other; None if the other is not later."""
    if first.base is None and last.base is not None:
        end = last.resolved(today)
        start = first.until(end.end) if end else None
    else:
        start = first.resolved(today)
        end = last.after(start.start) if start else None
    return Span(start.start, end.end) if start and end and start.start <= end.end else None
