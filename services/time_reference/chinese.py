"""References to time in Chinese, simplified or traditional.

A phrase is read from left to right, from the wide to the narrow: what begins it (去年, 2023年, 三月, 上周) and the
steps that follow (十二月, 第一周, 周三, 初). Both are found by one expression each, whose groups say what it is.
"""

from datetime import date

from services.time_reference.chinese_readers import READERS, steps_of
from services.time_reference.chinese_words import BEGINNINGS, CLOCK, JOINS, STEPS, TRIGGERS, folded
from services.time_reference.numerals import chinese_number
from services.time_reference.numeric import dated
from services.time_reference.phrases import ONE_DAY, Found, Phrase, Span, Unit, joined, known, one_of, period
from services.time_reference.steps import day_of_month


def found_in(text: str, today: date) -> list[Found]:
    """All references to time in a text, from left to right."""
    text = folded(text)
    found: list[Found] = []
    before: tuple[Phrase | None, int] = (None, 0)
    at = 0
    while match := TRIGGERS.search(text, at):
        at = match.start()
        opening = JOINS["open"].match(text, at)
        first = _phrase(text, opening.end() if opening else at, today)
        if first is None:
            at += 1
            continue
        phrase, stop = first
        if phrase and before[0] and JOINS["list"].fullmatch(text, before[1], at):
            phrase = _listed(before[0], phrase, today)
        found.append(_reference(text, at, (phrase, stop), today))
        before = phrase, found[-1][2]
        at = max(before[1], at + 1)
    return found


def _listed(first: Phrase, second: Phrase, today: date) -> Phrase:
    """上周二和周四, 去年三月和五月, 3月1日、5日: the second is of the same week, year or month as the first."""
    span = first.resolved(today)
    if span is None or second.cycle is None:
        return second
    same = first.base is not None and first.base.unit is second.cycle
    if not same and not (first.cycle is Unit.YEAR and second.cycle is Unit.MONTH and span.unit is Unit.DAY):
        return second
    placed = second.within(period(second.cycle, span.start))
    return placed if placed.resolved(today) else second


def _reference(text: str, at: int, first: tuple[Phrase | None, int], today: date) -> Found:
    phrase, stop = first
    if phrase is None:
        return None, at, stop
    span = phrase.resolved(today)
    if since := JOINS["since"].match(text, stop):
        return (Span(span.start, today) if span and span.start <= today else span), at, since.end()
    return _two_ends(text, at, stop, phrase, today) or (span, at, stop)


def _two_ends(text: str, at: int, stop: int, first: Phrase, today: date) -> Found | None:
    """三月到五月, 3月1日至5日, 周一和周三之间; None if there is only one end."""
    to = JOINS["to"].match(text, stop)
    middle = to or JOINS["and"].match(text, stop)
    last = _phrase(text, middle.end(), today, after=first) if middle else None
    if last is None:
        return None
    phrase, stop = last
    closing = JOINS["close"].match(text, stop)
    if not to and not closing:
        return None
    stop = closing.end() if closing else stop
    if phrase is None:
        return None, at, stop
    both = joined(first, phrase, today)
    end = phrase.after(both.start) if both and not to else None
    if both and end and end.unit is not Unit.DAY and both.start < end.start:
        both = Span(both.start, end.start - ONE_DAY)
    return (both, at, stop) if both else None


def _phrase(text: str, at: int, today: date, after: Phrase | None = None) -> tuple[Phrase | None, int] | None:
    """The longest phrase that begins there and where it stops; without a phrase if there is no such day."""
    begun = _beginning(text, at, today, after)
    if begun is None:
        return None
    phrase, stop = begun
    if phrase is None:
        return begun
    span = phrase.resolved(today)
    while span and (match := STEPS.match(text, stop)):
        if match["lunar"]:
            return None, match.end()
        narrower = phrase.narrowed(*steps_of(match, today))
        narrowed = narrower.resolved(today)
        if narrowed is None or len(narrower.steps) == len(phrase.steps):
            if match["day"] and span.unit is Unit.MONTH:
                return None, match.end()
            break
        phrase, span, stop = narrower, narrowed, match.end()
    clock = CLOCK.match(text, stop)
    return (phrase if span else None), clock.end() if clock else stop


def _beginning(text: str, at: int, today: date, after: Phrase | None) -> tuple[Phrase | None, int] | None:
    if found := dated(text, at, today, follows=after is not None):
        return found
    if match := BEGINNINGS.match(text, at):
        if match["lunar_"]:
            return None, match.end()
        try:
            phrase = READERS[match.lastgroup or ""](match, today)
        except (ValueError, OverflowError):
            phrase = None
        if phrase:
            return phrase, match.end()
    if after and (match := JOINS["bare_year"].match(text, at)):
        return known(period(Unit.YEAR, date(int(match[0]), 1, 1))), match.end()
    if after and (match := JOINS["bare_day"].match(text, at)):
        return one_of(Unit.MONTH, day_of_month(chinese_number(match[0].rstrip("号日")))), match.end()
    return None
