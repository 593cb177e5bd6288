"""References to time in English: where they may begin, and the two ends of "from X to Y".

The beginnings of phrases, and their meanings, are in `english_dates.py` and `english_relative.py`.
"""

import re
from datetime import date

from services.time_reference import english_dates, english_relative  # noqa: F401 — they register their readers
from services.time_reference.english_words import (
    COUNT,
    DAY,
    DAY_WORDS,
    MONTH,
    NUMBER,
    ONE_UNIT,
    ORDINAL,
    SEASON,
    TO,
    UNIT,
    WEEKDAY,
    WHICH,
    YEAR,
    Reading,
    Text,
    in_year,
    number,
    phrase_at,
    year,
)
from services.time_reference.feasts import FEASTS
from services.time_reference.normalisation import lowered
from services.time_reference.phrases import DAY_NUMBERS, Found, Phrase, Span, Unit, day, joined, one_of
from services.time_reference.steps import day_of_month

_BEGINNING = (
    rf"(?:{MONTH}|{WEEKDAY}|{SEASON}|{ONE_UNIT}|{WHICH}|[qh][1-4]\b|['’]\d|{ORDINAL}|{NUMBER}|[a-z]{{3,6}}ties\b"
    rf"|(?:{'|'.join(DAY_WORDS)})s?\b|(?:in|within|just|a|half)\s{{1,9}}(?={COUNT}|the|next|few|several|{UNIT})"
    rf"|an?\s{{1,9}}(?={UNIT}|couple)|(?:couple|few|several|some)\s|(?:early|mid|late)[\s-]"
    r"|(?:beginning|start|middle|end)\s{1,9}of\b|(?:weekend|rest|remaining|remainder|earlier|later)\b"
    rf"|{FEASTS})"
)
_BEGINS = re.compile(rf"(?<![a-z\d])(?:(?:from|between|since)\b|(?:the\s{{1,9}})?{_BEGINNING}|\d)", re.ASCII)
_OPENING = re.compile(r"(?:(from|between|since)\s{1,9})?", re.ASCII)
_AND = re.compile(rf"{TO}|\s{{1,9}}and\s{{1,9}}", re.ASCII)
_TO = re.compile(TO, re.ASCII)
_NOW = re.compile(r"(?:now|date)\b", re.ASCII)
_BARE = re.compile(rf"(?P<year>{YEAR})|(?:the\s{{1,9}})?(?P<day>{DAY})(?!:)", re.ASCII)


def found_in(text: str, today: date) -> list[Found]:
    """Return all references to time in a text, from left to right."""
    reading, at, found = Text(text, lowered(text), today), 0, []
    while begins := _BEGINS.search(reading.text, at):
        reference = _reference(reading, begins.start())
        if reference:
            found.append((reference[0], begins.start(), reference[1]))
        at = max(reference[1] if reference else 0, begins.start() + 1)
    return found


def _reference(text: Text, at: int) -> tuple[Span | None, int] | None:
    opening = _OPENING.match(text.text, at)
    word = opening[1] if opening else None
    first = _end_at(text, opening.end() if opening else at, None, word)
    if first is None:
        return None
    phrase, stop = first
    if phrase is None:
        return None, stop
    span = phrase.resolved(text.today)
    to_today = Span(span.start, text.today) if span and span.start <= text.today else None
    if word == "since" and to_today:
        return to_today, stop
    middle = (_AND if word == "between" else _TO).match(text.text, stop)
    if middle is None:
        return span, stop
    if middle[0].strip() == "to" and to_today and (now := _NOW.match(text.text, middle.end())):
        return to_today, now.end()
    last = _end_at(text, middle.end(), phrase, word)
    both = joined(phrase, last[0], text.today) if last and last[0] else None
    return (both, last[1]) if last and (both or last[0] is None) else (span, stop)


def _end_at(text: Text, at: int, before: Phrase | None, opening: str | None) -> Reading | None:
    """Read one end of a range, or a single time; after another end, a bare year or day of the month suffices."""
    if found := phrase_at(text, at, follows=before is not None):
        return found
    if (before or opening in {"between", "from"}) and (now := _NOW.match(text.text, at)):
        return Phrase(day(text.today)), now.end()
    bare = _BARE.match(text.text, at) if before else None
    if before is None or bare is None:
        return None
    if bare["year"]:
        return in_year(year(bare["year"])), bare.end()
    span, last = before.resolved(text.today), number(bare["day"])
    later = span and span.unit is Unit.DAY and span.start.day < last
    return (one_of(Unit.MONTH, day_of_month(last)), bare.end()) if later and last in DAY_NUMBERS else None
