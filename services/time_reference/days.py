"""A single day that a text names: 5月2号, May 2nd, 2 May 2023, 2023-05-02."""

import re
from datetime import date

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS) + "|sept"
_ALSO_VERBS = frozenset({"may", "march", "mar"})
"""In lower case they are months only where an ordinal says so: may 3rd."""
_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")}
_NUMBER = r"\d{1,2}|[一二三四五六七八九十]{1,3}"

_CHINESE = re.compile(rf"(?:(?P<year>\d{{4}})\s*年)?\s*(?P<month>{_NUMBER})\s*月\s*(?P<day>{_NUMBER})\s*[日号號]")
_ENGLISH = re.compile(
    rf"\b(?P<month>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s*(?:%|-|–|:|am\b|pm\b))"
    rf"(?:,?\s+(?P<year>\d{{4}}))?",
    re.IGNORECASE,
)
_ENGLISH_DAY_FIRST = re.compile(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})\b\.?(?:,?\s+(?P<year>\d{{4}}))?",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})\b")


def named_day(text: str, today: date) -> date | None:
    """The day, if the text names exactly one; without a year it is the latest that is not after `today`."""
    days = {
        day
        for pattern in (_CHINESE, _ENGLISH, _ENGLISH_DAY_FIRST, _ISO)
        for match in pattern.finditer(text)
        if (day := _day(match, today)) is not None
    }
    return days.pop() if len(days) == 1 else None


def _day(match: re.Match[str], today: date) -> date | None:
    if match["month"] in _ALSO_VERBS and not re.search(r"\d(?:st|nd|rd|th)", match[0]):
        return None
    month, day = _month(match["month"]), _number(match["day"])
    years = [int(match["year"])] if match["year"] else [today.year, today.year - 1]
    for year in years:
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if match["year"] or found <= today:
            return found
    return None


def _month(text: str) -> int:
    lower = text.lower()
    return next((n for n, name in enumerate(_MONTHS, 1) if lower[:3] == name[:3]), 0) or _number(text)


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    if "十" in text:
        tens, _, ones = text.partition("十")
        return 10 * (_DIGITS.get(tens, 1) if tens else 1) + (_DIGITS.get(ones, 0) if ones else 0)
    return _DIGITS.get(text, 0)
