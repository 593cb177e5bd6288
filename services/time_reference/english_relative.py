"""References in English that count from today or are parts of others: last week, two days ago, the end of May."""

import re
from collections.abc import Sequence
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
    Reader,
    Reading,
    Text,
    away,
    in_year,
    month_number,
    number,
    phrase_at,
    reads,
    season_name,
    unit,
    weekday_number,
    year,
)
from services.time_reference.phrases import ONE_DAY, Phrase, Span, Step, Unit, day, known, moved, one_of, period
from services.time_reference.steps import Part

_FEW = (2, 7)
_SATURDAY = 5
_HALVES = {Unit.YEAR: (6, Unit.MONTH), Unit.MONTH: (15, Unit.DAY), Unit.WEEK: (3, Unit.DAY)}
_PARTS: dict[str, Part] = {
    **{"early": "early", "beginning": "early", "start": "early", "mid": "middle", "middle": "middle"},
    **{"late": "late", "end": "late"},
}
_HALF = r"\s+and\s+(?:a|one)\s+half"
_AMOUNT = re.compile(
    rf"half\s+an?\s+(?P<half>{UNIT})|(?P<count>{COUNT})(?P<and>{_HALF})?\s*(?P<unit>{UNIT})(?P<also>{_HALF})?",
    re.ASCII,
)
_ONE_AMOUNT = re.sub(r"\?P<\w+>", "?:", _AMOUNT.pattern)
_AMOUNTS = rf"(?P<amounts>(?:{_ONE_AMOUNT})(?:(?:\s*,|\s+and)*\s*(?:{_ONE_AMOUNT})){{0,3}})"
_WHICH = rf"(?:this (?=last|past|previous|prior|preceding|coming))?(?P<which>{WHICH})"
_ROLLS = re.compile(r"\b(?:in|over|within|during|for)\s+the\s+$", re.ASCII)
_OPENS = re.compile(r"(?:(?:of|in|the|my|around)\s+){0,6}", re.ASCII)
_RUNNING = re.compile(rf"(?P<unit>{ONE_UNIT})(?!\s+(?:of\b|before\b|\d))", re.ASCII)
_BARE = re.compile(rf"(?P<year>{YEAR})|(?P<month>{MONTH})", re.ASCII)
_ENDS = re.compile(r"\s*(?:[.?!]|\Z)", re.ASCII)


def _inner(text: Text, at: int) -> Reading | None:
    """What something is a part of: the month, last year, May 2019."""
    opens = _OPENS.match(text.text, at)
    at = opens.end() if opens else at
    if running := _RUNNING.match(text.text, at):
        return known(period(unit(running["unit"]), text.today)), running.end()
    bare = _BARE.match(text.text, at)
    if (found := phrase_at(text, at)) or bare is None:
        return found
    if bare["year"]:
        return in_year(year(bare["year"])), bare.end()
    surely = bare["month"] != "may" or text.written[at].isupper() or text.before(at).endswith(("of ", "in "))
    return (one_of(Unit.YEAR, steps.month(month_number(bare["month"]))), bare.end()) if surely else None


def _part_of_inner(text: Text, at: int, step: Step) -> Reading | None:
    inner = _inner(text, at)
    return (inner[0].narrowed(step), inner[1]) if inner and inner[0] else inner


def _span_at(text: Text, at: int) -> tuple[Span, int] | None:
    """The stretch of days that is named there, and where it stops."""
    found = phrase_at(text, at)
    span = found[0].resolved(text.today) if found and found[0] else None
    return (span, found[1]) if found and span else None


def _moved(of: date, match: re.Match[str], sign: int) -> tuple[date, list[Unit]]:
    """The date after all amounts of a match, or before them with a `sign` of -1; and their units."""
    units = []
    for each in _AMOUNT.finditer(match["amounts"]):
        amounts = [_HALVES[unit(each["half"])]] if each["half"] else []
        if each["unit"]:
            twice = 2 if each["unit"].startswith("fortnight") else 1
            amounts.append((number(each["count"]) * twice, unit(each["unit"])))
            amounts += [_HALVES[unit(each["unit"])]] if each["and"] or each["also"] else []
        for count, of_unit in amounts:
            of = moved(of, of_unit, sign * count)
            units.append(of_unit)
    return of, units


