"""Steps from a range of days to a part of it: May of a year, the 5th of a month, Monday of a week, its end.

A step returns None if there is no such part: the 30th of a February.
"""

from datetime import date, timedelta
from typing import Literal

from services.time_reference.phrases import (
    MONTH_NUMBERS,
    ONE_DAY,
    Span,
    Step,
    Unit,
    day,
    month_after,
    moved,
    period,
)

Part = Literal["early", "middle", "late"]

_THURSDAY = timedelta(days=3)
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
_MONTHS_OF: dict[Unit, dict[Part, tuple[int, int]]] = {
    Unit.QUARTER: {"early": (0, 1), "middle": (1, 1), "late": (2, 1)},
    Unit.HALF: {"early": (0, 2), "middle": (2, 2), "late": (4, 2)},
    Unit.YEAR: {"early": (0, 3), "middle": (4, 4), "late": (9, 3)},
    Unit.DECADE: {"early": (0, 36), "middle": (36, 36), "late": (72, 48)},
}
"""Length of each part of a unit: months before it, and months in it."""
_DAYS_OF_WEEK = {"early": (0, 2), "middle": (2, 3), "late": (4, 6)}


def month(number: int) -> Step:
    """Return the step to a month of a year, 1 to 12."""

    def step(span: Span) -> Span | None:
        if number not in MONTH_NUMBERS or span.unit not in {Unit.YEAR, Unit.HALF, Unit.QUARTER}:
            return None
        found = period(Unit.MONTH, date(span.start.year, number, 1))
        return found if span.start <= found.start <= span.end else None

    return step


def day_of_month(number: int) -> Step:
    """Return the step to a day of a month, 1 to 31."""

    def step(span: Span) -> Span | None:
        last = span.end.day
        return day(span.start.replace(day=number)) if span.unit is Unit.MONTH and 1 <= number <= last else None

    return step


def days_of_month(first: int, last: int) -> Step:
    """Return the step to the days of a month from one to another."""

    def step(span: Span) -> Span | None:
        if span.unit is not Unit.MONTH or not 1 <= first <= last <= span.end.day:
            return None
        return Span(span.start.replace(day=first), span.start.replace(day=last))

    return step


def weekday(number: int, *, strict: bool = True) -> Step:
    """Return the step to a weekday, Monday being 0; a day stays itself, with `strict` only if it is that day."""

    def step(span: Span) -> Span | None:
        if span.unit is Unit.WEEK:
            return day(span.start + timedelta(days=number))
        return span if span.unit is Unit.DAY and (not strict or span.start.weekday() == number) else None

    return step


def weekend(span: Span) -> Span | None:
    """Return Saturday and Sunday of a week."""
    return Span(span.end - ONE_DAY, span.end) if span.unit is Unit.WEEK else None


def working_days(span: Span) -> Span | None:
    """Return Monday to Friday of a week."""
    return Span(span.start, span.start + timedelta(days=4)) if span.unit is Unit.WEEK else None


def season(name: str) -> Step:
    """Return the step to a season: three months of a year that begin in March, June, September or December."""

    def step(span: Span) -> Span | None:
        start = date(span.start.year, _SEASONS[name], 1)
        return Span(start, month_after(start, 3) - ONE_DAY) if span.unit is Unit.YEAR else None

    return step


def nth_weekday(number: int, which: int) -> Step:
    """Return the step to the which-th such weekday of a range, from 1, or from the end: -1 is the last."""

    def step(span: Span) -> Span | None:
        if which > 0:
            ahead = (number - span.start.weekday()) % 7
            found = span.start + timedelta(days=ahead + 7 * (which - 1))
        else:
            behind = (span.end.weekday() - number) % 7
            found = span.end - timedelta(days=behind + 7 * (-which - 1))
        return day(found) if span.start <= found <= span.end else None

    return step


