"""References to time in English: where they begin, and the two ends of from X to Y."""

from datetime import date

from services.time_reference.english_dates import Reading, figures_at
from services.time_reference.english_phrases import STARTERS, phrase_at
from services.time_reference.english_words import TO, Words
from services.time_reference.phrases import Found, Phrase, joined, known, one_of
from services.time_reference.ranges import DAY_NUMBERS, Span, Unit, day, period
from services.time_reference.steps import day_of_month

_OPENING = frozenset({"from", "between", "since"})


def found_in(text: str, today: date) -> list[Found]:
    """All references to time in a text, from left to right."""
    words = Words(text, today)
    found: list[Found] = []
    at = 0
    while at < len(words.words):
        word = words[at]
        reading = _reference(words, at) if word in STARTERS or word in _OPENING or word[0].isdecimal() else None
        if reading is None:
            at += 1
            continue
        span, stop = reading
        found.append((span, words.words[at].begin, stop))
        while at < len(words.words) and words.words[at].begin < stop:
            at += 1
    return found


def _reference(words: Words, at: int) -> tuple[Span | None, int] | None:
    opening = words[at] if words[at] in _OPENING else ""
    first = _end_at(words, at + 1 if opening else at, None)
    if first is None:
        return None
    phrase, after = first
    stop = words.words[after - 1].stop
    if phrase is None:
        return None, stop
    span = phrase.resolved(words.today)
    if opening == "since" and span and span.start <= words.today:
        return Span(span.start, words.today), stop
    if words[after] in TO or (words[after] == "and" and opening == "between"):
        if words[after] == "to" and words[after + 1] in {"date", "now"} and span and span.start <= words.today:
            return Span(span.start, words.today), words.words[after + 1].stop
        last = _end_at(words, after + 1, phrase)
        if last is not None:
            both = joined(phrase, last[0], words.today) if last[0] else None
            if both or last[0] is None:
                return both, words.words[last[1] - 1].stop
    return span, stop


def _end_at(words: Words, at: int, before: Phrase | None) -> Reading | None:
    """One end of a range, or all there is; after another one a bare year or day of the month will do."""
    if at >= len(words.words):
        return None
    found = figures_at(words, at, follows=before is not None) or phrase_at(words, at)
    if found or before is None:
        return found or (_now(words, at) if words[at - 1] in {"between", "from"} else None)
    if words[at] in {"now", "date"}:
        return _now(words, at)
    if year := words.year(at):
        return known(period(Unit.YEAR, date(year[0], 1, 1))), year[1]
    number = words.day_number(words.past(at, "the"))
    if number and number[0] in DAY_NUMBERS and words[number[1]] != ":":
        span = before.resolved(words.today)
        if span and span.unit is Unit.DAY and span.start.day < number[0]:
            return one_of(Unit.MONTH, day_of_month(number[0])), number[1]
    return None


def _now(words: Words, at: int) -> Reading | None:
    return (known(day(words.today)), at + 1) if words[at] in {"now", "date"} else None
