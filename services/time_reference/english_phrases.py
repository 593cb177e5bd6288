"""References in English that count from today, and parts of others: last week, two days ago, the end of May."""

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
    UNITS,
    WEEKDAYS,
    Words,
)
from services.time_reference.numerals import ENGLISH_ONES, ENGLISH_ORDINALS, ENGLISH_TENS
from services.time_reference.phrases import Phrase, known, one_of
from services.time_reference.ranges import ONE_DAY, Span, Unit, day, moved, period
from services.time_reference.steps import (
    Step,
    day_of_month,
    days_of_month,
    half_of_it,
    month,
    nth,
    nth_weekday,
    part,
    season,
    week_of,
    weekday,
    weekend,
)

_FEW = (2, 7)
_SATURDAY = 5
_HALVES = {Unit.YEAR: (6, Unit.MONTH), Unit.MONTH: (15, Unit.DAY), Unit.WEEK: (3, Unit.DAY)}


def phrase_at(words: Words, at: int) -> Reading | None:
    """The longest reference that begins there, with the time of day after it; None if there is none."""
    start = words.past(at, "the")
    for reader in _READERS.get(words[start], _NUMBERS if words[start][:1].isdecimal() else ()):
        try:
            reading = reader(words, start)
        except (ValueError, OverflowError):
            continue
        if reading:
            phrase, after = reading
            return phrase, after + 1 if words[after] in CLOCK_WORDS else after
    return None


def _inner(words: Words, at: int) -> Reading | None:
    """What something is a part of: the month, last year, May 2019."""
    place = words.past(at, "of", "in", "the", "my", "around")
    if words[place] in UNITS and words[place][-1] != "s" and words[place + 1] not in {"of", "before"}:
        if words.figure(place + 1) is None:
            return known(period(UNITS[words[place]], words.today)), place + 1
    if year := words.year(place):
        if reading := year_first(words, place):
            return reading
        return known(period(Unit.YEAR, date(year[0], 1, 1))), year[1]
    if words[place] in MONTHS and (words[place] != "may" or words[place - 1] in {"of", "in"} or words.capital(place)):
        return month_first(words, place) or (one_of(Unit.YEAR, month(MONTHS[words[place]])), place + 1)
    return figures_at(words, place) or phrase_at(words, place)


def _day_word(words: Words, at: int) -> Reading | None:
    found = known(period(Unit.DAY, words.today, DAY_WORDS[words[at]]))
    return found, at + 1


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


def _amounts(words: Words, at: int) -> tuple[list[tuple[int, Unit]], int] | None:
    """Two weeks; 1 month and 21 days."""
    if words[at] == "half" and words[at + 1] == "a" and UNITS.get(words[at + 2]) in _HALVES:
        return [_HALVES[UNITS[words[at + 2]]]], at + 3
    found: list[tuple[int, Unit]] = []
    after = place = at
    while count := words.count(place):
        half = words[count[1]] == "and" and words[count[1] + 2] == "half"
        place = count[1] + 3 if half else count[1]
        if words[place] not in UNITS:
            break
        unit, twice = UNITS[words[place]], words[place].startswith("fortnight")
        found.append((count[0] * (2 if twice else 1), unit))
        after = place + 1
        if words[after] == "and" and words[after + 2] == "half":
            half, after = True, after + 3
        if half and unit in _HALVES:
            found.append(_HALVES[unit])
        place = words.past(after, ",", "and")
    return (found, after) if found else None


def _ago(words: Words, at: int) -> Reading | None:
    """Two weeks ago, a year and 3 days back, in two days, 3 days before yesterday, a week from now."""
    ahead = words[at] in {"in", "within"}
    if reading := _few_ago(words, at):
        return reading
    if found := _weekdays_ago(words, at):
        return found
    found = _amounts(words, words.past(at + 1, "the", "next") if words[at] == "within" else at + ahead)
    if found is None or (ahead and words[at + 1] == "couple"):
        return None
    amounts, after = found
    if ahead:
        there = _moved(words.today, amounts, 1)
        return known(Span(words.today, there) if words[at] == "within" else day(there)), after
    if words[after] in {"ago", "back", "earlier"}:
        unit = amounts[-1][1]
        there = _moved(words.today, amounts, -1)
        if words[after + 1] in {"today", "yesterday"}:
            return known(period(Unit.DAY, there, DAY_WORDS[words[after + 1]])), after + 2
        reading = known(period(unit, there)), after + 1
        place = words.past(after + 1, "on", ",")
        if unit is Unit.WEEK and len(amounts) == 1 and words[place] in WEEKDAYS:
            return reading[0].narrowed(weekday(WEEKDAYS[words[place]])), place + 1
        return reading
    if words[after] in {"later", "hence"}:
        return known(day(_moved(words.today, amounts, 1))), after + 1
    if words[after] in {"before", "after", "from"}:
        return _from_another(words, amounts, after)
    return None