def nth_weekend(which: int) -> Step:
    """Return the step to the weekend of the which-th Saturday."""
    saturday = nth_weekday(5, which)

    def step(span: Span) -> Span | None:
        found = saturday(span)
        return Span(found.start, found.start + ONE_DAY) if found else None

    return step


def nth(unit: Unit, which: int, count: int = 1, *, begun_weeks: bool = False) -> Step:
    """Return the step to `count` units from the which-th on, from 1; a negative number counts from the end.

    A week belongs to the month or year with most of its days; with `begun_weeks`, to the month in which it begins.
    """

    def step(span: Span) -> Span | None:
        first, last = period(unit, span.start), period(unit, span.end)
        if unit is Unit.WEEK:
            reach = timedelta(0) if begun_weeks and span.unit is Unit.MONTH else _THURSDAY
            if first.start + reach < span.start:
                first = period(unit, first.start, 1)
            if last.start + reach > span.end:
                last = period(unit, last.start, -1)
        if which > 0:
            start = period(unit, first.start, which - 1).start
            end = period(unit, first.start, which + count - 2).end
        else:
            start = period(unit, last.start, which + 2 - count).start
            end = period(unit, last.start, which + 1).end
        if (
            start < first.start
            or end > last.end
            or (unit.months and span.unit and unit.months >= span.unit.months)
        ):
            return None
        return Span(start, end, unit if count == 1 else None)

    return step


def part(which: Part, *, narrow: bool = False) -> Step:
    """Return the step to the early, middle or late part: thirds of a month (with `narrow` its first or last
    five days), the first or last three months of a year, a week up to Wednesday or from Friday on."""

    def step(span: Span) -> Span | None:
        start = span.start
        if span.unit is Unit.DAY:
            return span
        if span.unit is Unit.WEEK:
            first, last = _DAYS_OF_WEEK[which]
            return Span(start + timedelta(days=first), start + timedelta(days=last))
        if span.unit is Unit.MONTH:
            return _part_of_month(span, which, narrow)
        if span.unit not in _MONTHS_OF:
            return None
        skipped, months = _MONTHS_OF[span.unit][which]
        begun = month_after(start, skipped)
        return Span(begun, month_after(begun, months) - ONE_DAY)

    return step


def _part_of_month(span: Span, which: Part, narrow: bool) -> Span:
    if which == "early":
        return Span(span.start, span.start.replace(day=5 if narrow else 10))
    if which == "middle":
        return Span(span.start.replace(day=11), span.start.replace(day=20))
    return Span(span.start.replace(day=25 if narrow else 21), span.end)


def half_of_it(which: int) -> Step:
    """Return the step to a half: six months of a year, a month from the 16th on, a week from Thursday on."""

    def step(span: Span) -> Span | None:
        if span.unit is Unit.YEAR:
            return period(Unit.HALF, span.start, which - 1)
        if span.unit is Unit.MONTH:
            second = span.start.replace(day=16)
        elif span.unit is Unit.WEEK:
            second = span.start + _THURSDAY
        elif span.unit is Unit.DECADE:
            second = moved(span.start, Unit.YEAR, 5)
        else:
            return None
        return Span(span.start, second - ONE_DAY) if which == 1 else Span(second, span.end)

    return step


def same_as(unit: Unit, today: date) -> Step:
    """Return the step to the day, or the month, that corresponds to today: 去年今天, 上周今天."""

    def step(span: Span) -> Span | None:
        if span.unit is Unit.WEEK:
            return day(span.start + timedelta(days=today.weekday())) if unit is Unit.DAY else None
        if span.unit not in {Unit.MONTH, Unit.YEAR} or span.unit is unit:
            return None
        months = (span.start.year - today.year) * 12
        months += span.start.month - today.month if span.unit is Unit.MONTH else 0
        return period(unit, moved(today, Unit.MONTH, months))

    return step


def week_of(span: Span) -> Span | None:
    """Return the week in which a range begins."""
    return period(Unit.WEEK, span.start)
