"""References to time in English: what they begin with, and the two ends of from X to Y."""

from collections.abc import Callable
from datetime import date

from services.time_reference.english_dates import (
    Reading,
    day_first,
    figures_at,
    month_first,
    numbered_week,
    part_of_year,
    season_first,
    short_decade,
    the_nth,
    weekday_first,
    year_first,
)
from services.time_reference.english_relative import (
    amounts,
    before_now,
    counted,
    day_word,
    days_of,
    few_ago,
    half_gone,
    month_of,
    moved_by,
    rest,
    shifted,
    weekdays_ago,
)
from services.time_reference.english_words import (
    BACKWARD,
    CLOCK_WORDS,
    CURRENT,
    DAY_WORDS,
    DECADE_WORDS,
    FEW,
    FORWARD,
    MONTHS,
    PARTS,
    SEASONS,
    TO,
    UNITS,
    WEEKDAYS,
    Words,
)
from services.time_reference.numerals import ENGLISH_ONES, ENGLISH_ORDINALS, ENGLISH_TENS
from services.time_reference.phrases import (
    DAY_NUMBERS,
    ONE_DAY,
    Found,
    Phrase,
    Span,
    Step,
    Unit,
    day,
    joined,
    known,
    moved,
    one_of,
    period,
)
from services.time_reference.steps import (
    day_of_month,
    half_of_it,
    month,
    nth,
    nth_weekday,
    nth_weekend,
    part,
    week_of,
    weekday,
    weekend,
)

_OPENING = frozenset({"from", "between", "since"})

_OF_WHAT = frozenset({"of", "in"}) | CURRENT | BACKWARD
_HOLDING = frozenset({Unit.WEEK, Unit.MONTH, Unit.YEAR})
_DEEPEST = 4
"""The end of the second week of the month of May; what is deeper is nobody's sentence."""


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


def phrase_at(words: Words, at: int) -> Reading | None:
    """The longest reference that begins there, with the time of day after it; None if there is none."""
    if words.depth == _DEEPEST:
        return None
    words.depth += 1
    reading = _read(words, words.past(at, "the"))
    if reading and reading[0]:
        reading = _placed(words, reading[0], reading[1])
    words.depth -= 1
    return reading


def _read(words: Words, start: int) -> Reading | None:
    for reader in _READERS.get(words[start], _NUMBERS if words[start][:1].isdecimal() else ()):
        try:
            reading = reader(words, start)
        except (ValueError, OverflowError):
            continue
        if reading:
            phrase, after = reading
            return phrase, after + 1 if words[after] in CLOCK_WORDS else after
    return None


def _placed(words: Words, phrase: Phrase, after: int) -> Reading:
    """With what says which one it is, after it or before it: October 3 (of) last year, last year in March."""
    if phrase.cycle:
        place = words.past(after, "of", "in", "the")
        named = words[place] in BACKWARD | CURRENT | FORWARD and UNITS.get(words[place + 1]) is phrase.cycle
        whole = _read(words, place) if named else None
        return _one_within(words, whole, (phrase, whole[1])) or (phrase, after) if whole else (phrase, after)
    place = words.past(after, "'", "’", "s", "-", "on", "in", "the")
    named = phrase.base is not None and not phrase.steps and phrase.base.unit in _HOLDING
    found = phrase_at(words, place) if named else None
    return _one_within(words, (phrase, after), found) or (phrase, after)


def _one_within(words: Words, whole: Reading, one: Reading | None) -> Reading | None:
    """The one of many that is in that stretch, if it is one of those that such a stretch holds."""
    base = whole[0].base if whole[0] and not whole[0].steps else None
    if one is None or one[0] is None or base is None or one[0].cycle is not base.unit:
        return None
    phrase = one[0].within(base)
    return (phrase, one[1]) if phrase.resolved(words.today) else None


def _inner(words: Words, at: int) -> Reading | None:
    """What something is a part of: the month, last year, May 2019."""
    place = words.past(at, "of", "in", "the", "my", "around")
    whole = words[place] in UNITS and words[place][-1] != "s" and words[place + 1] not in {"of", "before"}
    if whole and words.figure(place + 1) is None:
        return known(period(UNITS[words[place]], words.today)), place + 1
    if year := words.year(place):
        if reading := year_first(words, place):
            return reading
        return known(period(Unit.YEAR, date(year[0], 1, 1))), year[1]
    if words[place] in MONTHS and (
        words[place] != "may" or words[place - 1] in {"of", "in"} or words.capital(place)
    ):
        return month_first(words, place) or (one_of(Unit.YEAR, month(MONTHS[words[place]])), place + 1)
    return figures_at(words, place) or phrase_at(words, place)


