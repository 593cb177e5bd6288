"""Steps from a stretch of time to a part of it: May of a year, the 5th of a month, Monday of a week, its end.

A step answers None where there is no such part: the 30th of a February.
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
"""Months before a part, and of it."""
_DAYS_OF_WEEK = {"early": (0, 2), "middle": (2, 3), "late": (4, 6)}


def month(number: int) -> Step:
    """The month of a year, 1 to 12."""

    def step(span: Span) -> Span | None:
        if number not in MONTH_NUMBERS or span.unit not in {Unit.YEAR, Unit.HALF, Unit.QUARTER}:
            return None
        found = period(Unit.MONTH, date(span.start.year, number, 1))
        return found if span.start <= found.start <= span.end else None

    return step


def day_of_month(number: int) -> Step:
    """The day of a month, 1 to 31."""

    def step(span: Span) -> Span | None:
        last = span.end.day
        return day(span.start.replace(day=number)) if span.unit is Unit.MONTH and 1 <= number <= last else None

    return step


def days_of_month(first: int, last: int) -> Step:
    """The days of a month from one to the other."""

    def step(span: Span) -> Span | None:
        if span.unit is not Unit.MONTH or not 1 <= first <= last <= span.end.day:
            return None
        return Span(span.start.replace(day=first), span.start.replace(day=last))

    return step


def weekday(number: int, *, strict: bool = True) -> Step:
    """The day of a week, Monday being 0; a day stays itself, if strict only if it is that one."""

    def step(span: Span) -> Span | None:
        if span.unit is Unit.WEEK:
            return day(span.start + timedelta(days=number))
        return span if span.unit is Unit.DAY and (not strict or span.start.weekday() == number) else None

    return step


def weekend(span: Span) -> Span | None:
    """Saturday and Sunday of a week."""
    return Span(span.end - ONE_DAY, span.end) if span.unit is Unit.WEEK else None


def working_days(span: Span) -> Span | None:
    """Monday to Friday of a week."""
    return Span(span.start, span.start + timedelta(days=4)) if span.unit is Unit.WEEK else None


def season(name: str) -> Step:
    """Three months from March, June, September or December of a year on."""

    def step(span: Span) -> Span | None:
        start = date(span.start.year, _SEASONS[name], 1)
        return Span(start, month_after(start, 3) - ONE_DAY) if span.unit is Unit.YEAR else None

    return step


def nth_weekday(number: int, which: int) -> Step:
    """The which-th such day of the week in it, from 1 on; from the end, -1 being the last."""

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
    """The weekend of the which-th Saturday in it."""
    saturday = nth_weekday(5, which)

    def step(span: Span) -> Span | None:
        found = saturday(span)
        return Span(found.start, found.start + ONE_DAY) if found else None

    return step


def nth(unit: Unit, which: int, count: int = 1, *, begun_weeks: bool = False) -> Step:
    """A number of units from the which-th on, from 1; from the end, -1 being the last, that many up to it.

    A week is of the month or year that most of its days are of; with `begun_weeks` it is of the month that it
    begins in.
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
    """The early, middle or late part: of a month its thirds (with `narrow` its first five or last days), of a year
    its first or last three months, of a week up to Wednesday or from Friday on.
    """

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
    """The first or second half: of a year six months, of a month from the 16th on, of a week from Thursday on."""

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
    """The day of a week, a month or a year, or the month of a year, that is today's: 去年今天, 上周今天."""

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
    """The week that it begins in."""
    return period(Unit.WEEK, span.start)
