"""Whether two statements give one thing two values: “the flight leaves at 6:50”, “the flight leaves at 11:15”.

Beside numbers, days and colours only one of them may have words that the other has not. What happened once stays
true whatever happens later, so an older statement in the past is changed by none.
"""

import re
from collections.abc import Set

from services.memory.commands.substitution import values_by_kind
from services.text.paraphrases import differ_in_whom
from services.text.tokenizer import informative_terms, simplified
from services.time_reference.numerals import CHINESE_NUMERAL, chinese_number

_KINDS = ("date", "weekday", "month", "time", "measure", "ordinal", "number", "colour")
_PAST = re.compile(
    r"\b(?:was|were|did|had|went|got|ran|broke|took|made|\w{3,}ed)\b|[了过]|\bold\b|former", re.IGNORECASE
)
_AS_WELL = re.compile(r"\b(?:also|too|as well|another|other|second)\b|[也还又]|另外?一?|第二", re.IGNORECASE)
"""What is said of one more thing."""
_CHANGES = re.compile(
    r"\b(?:moved|shifted|changed|postponed|rescheduled|now|instead)\b|[换改][到成为在]|推迟到?|提前到?|[加降涨减][到至]|每"
)
"""Says that something changed, and not what."""
_DIGITS = re.compile(r"\d+(?:[.:]\d+)*")
_GROUPS = re.compile(r"(?<=\d)[,，](?=\d{3}(?!\d))")
_CLOCK = re.compile(
    rf"(?P<hour>\d{{1,2}}):(?P<minute>\d\d)(?! ?[ap]\.?m)|(?P<twelve>\d{{1,2}})(?:[:.](?P<past>\d\d))? ?[ap]\.?m\b"
    rf"|(?P<chinese>{CHINESE_NUMERAL}{{1,3}})点(?P<minutes>半|{CHINESE_NUMERAL}{{1,3}}分?)?",
    re.IGNORECASE,
)
_CHINESE_DIGITS = re.compile(r"[零〇一二两三四五六七八九十百千万]+")
_NOBODY = frozenset(("user", "用户"))
_WORDS = ("weekday", "month", "colour", "ordinal")
"""Kinds whose values are words."""
_HALF = 30
_MOST_WORDS = 4
"""Words of one statement that the other may lack."""


def gives_another_value(older: str, newer: str) -> bool:
    """Whether the newer of two statements has another number, day or colour for what the older one is about."""
    if _PAST.search(older) or _AS_WELL.search(newer) or differ_in_whom(older, newer):
        return False
    old, new = values_by_kind(older), values_by_kind(newer)
    first, second = _numbers(older, old), _numbers(newer, new)
    # One that gives a value more only says more.
    if not any(kind in old and kind in new for kind in _KINDS) or first <= second or second <= first:
        return False
    before, after = _subject(older, old), _subject(newer, new)
    if not before or not after:
        return False
    lacking, more = before - after, after - before
    return len(lacking) < len(before) and not (lacking and more) and max(len(lacking), len(more)) <= _MOST_WORDS


def _numbers(text: str, values: dict[str, tuple[str, ...]]) -> Set[str]:
    """The values in one form: digits, the times of a clock, and the words for days, months and colours."""
    clock = {_clock_time(found) for found in _CLOCK.finditer(simplified(text))}
    plain = _GROUPS.sub("", _CLOCK.sub(" ", simplified(text)))
    words = {
        value.removesuffix("色") for kind in _WORDS for value in values.get(kind, ()) if not value[0].isdigit()
    }
    chinese = {str(chinese_number(each)) for each in _CHINESE_DIGITS.findall(plain)}
    return words | clock | chinese | set(_DIGITS.findall(plain))


def _clock_time(found: re.Match[str]) -> str:
    """A time on a clock of twelve hours: the half of the day is often left out."""
    hour = found["hour"] or found["twelve"] or found["chinese"]
    minute = found["minute"] or found["past"] or found["minutes"] or "0"
    minutes = _HALF if minute == "半" else chinese_number(minute.removesuffix("分"))
    return f"{chinese_number(hour) % 12}:{minutes:02}"


def _subject(text: str, values: dict[str, tuple[str, ...]]) -> Set[str]:
    """The words that say what a statement is about."""
    rest = _CHANGES.sub(" ", simplified(text).casefold())
    for kind in (*_KINDS, "part of a day", "day"):
        for value in values.get(kind, ()):
            rest = rest.replace(value, " ")
    return frozenset(informative_terms(rest)) - _NOBODY