def _day_before(words: Words, at: int) -> Reading | None:
    """The day before yesterday, the week before last, the day after tomorrow, the day before."""
    unit = UNITS[words[at]]
    if words[at + 1] not in {"before", "after"} or words[at][-1] == "s":
        return None
    sign = -1 if words[at + 1] == "before" else 1
    if words[at + 2] in {"last", "next"} and words[at + 3] not in UNITS:
        return known(period(unit, words.today, 2 * sign)), at + 3
    other = phrase_at(words, at + 2)
    span = other[0].resolved(words.today) if other and other[0] else None
    if other and span:
        return known(period(unit, moved(span.start, unit, sign))), other[1]
    if words[at + 2] in {"", "?", ".", "!"} and words[at - 1] == "the" and unit is Unit.DAY:
        return known(period(unit, words.today, sign)), at + 2
    return None


def _ago(words: Words, at: int) -> Reading | None:
    """Two weeks ago, a year and 3 days back, in two days, 3 days before yesterday, a week from now."""
    if reading := few_ago(words, at) or weekdays_ago(words, at):
        return reading
    ahead = words[at] in {"in", "within"}
    found = amounts(words, words.past(at + 1, "the", "next") if words[at] == "within" else at + ahead)
    if found is None or (ahead and words[at + 1] == "couple"):
        return None
    counts, after = found
    if ahead:
        there = moved_by(words.today, counts, 1)
        return known(Span(words.today, there) if words[at] == "within" else day(there)), after
    if words[after] in {"ago", "back", "earlier"}:
        return before_now(words, counts, after + 1)
    if words[after] in {"later", "hence"}:
        return known(day(moved_by(words.today, counts, 1))), after + 1
    return _from_another(words, counts, after) if words[after] in {"before", "after", "from"} else None


def _from_another(words: Words, counts: list[tuple[int, Unit]], at: int) -> Reading | None:
    sign = -1 if words[at] == "before" else 1
    if words[at + 1] == "now":
        there = moved_by(words.today, counts, sign)
        return known(period(counts[-1][1], there) if sign < 0 else day(there)), at + 2
    other = phrase_at(words, at + 1) or figures_at(words, at + 1)
    span = other[0].resolved(words.today) if other and other[0] else None
    if other is None or span is None:
        return None
    if words[at] == "from" and words[at + 1] in WEEKDAYS and span.start < words.today:
        span = period(Unit.DAY, span.start, 7)
    return known(day(moved_by(span.start, counts, sign))), other[1]


def _nth_of(words: Words, at: int) -> Reading | None:
    """First Monday of last month, second week of May, first ten days of 2019, 20th of next month, 3rd qtr 2017."""
    found = words.ordinal(at) or (words.cardinal(at) if words[at][:1].isdecimal() else None)
    which, place = found if found else (1, at)
    if found and words[place] == "century":
        return known(period(Unit.CENTURY, date(100 * (which - 1), 1, 1))), place + 1
    if words[place] == "last":
        which, place = -which, place + 1
    elif found is None:
        return None
    several = words.cardinal(place) if words[place] not in UNITS else None
    count, place = several if several else (1, place)
    step = _kind(words[place], which, count)
    after = place + 1
    if step is None:
        step, after = day_of_month(which), place
        if words[after] != "of" or count != 1:
            return None
    elif words[after] not in _OF_WHAT and not (words.year(after) and UNITS.get(words[place]) is Unit.QUARTER):
        quarter = UNITS.get(words[place]) is Unit.QUARTER and found is not None and count == 1
        return (one_of(Unit.YEAR, step), after) if quarter else None
    inner = _inner(words, after)
    if inner is None or inner[0] is None:
        return inner
    return _narrowed(words, inner[0], step, inner[1])


def _kind(word: str, which: int, count: int) -> Step | None:
    if word in WEEKDAYS:
        return nth_weekday(WEEKDAYS[word], which)
    if word in {"half", "weekend"}:
        return half_of_it(which) if word == "half" else nth_weekend(which)
    return nth(UNITS[word], which, count) if word in UNITS else None


