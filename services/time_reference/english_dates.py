"""Dates in English that the calendar names: May 3rd, 3 May 2023, Friday the 15th, in May, 2019, the 1990s, week 10."""

from datetime import date

from services.time_reference.english_words import (
    CLOCK_WORDS,
    DECADE_WORDS,
    MONTHS,
    SAFE_ALONE,
    SEASONS,
    TO,
    WEEKDAYS,
    Words,
)
from services.time_reference.numeric import dated
from services.time_reference.phrases import Phrase, known, one_of
from services.time_reference.ranges import Unit, full_year, period
from services.time_reference.steps import Step, day_of_month, days_of_month, month, nth, season, weekday

Reading = tuple[Phrase | None, int]
"""What the words say and the place after them; without a phrase if they name a day that there is not."""

_YEARS_THAT_STAND_ALONE = range(1900, 2101)
_ASKING_FOR_A_YEAR = frozenset({"in", "since", "during", "year", "until", "till", "before", "after", "from", "by"})
_NOT_A_PLURAL = frozenset({"was", "is", "has", "as", "this", "us", "s", "does", "yes"})
_AFTER_A_NUMBERED_DAY = frozenset(
    {"", ".", ",", "?", "!", ";", ":", ")", "-", "–", "and", "or", "to", "at", "in", "with", "we", "i", "you", "did"}
    | {"was", "is", "for", "from", "of", "through", "until", "till", "what", "when", "about", "please", "if"}
    | CLOCK_WORDS
)


def figures_at(words: Words, at: int, *, follows: bool = False) -> Reading | None:
    """A date in figures; `follows` says that another one and a dash stand before it."""
    if not words[at][:1].isdecimal():
        return None
    found = dated(words.text, words.words[at].begin, words.today, follows=follows)
    if found is None:
        return None
    phrase, stop = found
    after = at
    while after < len(words.words) and words.words[after].begin < stop:
        after += 1
    return phrase, after


def month_first(words: Words, at: int) -> Reading | None:
    """May 3rd, 2023; May 3-5; May 2023; May; last of all only where it can be nothing else."""
    number = MONTHS[words[at]]
    after = words.past(at + 1, "the") if words[at + 1] == "the" else words.past(at + 1, ".", ",", "-", "/")
    day = words.day_number(after)
    if day and words.year(after) is None:
        # "I may 3 times" is no date; "may 3rd" and "May 3" are.
        weak = words[at] == "may" and not words.capital(at) and not words.asked(at)
        if not (weak and words.ordinal(after) is None):
            return _with_year(words, number, _days(words, *day))
    year = words.year(words.past(at + 1, ".", ",", "-", "/", "of", "in"))
    if year:
        return known(period(Unit.YEAR, date(year[0], 1, 1))).narrowed(month(number)), year[1]
    if words[at] in SAFE_ALONE or words.asked(at) or _is_an_end(words, at):
        return one_of(Unit.YEAR, month(number)), words.past(at + 1, ".") if words[at] not in SAFE_ALONE else at + 1
    return None


def _is_an_end(words: Words, at: int) -> bool:
    """Whether it is the one or the other end of from March to May."""
    names = MONTHS if words[at] in MONTHS else WEEKDAYS
    if words[at - 1] == "and":
        return words[at - 3] == "between"
    return (words[at - 1] in TO and words[at - 2] in names) or (words[at + 1] in TO and words[at + 2] in names)


def _days(words: Words, first: int, after: int) -> tuple[Step, int]:
    """The day of the month, or the days if there is a second one: 3-5, 3rd to the 5th."""
    if words[after] in TO or (words[after] == "and" and words[after + 1] == "the"):
        last = words.day_number(words.past(after + 1, "the"))
        follows = words[last[1]] if last else ""
        if last and follows not in MONTHS and follows not in {"/", ":"} and words.figure(after + 1) != 0:
            return days_of_month(first, last[0]), last[1]
    return day_of_month(first), after


def _with_year(words: Words, number: int, day: tuple[Step, int]) -> Reading | None:
    step, after = day
    year = words.year(words.past(after, ",", "of", "in"))
    cycle = one_of(Unit.YEAR, month(number), step)
    if year:
        cycle, after = known(period(Unit.YEAR, date(year[0], 1, 1))).narrowed(month(number), step), year[1]
    elif words[after] in {"of", "'", "’"}:
        short = words.figure(words.past(after, "of", "'", "’"))
        if short is not None and short < 100:  # noqa: PLR2004
            first = date(full_year(short, words.today), 1, 1)
            cycle = known(period(Unit.YEAR, first)).narrowed(month(number), step)
            after = words.past(after, "of", "'", "’") + 1
    return (cycle if cycle.resolved(words.today) else None), after


