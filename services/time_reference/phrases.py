"""Phrases of time before it is known which time they mean: Monday, May, the 5th, 2023, last week.

A phrase that names no beginning (May) is one of many. By itself it is the latest that has begun; in "from May to
July" and "from February to June 2018" its neighbour says which one.
"""

from dataclasses import dataclass, replace
from datetime import date

from services.time_reference.ranges import Span, Unit, period
from services.time_reference.steps import Step

Found = tuple[Span | None, int, int]
"""A stretch of time and its place in a text; without one if the words name a day that there is not."""

_ENOUGH = 3
"""One ahead of the day, one that is running on it, one behind."""
_CYCLES_TRIED = 30
"""A 31st that is a Friday is at most 13 months away, a 29th of February 8 years."""


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
        """What it says; of many, the latest that has begun. None if there is no such day."""
        return self._in(self.base) if self.base else self.until(today)

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

    def _all(self, around: date, direction: int) -> list[Span]:
        if self.cycle is None:
            return []
        spans = []
        for number in range(-1, _CYCLES_TRIED):
            try:
                span = self._in(period(self.cycle, around, number * direction))
            except (ValueError, OverflowError):
                break
            if span is not None:
                spans.append(span)
            if len(spans) == _ENOUGH:
                break
        return spans


def known(span: Span) -> Phrase:
    """The phrase that is this stretch."""
    return Phrase(span)


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
