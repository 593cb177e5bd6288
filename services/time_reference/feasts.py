"""Feast days in English, by their names."""

import re
from datetime import date, timedelta

from services.time_reference.phrases import Span, Step, Unit, day
from services.time_reference.steps import nth_weekday

_FIXED = {
    **{"christmas eve": (12, 24), "christmas": (12, 25), "boxing": (12, 26), "halloween": (10, 31)},
    **{"new year's eve": (12, 31), "new year's": (1, 1), "valentine's": (2, 14), "patrick's": (3, 17)},
}
_FROM_EASTER = {"good friday": -2, "easter monday": 1, "easter": 0}
_NTH = {"thanksgiving": (11, 3, 4), "mother's": (5, 6, 2)}
"""Month, weekday, and which of them in the month."""
FEAST = (
    r"(?:(?P<fixed>christmas eve|christmas|boxing(?= day)|halloween|new years? eve|new year's eve|new year's"
    r"|valentine's|(?:st\.?|saint) patrick's)|(?P<moved>good friday|easter monday|easter)"
    r"|(?P<nth>thanksgiving|mother's(?= day)))(?: (?:day|sunday))?\b"
)
FEASTS = re.sub(r"\?P<\w+>", "?:", FEAST)
"""Pattern of the feasts, without named groups."""
OF_A_COUNTRY = re.compile(r"\bthanksgiving\b|\bmother's day\b")
"""Feasts that are on other days in other countries; they are read as in the United States."""


def feast(name: str) -> Step:
    """Return the step to a feast in a year."""
    name = (
        name.replace("new years eve", "new year's eve").replace("new year eve", "new year's eve").split(". ")[-1]
    )
    name = name.removeprefix("st ").removeprefix("saint ")

    def step(span: Span) -> Span | None:
        if span.unit is not Unit.YEAR:
            return None
        year = span.start.year
        if name in _FIXED:
            return day(date(year, *_FIXED[name]))
        if name in _FROM_EASTER:
            return day(_easter(year) + timedelta(days=_FROM_EASTER[name]))
        month, weekday, which = _NTH[name]
        return nth_weekday(weekday, which)(Span(date(year, month, 1), date(year, month, 30)))

    return step


def _easter(year: int) -> date:
    """Return Easter Sunday of the Gregorian calendar, by the rule of Meeus, Jones and Butcher."""
    golden, (century, of_century) = year % 19, divmod(year, 100)
    leap, rest = divmod(century, 4)
    moon = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - leap - moon + 15) % 30
    years, left = divmod(of_century, 4)
    weekday = (32 + 2 * rest + 2 * years - epact - left) % 7
    correction = (golden + 11 * epact + 22 * weekday) // 451
    month, number = divmod(epact + weekday - 7 * correction + 114, 31)
    return date(year, month, number + 1)
