"""References in English that count from today: last week, two days ago, the past 3 months, rest of the year."""

from datetime import date

from services.time_reference.english_dates import Reading, month_first, weekday_first
from services.time_reference.english_words import (
    BACKWARD,
    CLOCK_WORDS,
    CURRENT,
    DAY_WORDS,
    FEW,
    FORWARD,
    MONTHS,
    SEASONS,
    UNITS,
    WEEKDAYS,
    Words,
)
from services.time_reference.phrases import ONE_DAY, Span, Unit, day, known, moved, one_of, period
from services.time_reference.steps import days_of_month, half_of_it, month, season, weekday, weekend, working_days

_FEW = (2, 7)
_SATURDAY = 5
_MOST_AMOUNTS = 4
_HALVES = {Unit.YEAR: (6, Unit.MONTH), Unit.MONTH: (15, Unit.DAY), Unit.WEEK: (3, Unit.DAY)}
_AHEAD = frozenset({"in", "over", "within", "during", "for"})


def day_word(words: Words, at: int) -> Reading | None:
    """Today, yesterday, tomorrow."""
    found = known(period(Unit.DAY, words.today, DAY_WORDS[words[at]]))
    return found, at + 1


def amounts(words: Words, at: int) -> tuple[list[tuple[int, Unit]], int] | None:
    """Two weeks; 2 months and 5 days."""
    if words[at] == "half" and words[at + 1] == "a" and UNITS.get(words[at + 2]) in _HALVES:
        return [_HALVES[UNITS[words[at + 2]]]], at + 3
    found: list[tuple[int, Unit]] = []
    after = place = at
    while len(found) < _MOST_AMOUNTS and (count := words.count(place)):
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


def weekdays_ago(words: Words, at: int) -> Reading | None:
    """Two Mondays ago."""
    count = words.count(at)
    number = WEEKDAYS.get(words[count[1]].removesuffix("s")) if count else None
    if count is None or number is None or words[count[1] + 1] != "ago":
        return None
    behind = (words.today.weekday() - number - 1) % 7 + 1
    return known(period(Unit.DAY, words.today, -behind - 7 * (count[0] - 1))), count[1] + 2


def few_ago(words: Words, at: int) -> Reading | None:
    """A few days ago, just a couple of weeks back."""
    place = words.past(at, "a", "just")
    if (
        words[place] not in FEW
        or words[place + 1] not in UNITS
        or words[place + 2] not in {"ago", "back", "earlier"}
    ):
        return None
    unit = UNITS[words[place + 1]]
    near, far = (period(unit, moved(words.today, unit, -count)) for count in _FEW)
    return known(Span(far.start, near.end)), place + 3


def moved_by(of: date, amounts: list[tuple[int, Unit]], sign: int) -> date:
    """The date after all amounts of units, or before them with a `sign` of -1."""
    for count, unit in amounts:
        of = moved(of, unit, sign * count)
    return of


def shifted(words: Words, at: int) -> Reading | None:
    """Last week, this month, next Monday, last sept, the past 3 days, last night."""
    way, place = words[at], at + 1
    if way == "this" and words[place] in BACKWARD | {"coming"}:
        way, place = words[place], place + 1
    away = -1 if way in BACKWARD else 1 if way in FORWARD else 0
    word = words[place]
    if word in CLOCK_WORDS:
        return known(period(Unit.DAY, words.today, away)), place + 1
    if word in WEEKDAYS:
        return _shifted_weekday(words, way, away, place)
    if word in MONTHS and (away or word != "may" or words.capital(place)):
        return _shifted_month(words, away, place)
    if word in SEASONS:
        return _shifted_season(words, away, place)
    if word in UNITS and word[-1] != "s":
        return _shifted_unit(words, at, away, place)
    return _shifted_other(words, away, place) or (_rolling(words, way, away, place) if away else None)