def _weekdays_ago(words: Words, at: int) -> Reading | None:
    """Two Mondays ago."""
    count = words.count(at)
    number = WEEKDAYS.get(words[count[1]].removesuffix("s")) if count else None
    if count is None or number is None or words[count[1] + 1] != "ago":
        return None
    behind = (words.today.weekday() - number - 1) % 7 + 1
    return known(period(Unit.DAY, words.today, -behind - 7 * (count[0] - 1))), count[1] + 2


def _from_another(words: Words, amounts: list[tuple[int, Unit]], at: int) -> Reading | None:
    sign = -1 if words[at] == "before" else 1
    if words[at + 1] == "now":
        there = _moved(words.today, amounts, sign)
        return known(period(amounts[-1][1], there) if sign < 0 else day(there)), at + 2
    other = phrase_at(words, at + 1) or figures_at(words, at + 1)
    span = other[0].resolved(words.today) if other and other[0] else None
    if other is None or span is None:
        return None
    if words[at] == "from" and words[at + 1] in WEEKDAYS and span.start < words.today:
        span = period(Unit.DAY, span.start, 7)
    return known(day(_moved(span.start, amounts, sign))), other[1]


def _few_ago(words: Words, at: int) -> Reading | None:
    place = words.past(at, "a", "just")
    if words[place] not in FEW or words[place + 1] not in UNITS or words[place + 2] not in {"ago", "back", "earlier"}:
        return None
    unit = UNITS[words[place + 1]]
    near, far = (period(unit, moved(words.today, unit, -count)) for count in _FEW)
    return known(Span(far.start, near.end)), place + 3


def _moved(of: date, amounts: list[tuple[int, Unit]], sign: int) -> date:
    for count, unit in amounts:
        of = moved(of, unit, sign * count)
    return of


def _shifted(words: Words, at: int) -> Reading | None:
    """Last week, this month, next Monday, last sept, the past 3 days, last night."""
    way, place = words[at], at + 1
    if way == "this" and words[place] in BACKWARD | {"coming"}:
        way, place = words[place], place + 1
    away = -1 if way in BACKWARD else 1 if way in FORWARD else 0
    word = words[place]
    if word == "night" or word in CLOCK_WORDS:
        return known(period(Unit.DAY, words.today, away)), place + 1
    if word in WEEKDAYS:
        return _shifted_weekday(words, way, away, place)
    if word in MONTHS and (away or word != "may" or words.capital(place)):
        return _shifted_month(words, away, place)
    if word in SEASONS:
        phrase = one_of(Unit.YEAR, season(SEASONS[word]))
        if away < 0:
            before = phrase.until(words.today)
            running = before is not None and before.end >= words.today
            span = phrase.until(before.start - ONE_DAY) if before and running else before
        else:
            span = phrase.after(words.today) if away else known(period(Unit.YEAR, words.today)).narrowed(season(SEASONS[word])).resolved(words.today)
        return (known(span), place + 1) if span else None
    if word in {"weekend", "weekends"}:
        return known(period(Unit.WEEK, words.today, away)).narrowed(weekend), place + 1
    if word == "workweek":
        week = period(Unit.WEEK, words.today, away)
        return known(Span(week.start, week.start + 4 * ONE_DAY)), place + 1
    if word in {"half"}:
        return known(period(Unit.HALF, words.today, away)), place + 1
    if word in UNITS and word[-1] != "s":
        return _shifted_unit(words, at, away, place)
    return _rolling(words, way, away, place) if away else None