def day_first(words: Words, at: int) -> Reading | None:
    """3 May 2023, the 4th of July, 10-22 August, the ninth and seventeenth of April."""
    first = words.day_number(at)
    if first is None or first[0] > 31:  # noqa: PLR2004
        return None
    day, after = first
    step = day_of_month(day)
    if words[after] in TO or (words[after] == "and" and words[at - 1] in {"between", "the"}):
        following = words.past(after + 1, "the")
        if words[following] in MONTHS and (last := words.day_number(following + 1)):
            return _with_year(words, MONTHS[words[following]], (days_of_month(day, last[0]), last[1]))
        last = words.day_number(following)
        if last is None:
            return None
        step, after = days_of_month(day, last[0]), last[1]
    place = words.past(after, "of", "-", "/", ".", "day", "in")
    if words[place] not in MONTHS:
        return None
    if words[place] == "may" and not words.capital(place) and words[place - 1] != "of" and not words.ordinal(at):
        return None
    if words[at - 1] in {"a", "an"} or words[place - 1] == "in":
        return None
    end = words.past(place + 1, ".")
    if words.day_number(end) and words.year(end) is None and words[place - 1] != "of" and not words.ordinal(at):
        short = words.figure(end)
        if short is None or short < 32:  # noqa: PLR2004
            return None
    short = words.figure(words.past(end, "'", "’"))
    if short is not None and 31 < short < 100 and words.year(end) is None:  # noqa: PLR2004
        first_day = date(full_year(short, words.today), 1, 1)
        phrase = known(period(Unit.YEAR, first_day)).narrowed(month(MONTHS[words[place]]), step)
        return (phrase if phrase.resolved(words.today) else None), words.past(end, "'", "’") + 1
    return _with_year(words, MONTHS[words[place]], (step, end if words.year(words.past(end, ",", "of")) else place + 1))


def the_nth(words: Words, at: int) -> Reading | None:
    """The 4th, the twenty-second: a day of a month if nothing else can be meant."""
    found = words.ordinal(at)
    if found is None or words[at - 1] != "the" or not 1 <= found[0] <= 31:  # noqa: PLR2004
        return None
    if not words[at][0].isdecimal() and found[0] < 13:  # noqa: PLR2004
        return None
    if words[found[1]] not in _AFTER_A_NUMBERED_DAY:
        return None
    return one_of(Unit.MONTH, day_of_month(found[0])), found[1]


def year_first(words: Words, at: int) -> Reading | None:
    """2016, nov; 2019 May 3; in 2016; 1960 - 1961; the 1990s."""
    year = words.year(at)
    if year is None:
        return None
    number, after = year
    whole = known(period(Unit.YEAR, date(number, 1, 1)))
    if words[after] == "s" or (words[after] in {"'", "’"} and words[after + 1] == "s"):
        return (decade(number, words.past(after, "'", "’", "s")) if number % 10 == 0 else None)
    if words[after] in DECADE_WORDS:
        return decade(number, after + 1)
    place = words.past(after, ",", "-", "/")
    if words[place] in MONTHS and not (words[place] in {"may", "march"} and place == after and not words.capital(place)):
        day = words.day_number(words.past(place + 1, ",", "-", "/"))
        if day and words[place + 1] != ",":
            phrase = whole.narrowed(month(MONTHS[words[place]]), day_of_month(day[0]))
            return (phrase if phrase.resolved(words.today) else None), day[1]
        return whole.narrowed(month(MONTHS[words[place]])), place + 1
    if number not in _YEARS_THAT_STAND_ALONE:
        return None
    ends = words[after] in TO and words.year(after + 1) and words[at - 1] not in {"-", "+"}
    asked = words[at - 1] in _ASKING_FOR_A_YEAR or (words[at - 1] == "of" and words[at - 2] in {"year", "end", "start"})
    if ends or (words[at - 1] == "between") or (asked and not _counts_things(words, after)):
        return whole, after
    return None