@reads(
    "number",
    rf"{_AMOUNTS} (?P<way>ago|back|earlier|later|hence|before|after|from)\b"
    rf"(?P<rest>(?: (?P<now>now)| (?P<day>today|yesterday)|,?(?: on)? (?P<weekday>{WEEKDAY}))\b)?",
)
def _ago(text: Text, match: re.Match[str]) -> Phrase | Reading | None:
    """So long ago: the unit it falls in, or the day if another one is named (a year ago today, on Tuesday)."""
    way = match["way"]
    if way in {"before", "after", "from"} and not match["now"]:
        return _from_another(text, match)
    there, units = _moved(text.today, match, -1 if way in {"ago", "back", "earlier", "before"} else 1)
    if way in {"later", "hence", "from", "after"}:
        return known(day(there)), match.end("now" if match["now"] else "way")
    if match["day"]:
        return known(period(Unit.DAY, there, DAY_WORDS[match["day"]]))
    whole = known(period(units[-1], there))
    if match["weekday"] and units == [Unit.WEEK]:
        return whole.narrowed(steps.weekday(weekday_number(match["weekday"])))
    return whole, match.end("now" if match["now"] else "way")


def _from_another(text: Text, match: re.Match[str]) -> Reading | None:
    """3 days before yesterday, two weeks from Friday."""
    at = match.end("way") + 1
    if (other := _span_at(text, at)) is None:
        return None
    start, stop = other[0].start, other[1]
    if match["way"] == "from" and match["weekday"] and start < text.today:
        start += 7 * ONE_DAY
    return known(day(_moved(start, match, -1 if match["way"] == "before" else 1)[0])), stop


@reads(
    "number which",
    rf"(?:(?P<nth>{ORDINAL}|\d{{1,2}}) )?(?P<last>last )?(?:(?P<count>{NUMBER}) )?"
    rf"(?P<what>{UNIT}|{WEEKDAY}|(?:half|weekend)\b)(?P<of> (?=(?:of|in|{WHICH})\b|{YEAR}))?",
)
def _nth_of(text: Text, match: re.Match[str]) -> Phrase | Reading | None:
    """First Monday of last month, second week of May, first ten days of 2019, 3rd quarter (2017)."""
    if not match["nth"] and not match["last"]:
        return None
    which, what = number(match["nth"] or "1") * (-1 if match["last"] else 1), match["what"]
    quarter = what.startswith(("quarter", "qtr"))
    if what in {"half", "weekend"}:
        step = steps.half_of_it(which) if what == "half" else steps.nth_weekend(which)
    elif re.fullmatch(UNIT, what):
        step = steps.nth(unit(what), which, number(match["count"] or "1"))
    else:
        step = steps.nth_weekday(weekday_number(what), which)
    if match["of"] and (quarter or not re.match(YEAR, text.text[match.end() :])):
        return _part_of_inner(text, match.end(), step)
    return one_of(Unit.YEAR, step) if quarter and match["nth"] else None


@reads("which number", rf"(?P<count>{NUMBER}) (?P<which>{SHIFTED}) (?P<unit>{UNIT})")
@reads("which number", rf"(?:this )?(?P<which>{SHIFTED}) (?P<count>{COUNT}|few|several|some) (?P<unit>{UNIT})")
def _rolling(text: Text, match: re.Match[str]) -> Phrase | None:
    """The last 3 days, the past few weeks, next two months; 6 previous weeks."""
    count = number(match["count"]) or _FEW[1]
    of_unit, ahead = unit(match["unit"]), away(match["which"]) > 0
    there = moved(text.today, of_unit, count if ahead else -count)
    if ahead:
        return known(Span(text.today + ONE_DAY, there))
    to_today = match["which"] in {"last", "past"} and match.start("which") < match.start("count")
    return known(Span(there, text.today if to_today else text.today - ONE_DAY))


@reads("which", rf"{_WHICH} (?P<unit>{ONE_UNIT})(?P<of> (?:of|in)\b)?")
def _shifted_unit(text: Text, match: re.Match[str]) -> Reading | None:
    """Last week, this month; in the last week: from a week ago to today."""
    by, of_unit = away(match["which"]), unit(match["unit"])
    if of_unit is Unit.DAY and match["of"] and by < 0:
        return None
    rolls = match["which"] in {"last", "past"} and of_unit is not Unit.DAY and match["of"] != " of"
    if rolls and _ROLLS.search(text.before(match.start())):
        return known(Span(moved(text.today, of_unit, -1), text.today)), match.end("unit")
    return known(period(of_unit, text.today, by)), match.end("unit")