def _shifted_other(words: Words, away: int, place: int) -> Reading | None:
    week = known(period(Unit.WEEK, words.today, away))
    if words[place] == "weekend":
        return week.narrowed(weekend), place + 1
    if words[place] == "workweek":
        return week.narrowed(working_days), place + 1
    return (known(period(Unit.HALF, words.today, away)), place + 1) if words[place] == "half" else None


def _shifted_season(words: Words, away: int, place: int) -> Reading | None:
    step = season(SEASONS[words[place]])
    cycle = one_of(Unit.YEAR, step)
    if away == 0:
        return known(period(Unit.YEAR, words.today)).narrowed(step), place + 1
    span = cycle.after(words.today + ONE_DAY) if away > 0 else cycle.until(words.today)
    if away < 0 and span and span.end >= words.today:
        span = cycle.until(span.start - ONE_DAY)
    return (known(span), place + 1) if span else None


def _shifted_unit(words: Words, at: int, away: int, place: int) -> Reading | None:
    unit = UNITS[words[place]]
    if unit is Unit.DAY and words[place + 1] in {"of", "in"} and away < 0:
        return None
    rolls = words[at - 1] == "the" and words[at - 2] in _AHEAD
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
    if number < 1:
        return None
    if away > 0:
        return known(Span(words.today + ONE_DAY, moved(words.today, unit, number))), place + 1
    end = words.today - ONE_DAY if way in {"previous", "prior", "preceding"} else words.today
    return known(Span(moved(words.today, unit, -number), end)), place + 1


def counted(words: Words, at: int) -> Reading | None:
    """6 previous weeks, the 4 past years, 3 upcoming months."""
    count = words.cardinal(at)
    if (
        count is None
        or words[count[1]] not in BACKWARD | FORWARD
        or words[count[1] + 1] not in UNITS
        or count[0] < 1
    ):
        return None
    unit = UNITS[words[count[1] + 1]]
    if words[count[1]] in BACKWARD:
        return known(Span(moved(words.today, unit, -count[0]), words.today - ONE_DAY)), count[1] + 2
    return known(Span(words.today + ONE_DAY, moved(words.today, unit, count[0]))), count[1] + 2


def rest(words: Words, at: int) -> Reading | None:
    """Rest of the week: to Saturday; rest of the month or year: to its end."""
    place = words.past(at + 1, "of", "in", "the", "my", "this", "current")
    unit = UNITS.get(words[place])
    if unit is None or unit is Unit.DAY:
        return None
    end = period(unit, words.today).end
    if unit is Unit.WEEK and words.today.weekday() <= _SATURDAY:
        end -= ONE_DAY
    return known(Span(words.today, end)), place + 1


def half_gone(words: Words, at: int) -> Reading | None:
    """Earlier this month: up to yesterday; later this year: its second half, from today on."""
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


def days_of(words: Words, at: int) -> Reading | None:
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


def month_of(words: Words, at: int) -> Reading | None:
    """March of last year, summer this year."""
    place = words.past(at + 1, "of", "in", "the")
    if words[place] not in BACKWARD | CURRENT | FORWARD or words[place + 1] not in {"year", "yr"}:
        return None
    inner = shifted(words, place)
    if inner is None or inner[0] is None:
        return None
    step = month(MONTHS[words[at]]) if words[at] in MONTHS else season(SEASONS[words[at]])
    return inner[0].narrowed(step), inner[1]


def before_now(words: Words, counts: list[tuple[int, Unit]], after: int) -> Reading:
    """So long ago: the unit it falls in, or the day if another one is named (a year ago today, on Tuesday)."""
    unit = counts[-1][1]
    there = moved_by(words.today, counts, -1)
    if words[after] in {"today", "yesterday"}:
        return known(period(Unit.DAY, there, DAY_WORDS[words[after]])), after + 1
    place = words.past(after, "on", ",")
    if unit is Unit.WEEK and len(counts) == 1 and words[place] in WEEKDAYS:
        return known(period(unit, there)).narrowed(weekday(WEEKDAYS[words[place]])), place + 1
    return known(period(unit, there)), after
