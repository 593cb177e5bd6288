"""How often something recurs, and from when on: every Monday, every other day, 每两周, starting next week."""

import re
from datetime import date, datetime, time

from services.time_reference.numerals import CHINESE_NUMERAL, ENGLISH_ONES, chinese_number
from services.time_reference.parse import parse

_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
RECURS = re.compile(
    r"(?P<daily>\bdaily\b|\b(?:every|each) (?:single )?day\b|每一?[天日])"
    r"|(?P<workdays>\b(?:every|each|on) (?:week|work|working )days?\b|\bweekdays\b|(?<![下个\d])(?:每个?)?工作日)"
    r"|\b(?:every|each) (?:week|month|year)\b|\b(?:week|month|year)ly\b|\b(?:every|each)\b"
    r"|每个?[月年](?:的|农历)?|每个?(?=[\u3400-\u9fff])"
)
"""Words by which something recurs."""
_COUNTED = re.compile(
    r"\b(?:every|each) (?:few|couple|other|second|\d{1,3}\b|two|three|four|hour|minute)(?!\w* \w+ of\b)"
    r"|每(?:隔|[两三四五六七八九十\d])|每个?(?:小时|钟头|分钟)"
)
_SO_MANY = re.compile(
    r"\b(?:every|each) (?P<count>other|second|two|three|four|five|six|seven|ten|\d{1,2})"
    rf" (?:(?P<unit>day|week)s?|(?P<weekday>{_WEEKDAY})s?)\b(?! of\b)"
    rf"|每(?P<skips>隔)?(?P<chinese>{CHINESE_NUMERAL}{{1,2}})个?(?P<chinese_unit>天|日|周|星期|礼拜)(?![一二三四五六日天末])"
)
_STARTS = re.compile(
    r",? ?\b(?:starting|beginning|from) (?P<last>(?:on )?[^,]+?)(?: onwards?)?$"
    r"|^(?:starting|beginning|from) (?P<first>[^,]+?),"
    r"|从?(?P<chinese>[^,每从]{1,14}?)(?:开始|起),?"
)
_WEEK_DAYS = 7


class BadOccasion(ValueError):
    """A text that does not say when something is to happen; the message gives the reason."""


def recurs_daily(found: re.Match[str]) -> bool:
    """Return whether a match of `RECURS` says on which days, so that no day has to be named."""
    return bool(found["daily"] or found["workdays"])


def counted(text: str) -> tuple[str, int]:
    """Return a text with “every two days” replaced by “every day”, and the number of days in between; 0 if it
    recurs in another way, or not at all. Raises `BadOccasion` if it counts anything but days and weeks."""
    found = _SO_MANY.search(text)
    if found is None:
        if other := _COUNTED.search(text):
            raise BadOccasion(f"“{other[0]}” counts other things than days or weeks; give days")
        return text, 0
    if found["chinese"]:
        count = chinese_number(found["chinese"]) + bool(found["skips"])
        if found["skips"] and count > 2:  # noqa: PLR2004 — of 每隔一天 nobody doubts
            raise BadOccasion(f"“{found[0]}” is counted in two ways; say every how many it is")
        days = count * (1 if found["chinese_unit"] in "天日" else _WEEK_DAYS)
    else:
        said = found["count"]
        count = 2 if said in {"other", "second"} else int(said) if said.isdecimal() else ENGLISH_ONES[said]
        days = count * (1 if found["unit"] == "day" else _WEEK_DAYS)
    if days <= 0:
        raise BadOccasion("recurs by a count that cannot be read")
    instead = f"every {found['weekday']}" if found["weekday"] else "每天" if found["chinese"] else "every day"
    return text[: found.start()] + instead + text[found.end() :], days


def starting(text: str, today: date) -> tuple[str, date | None]:
    """Return a text that recurs without the words that say from which day on, and that day; None = they are
    missing, or name no day."""
    found = _STARTS.search(text) if RECURS.search(text) else None
    if found is None:
        return text, None
    said = next(each for each in found.groups() if each)
    named = parse(said, datetime.combine(today, time()), ahead=True)
    if len(named) != 1 or named[0].text.strip() != said.removeprefix("on ").strip():
        return text, None
    return f"{text[: found.start()]} {text[found.end() :]}".strip(), named[0].start
