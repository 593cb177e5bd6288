"""Stretches of days, and phrases of time before it is known which time they mean: Monday, May, the 5th, last week.

A phrase that names no beginning (May) is one of many. By itself it is the latest that has begun; in "from May to
July" and "from February to June 2018" its neighbour says which one. Weeks begin on Monday. Nothing here reads a
clock.
"""

from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import Enum

_CYCLES_TRIED = 30
"""A 31st that is a Friday is at most 13 months away, a 29th of February 8 years."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A text's statement of time: local dates, both inclusive, and `text[begin:stop]`, which makes it."""

    start: date
    end: date
    text: str
    begin: int
    stop: int


class DayAhead(date):
    """The day on which a text looks ahead: what is one of many is then the first that begins no earlier."""


class Unit(Enum):
    """A unit of the calendar; the value is its length in months, or for the short ones in days."""

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
        """Its length in months; 0 for a day or a week."""
        return self.value[0]

    @property
    def days(self) -> int:
        """Its length in days; 0 for whatever is made of months."""
        return self.value[1]

    @property
    def half(self) -> tuple[int, "Unit"]:
        """How many of which unit are half of it: six months, 15 days, three days."""
        if self.months > 1:
            return self.months // 2, Unit.MONTH
        return 15 if self is Unit.MONTH else self.days // 2, Unit.DAY


ONE_DAY = timedelta(days=1)
FEW = (2, 7)
"""Least and most that "a few", 几, means."""
MONTH_NUMBERS = range(1, 13)
DAY_NUMBERS = range(1, 32)
TWO_FIGURES = range(100)
"""Years that are written without their century."""


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `start` to `end`, both inclusive; `unit` says which unit of the calendar they are, if one."""

    start: date
    end: date
    unit: Unit | None = None


Step = Callable[[Span], Span | None]
"""From a stretch of days to a part of it, or to another one; None if there is no such."""
Found = tuple[Span | None, int, int]
"""A stretch of time and its place in a text; without one if the words name a day that there is not."""


def day(of: date) -> Span:
    """Return the range of one day."""
    return Span(of, of, Unit.DAY)


def month_after(of: date, months: int) -> date:
    """The first of the month `months` after (or before) that of the date.

    Raises:
        ValueError: the calendar ends before.
    """
    years, month = divmod(of.year * 12 + of.month - 1 + months, 12)
    return date(years, month + 1, 1)


def moved(of: date, unit: Unit, count: int) -> date:
    """The date that many units later (or earlier), on the last day of a month that is too short for it.

    Raises:
        ValueError, OverflowError: the calendar ends before.
    """
    if unit.days:
        return of + timedelta(days=unit.days * count)
    month = month_after(of, unit.months * count)
    return month.replace(day=min(of.day, monthrange(month.year, month.month)[1]))


def period(unit: Unit, of: date, later: int = 0) -> Span:
    """The calendar unit that holds the date, or the one that many units later.

    Raises:
        ValueError, OverflowError: the calendar ends before.
    """
    if unit.days:
        start = of - timedelta(days=of.weekday() if unit is Unit.WEEK else 0) + timedelta(days=unit.days * later)
        return Span(start, start + timedelta(days=unit.days - 1), unit)
    into = (of.year * 12 + of.month - 1) % unit.months
    start = month_after(of, unit.months * later - into)
    return Span(start, month_after(start, unit.months) - ONE_DAY, unit)


def full_year(digits: int, today: date) -> int:
    """The year that two digits stand for: not more than ten years ahead."""
    year = today.year - today.year % 100 + digits
    return year - 100 if year > today.year + 10 else year


@dataclass(frozen=True, slots=True)
class Phrase:
    """Steps from a known stretch of time (`base`), or from one of the units that follow each other (`cycle`)."""

    base: Span | None = None
    cycle: Unit | None = None
    steps: tuple[Step, ...] = ()

    def narrowed(self, *steps: Step) -> "Phrase":
        """This one with further steps."""
        return replace(self, steps=self.steps + steps)

    def within(self, span: Span) -> "Phrase":
        """The one of this stretch: Monday of last week."""
        return replace(self, base=span, cycle=None)

    def resolved(self, today: date) -> Span | None:
        """Return the range meant; of many, the latest that has begun, or the next. None if there is none."""
        return self.after(today) if isinstance(today, DayAhead) else self.until(today)

    def until(self, latest: date) -> Span | None:
        """The last one that begins no later than that."""
        if self.base:
            return self._in(self.base)
        return next((span for span in self._all(latest, -1) if span.start <= latest), None)

    def after(self, earliest: date) -> Span | None:
        """The first one that begins no earlier than that."""
        if self.base:
            return self._in(self.base)
        return next((span for span in self._all(earliest, 1) if span.start >= earliest), None)

    def _in(self, span: Span) -> Span | None:
        found: Span | None = span
        try:
            for step in self.steps:
                found = step(found) if found else None
        except (ValueError, OverflowError):  # the calendar ends
            return None
        return found

    def _all(self, around: date, direction: int) -> Iterator[Span]:
        """One that is ahead of the day, or running on it, and those before; or the other way round."""
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
    """From the one to the other of two numbers of units ahead, or with a `sign` of -1 ago: a few days ago."""
    first, last = (period(unit, moved(today, unit, count)) for count in sorted(sign * each for each in counts))
    return Phrase(Span(first.start, last.end))


def one_of(cycle: Unit, *steps: Step) -> Phrase:
    """One of many: the part that the steps lead to, of any of these units."""
    return Phrase(None, cycle, steps)


def joined(first: Phrase, last: Phrase, today: date) -> Span | None:
    """From the beginning of one to the end of the other; None if the other is not later."""
    if first.base is None and last.base is not None:
        end = last.resolved(today)
        start = first.until(end.end) if end else None
    else:
        start = first.resolved(today)
        end = last.after(start.start) if start else None
    return Span(start.start, end.end) if start and end and start.start <= end.end else None
