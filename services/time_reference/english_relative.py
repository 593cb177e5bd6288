"""References in English that count from today or name a part of another time: last week, the end of May."""

import re
from datetime import date

from services.time_reference import steps
from services.time_reference.english_words import (
    CLOCK_WORD,
    COUNT,
    DAY,
    DAY_WORDS,
    MONTH,
    NUMBER,
    ONE_UNIT,
    ORDINAL,
    SEASON,
    SHIFTED,
    TO,
    UNIT,
    WEEKDAY,
    WHICH,
    YEAR,
    Reading,
    Said,
    reads,
)
from services.time_reference.phrases import ONE_DAY, Phrase, Span, Step, Unit, about, day, moved, one_of, period
from services.time_reference.steps import Part

_SATURDAY = 5
_PARTS: dict[str, Part] = {
    **{"early": "early", "beginning": "early", "start": "early", "mid": "middle", "middle": "middle"},
    **{"late": "late", "end": "late"},
}
_HALF = r"\s{1,9}and\s{1,9}(?:a|one)\s{1,9}half"
_AMOUNT = re.compile(
    rf"(?:(?P<half>half\s{{1,9}}an?)\s{{1,9}}|(?P<count>{COUNT})(?P<and>{_HALF})?\s{{0,9}})(?P<unit>{UNIT})(?P<also>{_HALF})?",
    re.ASCII,
)
_ONE_AMOUNT = re.sub(r"\?P<\w+>", "?:", _AMOUNT.pattern)
_AMOUNTS = rf"(?P<amounts>(?:{_ONE_AMOUNT})(?:(?:\s{{0,9}},|\s{{1,9}}and)*\s{{0,9}}(?:{_ONE_AMOUNT})){{0,3}})"
_WHICH = rf"(?:this (?=last|past|previous|prior|preceding|coming))?(?P<which>{WHICH})"
_ROLLS = re.compile(r"\b(?:in|over|within|during|for)\s{1,9}the\s{1,9}$", re.ASCII)
_OPENS = re.compile(r"(?:(?:of|in|the|my|around)\s{1,9}){0,6}", re.ASCII)
_RUNNING = re.compile(rf"(?P<unit>{ONE_UNIT})(?!\s{{1,9}}(?:of\b|before\b|\d))", re.ASCII)
_BARE = re.compile(rf"(?P<year>{YEAR})|(?P<month>{MONTH})", re.ASCII)
_YEAR = re.compile(YEAR, re.ASCII)
_ENDS = re.compile(r"\s{0,9}(?:[.?!]|\Z)", re.ASCII)


def _inner(said: Said) -> Reading | None:
    """Return the period that something is a part of: the month, last year, May 2019."""
    text = said.text
    opens = _OPENS.match(text.text, said.match.end())
    at = opens.end() if opens else said.match.end()
    if running := _RUNNING.match(text.text, at):
        return said.running(Said(text, running).unit), running.end()
    bare = _BARE.match(text.text, at)
    if (found := said.then(at)) or bare is None:
        return found
    inner = Said(text, bare)
    if inner["year"]:
        return inner.year(), bare.end()
    surely = inner["month"] != "may" or inner.in_capitals or inner.before.endswith(("of ", "in "))
    return (one_of(Unit.YEAR, inner.month), bare.end()) if surely else None


def _part_of_inner(said: Said, step: Step) -> Reading | None:
    inner = _inner(said)
    return (inner[0].narrowed(step), inner[1]) if inner and inner[0] else inner


def _span_at(said: Said, at: int) -> tuple[Span, int] | None:
    """Return the days that are named at a place, and where the words stop."""
    found = said.then(at)
    span = found[0].resolved(said.today) if found and found[0] else None
    return (span, found[1]) if found and span else None


def _moved(of: date, said: Said, sign: int) -> tuple[date, list[Unit]]:
    """Return the date after all amounts of a match, or before them with a `sign` of -1, and their units."""
    units = []
    for each in (Said(said.text, match) for match in _AMOUNT.finditer(said["amounts"])):
        amounts = [each.unit.half] if each["half"] or each["and"] or each["also"] else []
        if each["count"]:
            twice = 2 if each["unit"].startswith("fortnight") else 1
            amounts.insert(0, (each.number("count") * twice, each.unit))
        for count, unit in amounts:
            of = moved(of, unit, sign * count)
            units.append(unit)
    return of, units


