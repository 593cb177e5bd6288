"""Stretches of days, and the arithmetic of the calendar that they need.

Weeks begin on Monday. Nothing here reads a clock.
"""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum


@dataclass(frozen=True, slots=True)
class TimeRange:
    """What a text says of time: local dates, both inclusive, and `text[begin:stop]`, which says it."""

    start: date
    end: date
    text: str
    begin: int
    stop: int


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


ONE_DAY = timedelta(days=1)
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


def day(of: date) -> Span:
    """That one day."""
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