def _narrowed(words: Words, inner: Phrase, step: Step, after: int) -> Reading | None:
    phrase = inner.narrowed(step)
    return (phrase, after) if phrase.resolved(words.today) else None


def _part_of(words: Words, at: int) -> Reading | None:
    """Early May, the end of last year, mid-2019, late last week."""
    place = words.past(at + 1, "-", "of", "in", "part")
    if words[at] in {"beginning", "start", "middle", "end"} and words[at + 1] != "of":
        return None
    inner = _inner(words, place)
    if inner is None or inner[0] is None:
        return None
    return _narrowed(words, inner[0], part(PARTS[words[at]]), inner[1])


def _weekday_of(words: Words, at: int) -> Reading | None:
    """Tuesday two weeks ago."""
    ago = _ago(words, words.past(at + 1, "of"))
    if ago and ago[0] and ago[0].base and ago[0].base.unit is Unit.WEEK:
        return ago[0].narrowed(weekday(WEEKDAYS[words[at]])), ago[1]
    return None


def _unit_named(words: Words, at: int) -> Reading | None:
    """The week of May 3rd, the month of September, the year 2008, year to date."""
    unit = UNITS[words[at]]
    if words[at + 1] == "to" and words[at + 2] == "date":
        return known(Span(period(unit, words.today).start, words.today - ONE_DAY)), at + 3
    if unit is Unit.YEAR and (year := words.year(words.past(at + 1, "of"))):
        return known(period(Unit.YEAR, date(year[0], 1, 1))), year[1]
    if words[at + 1] != "of":
        return None
    inner = _inner(words, at + 2)
    span = inner[0].resolved(words.today) if inner and inner[0] else None
    if inner is None or inner[0] is None or span is None:
        return None
    if unit is Unit.MONTH and words[words.past(at + 2, "the")] in MONTHS:
        return one_of(Unit.YEAR, month(MONTHS[words[words.past(at + 2, "the")]])), inner[1]
    return (inner[0].narrowed(week_of), inner[1]) if unit is Unit.WEEK and span.unit is Unit.DAY else None


def _the_weekend(words: Words, at: int) -> Reading | None:
    """At the weekend, the weekend of May 5th."""
    if words[at - 1] != "the":
        return None
    other = phrase_at(words, at + 2) if words[at + 1] == "of" else None
    span = other[0].resolved(words.today) if other and other[0] else None
    if other and span and span.unit is Unit.DAY:
        return known(period(Unit.WEEK, span.start)).narrowed(weekend), other[1]
    return one_of(Unit.WEEK, weekend), at + 1


_Reader = Callable[[Words, int], Reading | None]
_NUMBERS: tuple[_Reader, ...] = (*(_ago, counted, day_first, days_of, _nth_of, year_first, short_decade, the_nth),)
_READERS: dict[str, tuple[_Reader, ...]] = {
    **dict.fromkeys({**ENGLISH_ONES, **ENGLISH_TENS, **ENGLISH_ORDINALS, **dict.fromkeys(FEW)}, _NUMBERS),
    **dict.fromkeys(("a", "an", "couple", "half", "in", "within"), (_ago,)),
    **dict.fromkeys(DECADE_WORDS, (short_decade,)),
    **dict.fromkeys(MONTHS, (month_of, month_first)),
    **dict.fromkeys(WEEKDAYS, (_weekday_of, weekday_first)),
    **dict.fromkeys(SEASONS, (month_of, season_first)),
    **dict.fromkeys(DAY_WORDS, (day_word,)),
    **dict.fromkeys(UNITS, (_day_before, _unit_named, numbered_week)),
    **dict.fromkeys(CURRENT | FORWARD, (shifted,)),
    **dict.fromkeys(BACKWARD, (_nth_of, shifted)),
    **dict.fromkeys(PARTS, (_part_of,)),
    **{
        "weekend": (_the_weekend,),
        "rest": (rest,),
        "remaining": (rest,),
        "remainder": (rest,),
        "earlier": (half_gone,),
        "later": (half_gone,),
    },
    **{"q": (part_of_year,), "h": (part_of_year,)},
}
STARTERS = frozenset(_READERS) | {"the"}
