"""Days and festivals of the Chinese calendar as days of the Gregorian calendar."""

from datetime import date, timedelta
from functools import lru_cache

from services.time_reference.phrases import ONE_DAY, Span, Step, Unit, day

MONTHS = {"正": 1, "冬": 11, "腊": 12}
"""Months that have a name of their own."""
_FIXED = {
    "元旦": (1, 1),
    "劳动节": (5, 1),
    "儿童节": (6, 1),
    "教师节": (9, 10),
    "国庆节": (10, 1),
    "圣诞节": (12, 25),
    **{"情人节": (2, 14), "妇女节": (3, 8), "愚人节": (4, 1), "五一": (5, 1), "国庆": (10, 1), "万圣节": (10, 31)},
    **{"平安夜": (12, 24), "圣诞": (12, 25)},
}
_LUNAR = {
    **{"春节": (1, 1), "农历新年": (1, 1), "元宵节": (1, 15), "端午": (5, 5), "七夕": (7, 7), "中元节": (7, 15)},
    **{"中秋": (8, 15), "重阳节": (9, 9), "腊八": (12, 8)},
    **{f"大年初{number}": (1, at) for at, number in enumerate("一二三四五六七", 1)},
}
_SOLAR_TERMS = frozenset({"立春", "春分", "清明", "立夏", "夏至", "立秋", "秋分", "立冬", "冬至"})
ONLY_AHEAD = frozenset(
    {"情人节", "妇女节", "愚人节", "五一", "国庆", "万圣节", "平安夜", "圣诞", "腊八", "清明节", *_SOLAR_TERMS}
)
"""Names that stand for a day where somebody plans, and often for something else where they tell."""
_LAST_EVENING = frozenset({"除夕", "大年三十", "大年夜"})
_YEARS = range(1000, 3000)
"""Years whose calendar is computed."""


def lunar(month: int, number: int | None) -> Step:
    """Return the step to a lunar month of a year, negative for a leap month, or to a day of that month."""

    def step(span: Span) -> Span | None:
        found = _month(span.start.year, month) if span.unit is Unit.YEAR else None
        if found is None:
            return None
        if number is None:
            return Span(found.start, found.end)
        of = found.start + timedelta(days=number - 1)
        return day(of) if number > 0 and of <= found.end else None

    return step


def festival(name: str) -> Step:
    """Return the step to a festival in a Gregorian year."""

    def step(span: Span) -> Span | None:
        year = span.start.year
        if span.unit is not Unit.YEAR:
            return None
        if name in _FIXED:
            return day(date(year, *_FIXED[name]))
        if name in _LAST_EVENING:
            first = _month(year, 1)
            return day(first.start - ONE_DAY) if first else None
        if name.removesuffix("节") in _SOLAR_TERMS:
            return day(_solar_term(year, name.removesuffix("节")))
        month, number = _LUNAR.get(name) or _LUNAR[name.removesuffix("节")]
        for of in (year - 1, year):
            first = _month(of, month)
            if first and (found := first.start + timedelta(days=number - 1)).year == year:
                return day(found)
        return None

    return step


@lru_cache(maxsize=1024)
def _month(year: int, month: int) -> Span | None:
    """Return the days of a month of the Chinese year that begins in `year`; None if it has no such leap month."""
    from lunar_python import LunarMonth, Solar  # noqa: PLC0415 — a tenth of a second that few messages need

    found = LunarMonth.fromYm(year, month) if year in _YEARS else None
    if found is None:
        return None
    first = Solar.fromJulianDay(found.getFirstJulianDay())
    start = date(first.getYear(), first.getMonth(), first.getDay())
    return Span(start, start + timedelta(days=found.getDayCount() - 1))


def _solar_term(year: int, name: str) -> date:
    from lunar_python import Solar  # noqa: PLC0415 — as above

    found = Solar.fromYmd(year, 6, 1).getLunar().getJieQiTable()
    of = {**found, "冬至": found["DONG_ZHI"]}[name]
    return date(of.getYear(), of.getMonth(), of.getDay())
