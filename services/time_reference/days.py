"""A single day that a text names by the calendar: 5月2号, May 2nd, 2 May 2023, 2023-05-02."""

from datetime import date, datetime, time, timedelta

from services.time_reference.parse import parse

_ANOTHER_DAY = timedelta(days=200)
"""Neither a whole number of weeks nor of months nor of years away."""


def named_day(text: str, today: date) -> date | None:
    """The day, if the text names exactly one; without a year it is the latest that is not after `today`.

    Days that count from today (yesterday, Monday, the 4th) are not named: said on another day, they are others.
    """
    elsewhere = {
        (found.begin, found.stop): (found.start.month, found.start.day)
        for found in parse(text, datetime.combine(today - _ANOTHER_DAY, time.min))
    }
    days = {
        found.start
        for found in parse(text, datetime.combine(today, time.min))
        if found.start == found.end
        and elsewhere.get((found.begin, found.stop)) == (found.start.month, found.start.day)
    }
    return days.pop() if len(days) == 1 else None