@reads(
    "number",
    rf"{_AMOUNTS} (?P<way>ago|back|earlier|later|hence|before|after|from)\b"
    rf"(?P<rest>(?: (?P<now>now)| (?P<day>today|yesterday)|,?(?: on)? (?P<weekday>{WEEKDAY}))\b)?",
)
def _ago(said: Said) -> Phrase | Reading | None:
    """Read two years ago: the unit it falls in, or the day named with it (a year ago today, on Tuesday)."""
    way = said["way"]
    if way in {"before", "after", "from"} and not said["now"]:
        return _from_another(said)
    there, units = _moved(said.today, said, -1 if way in {"ago", "back", "earlier", "before"} else 1)
    if way in {"later", "hence", "from", "after"}:
        return Phrase(day(there)), said.match.end("now" if said["now"] else "way")
    if said["day"]:
        return Phrase(period(Unit.DAY, there, DAY_WORDS[said["day"]]))
    whole = Phrase(period(units[-1], there))
    if said["weekday"] and units == [Unit.WEEK]:
        return whole.narrowed(steps.weekday(said.weekday))
    return whole, said.match.end("now" if said["now"] else "way")


def _from_another(said: Said) -> Reading | None:
    """Read 3 days before yesterday, two weeks from Friday."""
    at = said.match.end("way") + 1
    if (other := _span_at(said, at)) is None:
        return None
    start, stop = other[0].start, other[1]
    if said["way"] == "from" and said["weekday"] and start < said.today:
        start += 7 * ONE_DAY
    return Phrase(day(_moved(start, said, -1 if said["way"] == "before" else 1)[0])), stop


@reads(
    "number which",
    rf"(?:(?P<nth>{ORDINAL}|\d{{1,2}}) )?(?P<last>last )?(?:(?P<count>{NUMBER}) )?"
    rf"(?:(?P<unit>{UNIT})|(?P<weekday>{WEEKDAY})|(?P<other>half|weekend)\b)"
    rf"(?P<of> (?=(?:of|in|{WHICH})\b|{YEAR}))?",
)
def _nth_of(said: Said) -> Phrase | Reading | None:
    """Read first Monday of last month, second week of May, first ten days of 2019, 3rd quarter (2017)."""
    if not said["nth"] and not said["last"]:
        return None
    which, quarter = said.number("nth") * (-1 if said["last"] else 1), said["unit"].startswith(("quarter", "qtr"))
    if said["unit"]:
        step = steps.nth(said.unit, which, said.number("count"))
    elif said["weekday"]:
        step = steps.nth_weekday(said.weekday, which)
    else:
        step = steps.half_of_it(which) if said["other"] == "half" else steps.nth_weekend(which)
    if said["of"] and (quarter or not said.follows(_YEAR)):
        return _part_of_inner(said, step)
    return one_of(Unit.YEAR, step) if quarter and said["nth"] else None


@reads("which number", rf"(?P<count>{NUMBER}) (?P<which>{SHIFTED}) (?P<unit>{UNIT})")
@reads("which number", rf"(?:this )?(?P<which>{SHIFTED}) (?P<count>{COUNT}|few|several|some) (?P<unit>{UNIT})")
def _rolling(said: Said) -> Phrase | None:
    """Read the last 3 days, the past few weeks, next two months, 6 previous weeks."""
    count = said.number("count")
    of_unit, ahead = said.unit, said.away > 0
    there = moved(said.today, of_unit, count if ahead else -count)
    if ahead:
        return Phrase(Span(said.today + ONE_DAY, there))
    to_today = said["which"] in {"last", "past"} and said.match.start("which") < said.match.start("count")
    return Phrase(Span(there, said.today if to_today else said.today - ONE_DAY))