@reads("which", rf"{_WHICH} (?P<what>{CLOCK_WORD}|(?:half|weekend|workweek)\b)")
def _shifted_part(text: Text, match: re.Match[str]) -> Phrase:
    """Last night, this weekend."""
    by, what = away(match["which"]), match["what"]
    if what in {"weekend", "workweek"}:
        step = steps.weekend if what == "weekend" else steps.working_days
        return known(period(Unit.WEEK, text.today, by)).narrowed(step)
    return known(period(Unit.HALF if what == "half" else Unit.DAY, text.today, by))


@reads("which", rf"{_WHICH} (?={MONTH}|{WEEKDAY})")
def _full_date(text: Text, match: re.Match[str]) -> Reading | None:
    """This Monday, February 18: the date says which one it is."""
    full = phrase_at(text, match.end())
    return full if full and full[0] and len(full[0].steps) > 1 else None


@reads("which", rf"{_WHICH} (?P<weekday>{WEEKDAY})")
def _shifted_weekday(text: Text, match: re.Match[str]) -> Phrase:
    by, ahead = away(match["which"]), weekday_number(match["weekday"]) - text.today.weekday()
    if match["which"] in {"coming", "upcoming"}:
        return known(period(Unit.DAY, text.today, (ahead - 1) % 7 + 1))
    return known(period(Unit.DAY, text.today, ahead % 7 - 7 if by < 0 else ahead + 7 * by))


@reads("which", rf"{_WHICH} (?P<month>{MONTH})")
def _shifted_month(text: Text, match: re.Match[str]) -> Phrase | None:
    by, step = away(match["which"]), steps.month(month_number(match["month"]))
    if by > 0:
        span = one_of(Unit.YEAR, step).after(text.today + ONE_DAY)
        return known(span) if span else None
    verb = match["month"] == "may" and not by and not text.written[match.start("month")].isupper()
    return None if verb else known(period(Unit.YEAR, text.today, by)).narrowed(step)


@reads("which", rf"{_WHICH} (?P<season>{SEASON})")
def _shifted_season(text: Text, match: re.Match[str]) -> Phrase | None:
    by, step = away(match["which"]), steps.season(season_name(match["season"]))
    cycle = one_of(Unit.YEAR, step)
    if by == 0:
        return known(period(Unit.YEAR, text.today)).narrowed(step)
    span = cycle.after(text.today + ONE_DAY) if by > 0 else cycle.until(text.today)
    if by < 0 and span and span.end >= text.today:
        span = cycle.until(span.start - ONE_DAY)
    return known(span) if span else None


@reads("unit", rf"(?P<unit>{ONE_UNIT}) (?P<way>before|after)\b(?: (?P<other>last|next)\b(?! {UNIT}))?\s*")
def _day_before(text: Text, match: re.Match[str]) -> Phrase | Reading | None:
    """The day before yesterday, the week before last, the day after tomorrow, the day before."""
    of_unit, sign = unit(match["unit"]), -1 if match["way"] == "before" else 1
    if match["other"]:
        return known(period(of_unit, text.today, 2 * sign)), match.end("other")
    if other := _span_at(text, match.end()):
        return known(period(of_unit, moved(other[0].start, of_unit, sign))), other[1]
    alone = of_unit is Unit.DAY and _ENDS.match(text.text, match.end("way"))
    return (known(period(of_unit, text.today, sign)), match.end("way")) if alone else None


@reads("unit other", r"(?P<unit>weekend|week) of ")
def _unit_of(text: Text, match: re.Match[str]) -> Reading | None:
    """The week of May 3rd, the weekend of May 5th."""
    inner = _inner(text, match.end())
    span = inner[0].resolved(text.today) if inner and inner[0] else None
    if inner is None or inner[0] is None or span is None:
        return None
    phrase = inner[0].narrowed(steps.week_of)
    phrase = phrase if match["unit"] == "week" else phrase.narrowed(steps.weekend)
    return (phrase, inner[1]) if span.unit is Unit.DAY else None


@reads("other", rf"(?:rest|remaining|remainder)(?: (?:of|in|the|my|this|current)){{0,5}} (?P<unit>{ONE_UNIT})")
def _rest(text: Text, match: re.Match[str]) -> Phrase | None:
    """Rest of the week: to Saturday; rest of the month or year: to its end."""
    of_unit = unit(match["unit"])
    end = period(of_unit, text.today).end
    if of_unit is Unit.WEEK and text.today.weekday() <= _SATURDAY:
        end -= ONE_DAY
    return known(Span(text.today, end)) if of_unit is not Unit.DAY else None