def _counts_things(words: Words, at: int) -> bool:
    return words[at].isalpha() and words[at].endswith("s") and words[at] not in _NOT_A_PLURAL


def decade(year: int, after: int) -> Reading:
    """The ten years from that one on."""
    return known(period(Unit.DECADE, date(year, 1, 1))), after


def short_decade(words: Words, at: int) -> Reading | None:
    """The 70s, in the '90s, the seventies, nineteen seventies."""
    if words[at] in DECADE_WORDS:
        number, after = DECADE_WORDS[words[at]], at + 1
    elif words[at] == "nineteen" and words[at + 1] in DECADE_WORDS:
        return decade(1900 + DECADE_WORDS[words[at + 1]], at + 2)
    else:
        figure = words.figure(at)
        after = words.past(at + 1, "'", "’", "s")
        if figure is None or words[after - 1] != "s" or len(words[at]) != 2 or figure % 10:  # noqa: PLR2004
            return None
        number = figure
    before = words[at - 1] if words[at - 1] not in {"'", "’"} else words[at - 2]
    if before not in {"the", "in", "early", "mid", "late", "-"}:
        return None
    return decade(full_year(number, words.today), after)


def weekday_first(words: Words, at: int) -> Reading | None:
    """Monday, Friday the 15th, Mon 13th, Monday, February 18, Monday (June-15)."""
    number = WEEKDAYS[words[at]]
    after = words.past(at + 1, ".", ",", "the", "(", "-")
    if words[after] in MONTHS and (reading := month_first(words, after)) and words[after + 1]:
        if reading[0] is None or len(reading[0].steps) > 1:
            return reading[0], words.past(reading[1], ")")
    if reading := day_first(words, after) or figures_at(words, after):
        return reading
    day = words.day_number(words.past(at + 1, ".", ",", "the"))
    if day and day[0] <= 31 and words[day[1]] not in TO and words[day[1]] != ":" and words[at + 1] != "-":  # noqa: PLR2004
        full = words.ordinal(words.past(at + 1, ".", ",", "the")) or words[at + 1] == "the" or words[day[1]] in {"", "!", "?", "."}
        phrase = one_of(Unit.MONTH, day_of_month(day[0]), weekday(number))
        if full and phrase.resolved(words.today):
            return phrase, day[1]
    named = words[at] in SAFE_ALONE or words.asked(at) or words[at - 1] in {"last", "next", "this"}
    if not (named or _is_an_end(words, at)) or words[at - 1] in {"every", "each"}:
        return None
    return one_of(Unit.WEEK, weekday(number)), at + 1


def numbered_week(words: Words, at: int) -> Reading | None:
    """Week 10, week 10 of 2019."""
    number = words.figure(at + 1)
    if words[at] != "week" or number is None or not 1 <= number <= 53:  # noqa: PLR2004
        return None
    year = words.year(words.past(at + 2, "of", "in", ","))
    if year:
        return known(period(Unit.YEAR, date(year[0], 1, 1))).narrowed(nth(Unit.WEEK, number)), year[1]
    return one_of(Unit.YEAR, nth(Unit.WEEK, number)), at + 2


def part_of_year(words: Words, at: int) -> Reading | None:
    """Q1, Q4 2016, H2 2016."""
    unit = {"q": Unit.QUARTER, "h": Unit.HALF}[words[at]]
    number = words.figure(at + 1)
    if number is None or not 1 <= number <= Unit.YEAR.months // unit.months:
        return None
    if words.words[at].stop != words.words[at + 1].begin:
        return None
    year = words.year(words.past(at + 2, "of", "in", ",", "-"))
    if year:
        return known(period(Unit.YEAR, date(year[0], 1, 1))).narrowed(nth(unit, number)), year[1]
    return (one_of(Unit.YEAR, nth(unit, number)), at + 2) if unit is Unit.QUARTER else None


def season_first(words: Words, at: int) -> Reading | None:
    """Summer 2019, in the summer (of 2019)."""
    step = season(SEASONS[words[at]])
    year = words.year(words.past(at + 1, "of", "in", ","))
    if year:
        return known(period(Unit.YEAR, date(year[0], 1, 1))).narrowed(step), year[1]
    if words[at - 1] in {"in", "during", "since"} or (words[at - 1] == "the" and words[at - 2] in {"in", "during", "over"}):
        return one_of(Unit.YEAR, step), at + 1
    return None