def _shifted_unit(words: Words, at: int, away: int, place: int) -> Reading | None:
    unit = UNITS[words[place]]
    if unit is Unit.DAY and words[place + 1] in {"of", "in"} and away < 0:
        return None
    rolls = words[at - 1] == "the" and words[at - 2] in {"in", "over", "within", "during", "for"}
    if rolls and words[at] in {"last", "past"} and unit is not Unit.DAY and words[place + 1] != "of":
        return known(Span(moved(words.today, unit, -1), words.today)), place + 1
    found, after = known(period(unit, words.today, away)), place + 1
    if unit is Unit.WEEK:
        following = words.past(after, "'", "’", "s", "-", "on")
        if words[following] in WEEKDAYS:
            return found.narrowed(weekday(WEEKDAYS[words[following]])), following + 1
    return found, after


def _shifted_weekday(words: Words, way: str, away: int, place: int) -> Reading | None:
    number = WEEKDAYS[words[place]]
    full = weekday_first(words, place)
    if full and full[1] > place + 1:
        return full
    if away < 0:
        return known(day(words.today - ONE_DAY * ((words.today.weekday() - number - 1) % 7 + 1))), place + 1
    if way in {"coming", "upcoming"}:
        return known(day(words.today + ONE_DAY * ((number - words.today.weekday() - 1) % 7 + 1))), place + 1
    return known(period(Unit.WEEK, words.today, away)).narrowed(weekday(number)), place + 1


def _shifted_month(words: Words, away: int, place: int) -> Reading | None:
    full = month_first(words, place)
    if full and full[0] and full[1] > place + 1 and len(full[0].steps) > 1:
        return full
    step = month(MONTHS[words[place]])
    if away > 0:
        span = one_of(Unit.YEAR, step).after(words.today + ONE_DAY)
        return (known(span), place + 1) if span else None
    return known(period(Unit.YEAR, words.today, away)).narrowed(step), place + 1


def _rolling(words: Words, way: str, away: int, at: int) -> Reading | None:
    """The last 3 days, the past few weeks, next two months."""
    few = words[at] in FEW
    count = (_FEW[1], at + 1) if few else words.count(at)
    if count is None or words[count[1]] not in UNITS:
        return None
    number, place = count
    unit = UNITS[words[place]]
    if words[place + 1] in {"of", "in"} and words[place + 2] in MONTHS | {"the": 0, "this": 0, "last": 0} and not few:
        inner = _inner(words, place + 1)
        if inner and inner[0]:
            return inner[0].narrowed(nth(unit, -1 if away < 0 else 1, number)), inner[1]
    if number < 1:
        return None
    if away > 0:
        return known(Span(words.today + ONE_DAY, moved(words.today, unit, number))), place + 1
    end = words.today - ONE_DAY if way in {"previous", "prior", "preceding"} else words.today
    return known(Span(moved(words.today, unit, -number), end)), place + 1


def _counted(words: Words, at: int) -> Reading | None:
    """10 previous weeks, the 5 past years, 2 upcoming months."""
    count = words.cardinal(at)
    if count is None or words[count[1]] not in BACKWARD | FORWARD or words[count[1] + 1] not in UNITS or count[0] < 1:
        return None
    unit = UNITS[words[count[1] + 1]]
    if words[count[1]] in BACKWARD:
        return known(Span(moved(words.today, unit, -count[0]), words.today - ONE_DAY)), count[1] + 2
    return known(Span(words.today + ONE_DAY, moved(words.today, unit, count[0]))), count[1] + 2


def _nth_of(words: Words, at: int) -> Reading | None:
    """First Monday of last month, second week of May, first ten days of last year, 20th of next month, 4th qtr 2018."""
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
    elif words[after] not in {"of", "in"} and not (words.year(after) and UNITS.get(words[place]) is Unit.QUARTER) and words[after] not in CURRENT | BACKWARD:
        return None
    inner = _inner(words, after)
    if inner is None or inner[0] is None:
        return inner
    return _narrowed(words, inner[0], step, inner[1])


def _kind(word: str, which: int, count: int) -> Step | None:
    if word in WEEKDAYS:
        return nth_weekday(WEEKDAYS[word], which)
    if word == "half":
        return half_of_it(which)
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
    """Tuesday of last week, Monday last week."""
    place = words.past(at + 1, "of", "in", "the")
    if words[place] in BACKWARD | CURRENT | FORWARD and words[place + 1] in {"week", "wk"}:
        inner = _shifted(words, place)
        if inner and inner[0]:
            return inner[0].narrowed(weekday(WEEKDAYS[words[at]])), inner[1]
    ago = _ago(words, place) if place == at + 1 or words[at + 1] == "of" else None
    if ago and ago[0] and ago[0].base and ago[0].base.unit is Unit.WEEK:
        return ago[0].narrowed(weekday(WEEKDAYS[words[at]])), ago[1]
    return None