@reads("other", r"(?P<way>earlier|later)(?: (?:in|the|this)){1,3} (?P<unit>week|month|year|wk|yr)\b")
def _half_gone(text: Text, match: re.Match[str]) -> Phrase:
    """Earlier this month: up to yesterday; later this year: its second half, from today on."""
    whole = period(unit(match["unit"]), text.today)
    if match["way"] == "earlier":
        return known(Span(whole.start, max(whole.start, text.today - ONE_DAY)))
    second = steps.half_of_it(2)(whole)
    return known(Span(max(second.start if second else whole.start, text.today), whole.end))


def _few_ago(text: Text, match: re.Match[str]) -> Phrase:
    of_unit = unit(match["unit"])
    near, far = (period(of_unit, moved(text.today, of_unit, -count)) for count in _FEW)
    return known(Span(far.start, near.end))


def _weekdays_ago(text: Text, match: re.Match[str]) -> Phrase:
    behind = (text.today.weekday() - weekday_number(match["weekday"]) - 1) % 7 + 1
    return known(period(Unit.DAY, text.today, -behind - 7 * (number(match["count"]) - 1)))


def _days_of(text: Text, match: re.Match[str]) -> Phrase:
    whole = known(period(Unit.MONTH, text.today, away(match["which"])))
    return whole.narrowed(steps.days_of_month(number(match["day"]), number(match["last"])))


_OTHERS: Sequence[tuple[str, str, Reader]] = (
    # Yesterday
    (
        "other",
        rf"(?P<day>{'|'.join(DAY_WORDS)})s?\b",
        lambda text, match: known(period(Unit.DAY, text.today, DAY_WORDS[match["day"]])),
    ),
    # A few days ago; two Mondays ago
    ("number other", rf"(?:(?:a|just) )*(?:few|several|some) (?P<unit>{UNIT}) (?:ago|back|earlier)\b", _few_ago),
    (
        "number",
        rf"(?P<count>{COUNT}) (?P<weekday>(?:mon|tues|wednes|thurs|fri|satur|sun)day)s? ago\b",
        _weekdays_ago,
    ),
    # In two days; within the next two weeks
    ("other", rf"in (?!couple){_AMOUNTS}", lambda text, match: known(day(_moved(text.today, match, 1)[0]))),
    (
        "other",
        rf"within (?:the |next ){{0,2}}{_AMOUNTS}",
        lambda text, match: known(Span(text.today, _moved(text.today, match, 1)[0])),
    ),
    # 20th of next month; 4 to 22 this month, 4-23 in next month
    (
        "number",
        rf"(?P<nth>{DAY}) of (?=the |{WHICH})",
        lambda text, match: _part_of_inner(text, match.end(), steps.day_of_month(number(match["nth"]))),
    ),
    (
        "number",
        rf"(?P<day>{DAY})(?:{TO}| and )(?:the )?(?P<last>{DAY})(?: (?:of|in|the)){{0,3}} (?P<which>{WHICH})"
        r" month\b",
        _days_of,
    ),
    (
        "number",
        rf"(?P<nth>{DAY}) century\b",
        lambda _, match: known(period(Unit.CENTURY, date(100 * (number(match["nth"]) - 1), 1, 1))),
    ),
    # Year to date; the year 2008; the month of September
    (
        "unit",
        rf"(?P<unit>{ONE_UNIT}) to date\b",
        lambda text, match: known(Span(period(unit(match["unit"]), text.today).start, text.today - ONE_DAY)),
    ),
    ("unit", rf"year (?:of )?(?P<year>{YEAR})", lambda _, match: in_year(year(match["year"]))),
    (
        "unit",
        rf"month of (?:the )?(?P<month>{MONTH})",
        lambda _, match: one_of(Unit.YEAR, steps.month(month_number(match["month"]))),
    ),
    # Early May, the end of last year, mid-2019, late last week
    (
        "other",
        r"(?P<part>early|mid|late|(?:beginning|start|middle|end)(?= of\b))(?:[\s-]|\b(?:of|in|part)\b){1,6}",
        lambda text, match: _part_of_inner(text, match.end(), steps.part(_PARTS[match["part"]])),
    ),
    # At the weekend
    ("other", r"(?<=\bthe\s)weekend\b", lambda _text, _match: one_of(Unit.WEEK, steps.weekend)),
)
for _kinds, _pattern, _reader in _OTHERS:
    reads(_kinds, _pattern)(_reader)