@reads("which", rf"{_WHICH} (?P<unit>{ONE_UNIT})(?P<of> (?:of|in)\b)?")
def _shifted_unit(said: Said) -> Reading | None:
    """Read last week or this month; "in the last week" means from a week ago to today."""
    by, of_unit = said.away, said.unit
    if of_unit is Unit.DAY and said["of"] and by < 0:
        return None
    rolls = said["which"] in {"last", "past"} and of_unit is not Unit.DAY and said["of"] != " of"
    if rolls and _ROLLS.search(said.before):
        return Phrase(Span(moved(said.today, of_unit, -1), said.today)), said.match.end("unit")
    return said.running(of_unit, by), said.match.end("unit")


@reads("which", rf"{_WHICH} (?P<what>{CLOCK_WORD}|(?:half|weekend|workweek)\b)")
def _shifted_part(said: Said) -> Phrase:
    """Read last night or this weekend."""
    by, what = said.away, said["what"]
    if what in {"weekend", "workweek"}:
        step = steps.weekend if what == "weekend" else steps.working_days
        return said.running(Unit.WEEK, by).narrowed(step)
    return Phrase(period(Unit.HALF if what == "half" else Unit.DAY, said.today, by))


@reads("which", rf"{_WHICH} (?={MONTH}|{WEEKDAY})")
def _full_date(said: Said) -> Reading | None:
    """Read this Monday, February 18: the date says which Monday."""
    full = said.then()
    return full if full and full[0] and len(full[0].steps) > 1 else None


@reads("which", rf"{_WHICH} (?P<weekday>{WEEKDAY})")
def _shifted_weekday(said: Said) -> Phrase:
    by, ahead = said.away, said.weekday - said.today.weekday()
    if said["which"] in {"coming", "upcoming"}:
        return Phrase(period(Unit.DAY, said.today, (ahead - 1) % 7 + 1))
    return said.running(Unit.DAY, ahead % 7 - 7 if by < 0 else ahead + 7 * by)


@reads("which", rf"{_WHICH} (?P<month>{MONTH})")
def _shifted_month(said: Said) -> Phrase | None:
    by, step = said.away, said.month
    if by > 0:
        span = one_of(Unit.YEAR, step).after(said.today + ONE_DAY)
        return Phrase(span) if span else None
    verb = said["month"] == "may" and not by and not said.in_capitals
    return None if verb else said.running(Unit.YEAR, by).narrowed(step)


@reads("which", rf"{_WHICH} (?P<season>{SEASON})")
def _shifted_season(said: Said) -> Phrase | None:
    by, step = said.away, said.season
    cycle = one_of(Unit.YEAR, step)
    if by == 0:
        return said.running(Unit.YEAR).narrowed(step)
    span = cycle.after(said.today + ONE_DAY) if by > 0 else cycle.until(said.today)
    if by < 0 and span and span.end >= said.today:
        span = cycle.until(span.start - ONE_DAY)
    return Phrase(span) if span else None


@reads("unit", rf"(?P<unit>{ONE_UNIT}) (?P<way>before|after)\b(?: (?P<other>last|next)\b(?! {UNIT}))?\s{{0,9}}")
def _day_before(said: Said) -> Phrase | Reading | None:
    """Read the day before yesterday, the week before last, the day after tomorrow, the day before."""
    of_unit, sign = said.unit, -1 if said["way"] == "before" else 1
    if said["other"]:
        return said.running(of_unit, 2 * sign), said.match.end("other")
    if other := _span_at(said, said.match.end()):
        return Phrase(period(of_unit, moved(other[0].start, of_unit, sign))), other[1]
    alone = of_unit is Unit.DAY and _ENDS.match(said.text.text, said.match.end("way"))
    return (said.running(of_unit, sign), said.match.end("way")) if alone else None


@reads("unit other", r"(?P<unit>weekend|week) of ")
def _unit_of(said: Said) -> Reading | None:
    """Read the week of May 3rd, the weekend of May 5th."""
    inner = _inner(said)
    span = inner[0].resolved(said.today) if inner and inner[0] else None
    if inner is None or inner[0] is None or span is None:
        return None
    phrase = inner[0].narrowed(steps.week_of)
    phrase = phrase if said["unit"] == "week" else phrase.narrowed(steps.weekend)
    return (phrase, inner[1]) if span.unit is Unit.DAY else None


