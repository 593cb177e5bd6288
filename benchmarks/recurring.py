"""Moments of what recurs, in the notation of `benchmarks.promises`; written apart from the service's own reader.

`day 08:00`, `2 days 08:00`, `monday 09:00`, `tuesday,thursday 18:00`, `weekday 07:30`, `month 5`, `month last`,
`month first monday 10:00`, `year 02-02 08:00`, `lunar year 03-18`; a part of the day may stand for the time.
"""

from calendar import day_name, monthrange
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import islice

from lunar_python import Solar

_DAYS = [each.lower() for each in day_name]
_MOST = 8
_WORKDAYS = 5
_YEARS = 12


def moments_of(every: str, first: str) -> list[datetime]:
    """Return the first moments after `first`; without a time of day they are at midnight."""
    begin = datetime.fromisoformat(first)
    clock = begin.time() if "T" in first else time()
    days = islice(_days(every.split(), begin.date()), _MOST)
    return [datetime.combine(day, clock) for day in days if day > begin.date()]


def _days(words: list[str], begin: date) -> Iterator[date]:
    """Yield the days of a rule from one on, for twelve years at most."""
    every = int(words[0]) if words[0].isdecimal() else 1
    for number in range(366 * _YEARS):
        day = begin + timedelta(days=number)
        if number % every == 0 and _is_one(words, day):
            yield day


def _is_one(words: list[str], day: date) -> bool:
    unit, rest = words[0], words[1:]
    weekday = _DAYS[day.weekday()]
    if unit == "lunar":
        lunar = Solar.fromYmd(day.year, day.month, day.day).getLunar()
        return f"{lunar.getMonth():02}-{lunar.getDay():02}" == rest[1]
    if unit == "month":
        first = day.day <= len(_DAYS) and weekday in rest
        last = day.day == monthrange(day.year, day.month)[1]
        return {"first": first, "last": last}.get(rest[0], str(day.day) == rest[0])
    if unit == "year":
        return f"{day:%m-%d}" == rest[0]
    working = unit == "weekday" and day.weekday() < _WORKDAYS
    return working or unit == "day" or unit.isdecimal() or weekday in unit.split(",")