def _month_of(words: Words, at: int) -> Reading | None:
    """March of last year, summer this year."""
    place = words.past(at + 1, "of", "in", "the")
    if words[place] not in BACKWARD | CURRENT | FORWARD or words[place + 1] not in {"year", "yr"}:
        return None
    inner = _shifted(words, place)
    if inner is None or inner[0] is None:
        return None
    step = month(MONTHS[words[at]]) if words[at] in MONTHS else season(SEASONS[words[at]])
    return inner[0].narrowed(step), inner[1]


def _rest(words: Words, at: int) -> Reading | None:
    """Rest of the week: to Saturday; rest of the month or year: to its end."""
    place = words.past(at + 1, "of", "in", "the", "my", "this", "current")
    unit = UNITS.get(words[place])
    if unit is None or unit is Unit.DAY:
        return None
    end = period(unit, words.today).end
    if unit is Unit.WEEK and words.today.weekday() <= _SATURDAY:
        end -= ONE_DAY
    return known(Span(words.today, end)), place + 1


def _half_gone(words: Words, at: int) -> Reading | None:
    """Earlier this month: its first half or less, up to yesterday; later this year: its second half, from today."""
    place = words.past(at + 1, "in", "the")
    place = words.past(place, "this")
    unit = UNITS.get(words[place])
    if unit not in {Unit.WEEK, Unit.MONTH, Unit.YEAR} or place == at + 1:
        return None
    whole = period(unit, words.today)
    if words[at] == "earlier":
        end = max(whole.start, words.today - ONE_DAY)
        return known(Span(whole.start, end)), place + 1
    second = half_of_it(2)(whole)
    start = max(second.start if second else whole.start, words.today)
    return known(Span(start, whole.end)), place + 1


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


def _days_of(words: Words, at: int) -> Reading | None:
    """4 to 22 this month, 4-23 in next month."""
    first = words.day_number(at)
    if first is None or words[first[1]] not in {"to", "-", "–", "through", "and", "until"}:
        return None
    last = words.day_number(words.past(first[1] + 1, "the"))
    if last is None:
        return None
    place = words.past(last[1], "of", "in", "the")
    if words[place] in BACKWARD | CURRENT | FORWARD and words[place + 1] == "month":
        away = -1 if words[place] in BACKWARD else 1 if words[place] in FORWARD else 0
        return known(period(Unit.MONTH, words.today, away)).narrowed(days_of_month(first[0], last[0])), place + 2
    return None


_Reader = Callable[[Words, int], Reading | None]
_NUMBERS: tuple[_Reader, ...] = (
    *(_ago, _counted, day_first, _days_of, _nth_of, year_first, short_decade, the_nth),
)
_READERS: dict[str, tuple[_Reader, ...]] = {
    **{word: _NUMBERS for word in {**ENGLISH_ONES, **ENGLISH_TENS, **ENGLISH_ORDINALS, **dict.fromkeys(FEW)}},
    **{word: (_ago,) for word in ("a", "an", "couple", "half", "in", "within")},
    **{word: (short_decade,) for word in DECADE_WORDS},
    **{word: (_month_of, month_first) for word in MONTHS},
    **{word: (_weekday_of, weekday_first) for word in WEEKDAYS},
    **{word: (_month_of, season_first) for word in SEASONS},
    **{word: (_day_word,) for word in DAY_WORDS},
    **{word: (_day_before, _unit_named, numbered_week) for word in UNITS},
    **{word: (_shifted,) for word in CURRENT | FORWARD},
    **{word: (_nth_of, _shifted) for word in BACKWARD},
    **{word: (_part_of,) for word in PARTS},
    **{"rest": (_rest,), "remaining": (_rest,), "remainder": (_rest,), "earlier": (_half_gone,), "later": (_half_gone,)},
    **{"q": (part_of_year,), "h": (part_of_year,)},
}
STARTERS = frozenset(_READERS) | {"the"}