@reads("other", rf"(?:rest|remaining|remainder)(?: (?:of|in|the|my|this|current)){{0,5}} (?P<unit>{ONE_UNIT})")
def _rest(said: Said) -> Phrase | None:
    """Read rest of the week, up to Saturday; rest of the month or year, up to its end."""
    of_unit = said.unit
    end = period(of_unit, said.today).end
    if of_unit is Unit.WEEK and said.today.weekday() <= _SATURDAY:
        end -= ONE_DAY
    return Phrase(Span(said.today, end)) if of_unit is not Unit.DAY else None


@reads("other", r"(?P<way>earlier|later)(?: (?:in|the|this)){1,3} (?P<unit>week|month|year|wk|yr)\b")
def _half_gone(said: Said) -> Phrase:
    """Read earlier this month, up to yesterday; later this year, its second half from today on."""
    whole = period(said.unit, said.today)
    if said["way"] == "earlier":
        return Phrase(Span(whole.start, max(whole.start, said.today - ONE_DAY)))
    second = steps.half_of_it(2)(whole)
    return Phrase(Span(max(second.start if second else whole.start, said.today), whole.end))


@reads("number", rf"(?P<count>{COUNT}) (?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)s? ago\b")
def _weekdays_ago(said: Said) -> Phrase:
    """Read two Mondays ago."""
    behind = (said.today.weekday() - said.weekday - 1) % 7 + 1
    return said.running(Unit.DAY, -behind - 7 * (said.number("count") - 1))


# A few days ago
reads("number other", rf"(?:(?:a|just) ){{0,3}}(?:few|several|some) (?P<unit>{UNIT}) (?:ago|back|earlier)\b")(
    lambda said: about(said.today, said.unit, -1)
)
# Yesterday; in two days; within the next two weeks
reads("other", rf"(?P<day>{'|'.join(DAY_WORDS)})s?\b")(lambda said: said.running(Unit.DAY, DAY_WORDS[said["day"]]))
reads("other", rf"in (?!couple){_AMOUNTS}")(lambda said: Phrase(day(_moved(said.today, said, 1)[0])))
reads("other", rf"within (?:the |next ){{0,2}}{_AMOUNTS}")(
    lambda said: Phrase(Span(said.today, _moved(said.today, said, 1)[0]))
)
# 20th of next month; 4 to 22 this month; the 21st century
reads("number", rf"(?P<nth>{DAY}) of (?=the |{WHICH})")(
    lambda said: _part_of_inner(said, steps.day_of_month(said.number("nth")))
)
reads(
    "number",
    rf"(?P<day>{DAY})(?:{TO}| and )(?:the )?(?P<last>{DAY})(?: (?:of|in|the)){{0,3}} (?P<which>{WHICH}) month\b",
)(
    lambda said: said.running(Unit.MONTH, said.away).narrowed(
        steps.days_of_month(said.number("day"), said.number("last"))
    )
)
reads("number", rf"(?P<nth>{DAY}) century\b")(
    lambda said: Phrase(period(Unit.CENTURY, date(100 * (said.number("nth") - 1), 1, 1)))
)
# Year to date; the year 2008; the month of September
reads("unit", rf"(?P<unit>{ONE_UNIT}) to date\b")(
    lambda said: Phrase(Span(period(said.unit, said.today).start, said.today - ONE_DAY))
)
reads("unit", rf"year (?:of )?(?P<year>{YEAR})")(Said.year)
reads("unit", rf"month of (?:the )?(?P<month>{MONTH})")(lambda said: one_of(Unit.YEAR, said.month))
# Early May, the end of last year, mid-2019, late last week; at the weekend
reads(
    "other", r"(?P<part>early|mid|late|(?:beginning|start|middle|end)(?= of\b))(?:[\s-]|\b(?:of|in|part)\b){1,6}"
)(lambda said: _part_of_inner(said, steps.part(_PARTS[said["part"]])))
reads("other", r"(?<=\bthe\s)weekend\b")(lambda _: one_of(Unit.WEEK, steps.weekend))
