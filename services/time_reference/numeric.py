"""Dates in digits: 2026-11-21, 11/21/2026, 21.11.2026, 20261121, 2026/11, 2019-Q1, 4/22.

The month comes before the day, unless only the other order is a date. Two numbers are a date only if they can
hardly be a fraction, or if the words before them ask for a date.
"""

import re
from datetime import date

from services.time_reference import phrases
from services.time_reference.phrases import Phrase, one_of
from services.time_reference.steps import day_of_month, month

_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = f"(?:{'|'.join(_NAMES)})[a-z]*"
_LOOK_BACK = 16
"""Characters before a date in which words are sought that say what it is."""
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_END = r"(?![\d%]|[.:,/]\d|[-–]\d{5}|(?<=\d)[A-Za-z])"
_BEGIN = re.compile(r"(?:[\d$€£#]|\d[.:/-]|\+\d[\d-]*[- ])$")

_DATE = re.compile(
    rf"(?P<y>{_YEAR})(?P<sep>\s?[-/.]\s?| )(?P<m>\d{{1,2}}|{_NAME})(?P=sep)(?P<d>\d{{1,2}}){_END}"
    rf"|(?P<y1>{_YEAR})(?P<m1>[01]\d)(?P<d1>[0-3]\d){_END}"
    rf"|(?P<a2>\d{{1,2}})(?P<sep2>\s?[-/.]\s?)(?P<b2>\d{{1,2}}|{_NAME})(?:(?P=sep2)|,\s?)(?P<y2>{_YEAR}){_END}"
    rf"|(?P<a3>\d{{1,2}})(?P<sep3>[-/])(?P<b3>\d{{1,2}}|{_NAME})(?:(?P=sep3)|,)(?P<y3>\d\d){_END}"
    rf"|(?P<yq>{_YEAR}|\d\d)[- ]?(?P<part>[qh])(?P<q>[1-4])\b"
    rf"|(?P<part2>[qh])(?P<q2>[1-4])[- ]?(?P<yq2>{_YEAR}){_END}"
    rf"|(?P<y4>{_YEAR})\s?[-/]\s?(?P<m4>0?[1-9]|1[0-2]){_END}(?!\s?[-–/]\s?\d)"
    rf"|(?P<m5>0?[1-9]|1[0-2])\s?[-/]\s?(?P<y5>(?:19|20)\d\d){_END}"
    rf"|(?P<a6>\d{{1,2}})(?P<sep6>[-/])(?P<b6>\d{{1,2}}){_END}(?!\s?[-/]\s?\d{{1,2}}(?:[-/]\d\d)?\b(?![-/]))",
    re.IGNORECASE | re.ASCII,
)
_ASKS_FOR_A_DATE = re.compile(
    r"(?:\b(?:on|by|since|until|till|from|before|after|between|to|through|this|next|last|dated?|of)|[从自到至在—–~])\s*$|^\s*$"
    r"|\d/\d{1,2}\s?[-–~]\s?$",
    re.IGNORECASE,
)
_AROUND_THE_CLOCK = (24, 7)
_ANOTHER = re.compile(r"\s?[-–~到至]\s?\d{1,2}/\d{1,2}(?!\d)")
_NOT_A_DATE = re.compile(rf"\s{{0,8}}(?:of\b|inch|cup|mile|分|%|点|{_NAME})", re.IGNORECASE)


def dated(text: str, at: int, today: date, *, follows: bool = False) -> tuple[Phrase | None, int] | None:
    """Return the date written at a place, and where it stops; no phrase if there is no such day. With
    `follows`, another date and a dash stand before it."""
    match = _DATE.match(text, at)
    if not match or (not follows and _BEGIN.search(text[max(0, at - _LOOK_BACK) : at])):
        return None
    found = match.groupdict()
    phrase: Phrase | None
    if found["a6"]:
        if not follows and not _is_month_and_day(text, match):
            return None
        phrase = _month_and_day(int(found["a6"]), int(found["b6"]))
    elif found["yq"] or found["yq2"]:
        phrase = _part_of_year(found, today)
    elif found["y4"] or found["y5"]:
        first = date(int(found["y4"] or found["y5"]), int(found["m4"] or found["m5"]), 1)
        phrase = Phrase(phrases.period(phrases.Unit.MONTH, first))
    else:
        span = _day(found, today)
        phrase = Phrase(span) if span else None
    return phrase, match.end()


def _is_month_and_day(text: str, match: re.Match[str]) -> bool:
    first, second = int(match["a6"]), int(match["b6"])
    if (first, second) == _AROUND_THE_CLOCK or not {first, second} <= {*phrases.DAY_NUMBERS}:
        return False
    if _NOT_A_DATE.match(text, match.end()):
        return False
    asked = _ASKS_FOR_A_DATE.search(text[max(0, match.start() - _LOOK_BACK) : match.start()]) is not None
    whole = match.end() == len(text.rstrip()) or match.start() > 0
    if _ANOTHER.match(text, match.end()):
        return True
    return (asked and whole) or (match["sep6"] == "/" and max(first, second) not in phrases.MONTH_NUMBERS)


def _month_and_day(first: int, second: int) -> Phrase | None:
    if first not in phrases.MONTH_NUMBERS:
        first, second = second, first
    phrase = one_of(phrases.Unit.YEAR, month(first), day_of_month(second))
    return phrase if phrase.until(date(2000, 12, 31)) else None


def _part_of_year(found: dict[str, str | None], today: date) -> Phrase | None:
    year = int(found["yq"] or found["yq2"] or 0)
    unit = phrases.Unit.HALF if (found["part"] or found["part2"] or "").lower() == "h" else phrases.Unit.QUARTER
    number = int(found["q"] or found["q2"] or 0)
    if number * unit.months > phrases.Unit.YEAR.months:
        return None
    first = date(phrases.full_year(year, today) if year in phrases.TWO_FIGURES else year, 1, 1)
    return Phrase(phrases.period(unit, first, number - 1))


def _day(found: dict[str, str | None], today: date) -> phrases.Span | None:
    year = int(found["y"] or found["y1"] or found["y2"] or 0)
    first = _month(found["m"] or found["m1"] or found["a2"] or found["a3"] or "")
    second = _month(found["d"] or found["d1"] or found["b2"] or found["b3"] or "")
    if found["y3"]:
        year = int(found["y3"])
        # 12-11-10 begins with the year, as the long form does; 8-11-10 and 12/11/10 begin with the month.
        if found["sep3"] == "-" and len(found["a3"] or "") == len("12") and (found["b3"] or "").isdecimal():
            first, second, year = second, year, first
        year = phrases.full_year(year, today)
    if first not in phrases.MONTH_NUMBERS or not (found["b2"] or found["b3"] or "1").isdecimal():
        first, second = second, first
    try:
        return phrases.day(date(year, first, second))
    except ValueError:
        return None


def _month(text: str) -> int:
    return int(text) if text.isdecimal() else _NAMES.index(text[:3].lower()) + 1
