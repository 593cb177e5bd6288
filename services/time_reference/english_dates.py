"""Dates and longer stretches in English that the calendar names: May 3rd, Friday the 15th, 2019, week 10, Q4."""

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
from services.time_reference.phrases import (
    DAY_NUMBERS,
    MONTH_NUMBERS,
    TWO_FIGURES,
    Phrase,
    Step,
    Unit,
    full_year,
    known,
    one_of,
    period,
)
from services.time_reference.steps import day_of_month, days_of_month, month, nth, season, weekday

Reading = tuple[Phrase | None, int]
"""A phrase and the place after it; no phrase if the words name a day that does not exist."""

_AFTER_A_NUMBERED_DAY = CLOCK_WORDS | {
    "",
    *[
        ".",
        ",",
        "?",
        "!",
        ";",
        ":",
        ")",
        "-",
        "–",
        "and",
        "or",
        "to",
        "at",
        "in",
        "with",
        "about",
        "for",
        "from",
        "of",
        "through",
        "until",
        "till",
        "if",
        "we",
        "i",
        "you",
        "did",
        "was",
        "is",
    ],
    *("what", "when", "please"),
}
"""Words that may follow “the 4th” when it is a day, not the 4th floor."""

_WEEK_NUMBERS = range(1, 54)
_YEARS_THAT_STAND_ALONE = range(1900, 2101)
_ASKING_FOR_A_YEAR = frozenset({"in", "since", "during", "year", "until", "till", "before", "after", "from", "by"})
_NOT_A_PLURAL = frozenset({"was", "is", "has", "as", "this", "us", "s", "does", "yes"})


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


def _with_year(words: Words, number: int, days: tuple[Step, int]) -> Reading:
    step, after = days
    if year := words.year(words.past(after, ",", "of", "in")):
        return _in_year(words, year[0], number, step, year[1])
    if words[after] in {"of", "'", "’"}:
        place = words.past(after, "of", "'", "’")
        short = words.figure(place)
        if short is not None and short in TWO_FIGURES:
            return _in_year(words, full_year(short, words.today), number, step, place + 1)
    cycle = one_of(Unit.YEAR, month(number), step)
    return (cycle if cycle.resolved(words.today) else None), after


def day_first(words: Words, at: int) -> Reading | None:
    """3 May 2023, the 4th of July, 10-22 August, the ninth and seventeenth of April."""
    first = words.day_number(at)
    days = _days_before_month(words, at, *first) if first and first[0] in DAY_NUMBERS else None
    if first is None or days is None:
        return None
    step, after = days
    if words[after] in MONTHS and words[after - 1] in TO and (last := words.day_number(after + 1)):
        return _with_year(words, MONTHS[words[after]], (days_of_month(first[0], last[0]), last[1]))
    return _month_after_day(words, at, step, after)


def _month_after_day(words: Words, at: int, step: Step, after: int) -> Reading | None:
    place = words.past(after, "of", "-", "/", ".", "day")
    if words[place] not in MONTHS or words[at - 1] in {"a", "an"}:
        return None
    surely = words[place - 1] == "of" or words.ordinal(at) is not None
    end = words.past(place + 1, ".")
    year = words.year(words.past(end, ",", "of"))
    short = words.figure(words.past(end, "'", "’"))
    if not surely and (words[place] == "may" and not words.capital(place)):
        return None
    if year is None and short is not None and short not in DAY_NUMBERS and short in TWO_FIGURES:
        return _in_year(
            words, full_year(short, words.today), MONTHS[words[place]], step, words.past(end, "'", "’") + 1
        )
    # "chapter 3 March 5": the second figure is the day.
    if not surely and year is None and words.day_number(end):
        return None
    return _with_year(words, MONTHS[words[place]], (step, end if year else place + 1))


def _days_before_month(words: Words, at: int, first: int, after: int) -> tuple[Step, int] | None:
    """The day, or the days if there is a second one; the place of the month if that comes before the second."""
    if words[after] not in TO and not (words[after] == "and" and words[at - 1] in {"between", "the"}):
        return day_of_month(first), after
    following = words.past(after + 1, "the")
    if words[following] in MONTHS:
        return day_of_month(first), following
    last = words.day_number(following)
    return (days_of_month(first, last[0]), last[1]) if last else None


def _in_year(words: Words, year: int, number: int, step: Step, after: int) -> Reading:
    phrase = known(period(Unit.YEAR, date(year, 1, 1))).narrowed(month(number), step)
    return (phrase if phrase.resolved(words.today) else None), after


def the_nth(words: Words, at: int) -> Reading | None:
    """The 4th, the twenty-second: a day of a month if nothing else can be meant."""
    found = words.ordinal(at)
    if (
        found is None
        and words[at - 2] == "on"
        and words[(words.cardinal(at) or (0, at))[1]] in {"", ".", "?", "!", ","}
    ):
        found = words.cardinal(at)  # on the 27.
    if found is None or words[at - 1] != "the" or found[0] not in DAY_NUMBERS:
        return None
    # The first, the third are seldom days; the twenty-second is.
    if not words[at][0].isdecimal() and found[0] in MONTH_NUMBERS:
        return None
    if words[found[1]] not in _AFTER_A_NUMBERED_DAY:
        return None
    return one_of(Unit.MONTH, day_of_month(found[0])), found[1]


def _weekday_the_nth(words: Words, at: int) -> Reading | None:
    """Friday the 15th, Fri 15; not Friday 3-5, which are hours."""
    place = words.past(at + 1, ".", ",", "the")
    found = words.day_number(place)
    if found is None or found[0] not in DAY_NUMBERS or words[found[1]] in TO or words[at + 1] == "-":
        return None
    if not (words.ordinal(place) or words[at + 1] == "the" or words[found[1]] in {"", "!", "?", "."}):
        return None
    phrase = one_of(Unit.MONTH, day_of_month(found[0]), weekday(WEEKDAYS[words[at]]))
    return (phrase, found[1]) if phrase.resolved(words.today) else None


def weekday_first(words: Words, at: int) -> Reading | None:
    """Monday, Friday the 15th, Mon 13th, Monday, February 18, Monday (June-15)."""
    number = WEEKDAYS[words[at]]
    after = words.past(at + 1, ".", ",", "the", "(", "-")
    dated_so = month_first(words, after) if words[after] in MONTHS and words[after + 1] else None
    if dated_so and (dated_so[0] is None or len(dated_so[0].steps) > 1):
        return dated_so[0], words.past(dated_so[1], ")")
    if reading := day_first(words, after) or figures_at(words, after) or _weekday_the_nth(words, at):
        return reading
    named = words[at] in SAFE_ALONE or words.asked(at) or words[at - 1] in {"last", "next", "this"}
    if not (named or _is_an_end(words, at)) or words[at - 1] in {"every", "each"}:
        return None
    return one_of(Unit.WEEK, weekday(number)), at + 1


def year_first(words: Words, at: int) -> Reading | None:
    """2014, jun; 2019 May 3; in 2016; 1972 - 1975; the 1990s."""
    year = words.year(at)
    if year is None:
        return None
    number, after = year
    plural = words.past(after, "'", "’")
    if words[plural] == "s":
        return decade(number, plural + 1) if number % 10 == 0 else None
    if words[after] in DECADE_WORDS:
        return decade(number, after + 1)
    whole = known(period(Unit.YEAR, date(number, 1, 1)))
    place = words.past(after, ",", "-", "/")
    also_verb = words[place] in {"may", "march"} and place == after and not words.capital(place)
    if words[place] in MONTHS and not also_verb:
        return _month_after(words, whole, place)
    return (whole, after) if number in _YEARS_THAT_STAND_ALONE and _means_a_year(words, at, after) else None


def _month_after(words: Words, year: Phrase, at: int) -> Reading:
    named = year.narrowed(month(MONTHS[words[at]]))
    found = words.day_number(words.past(at + 1, "-", "/"))
    if found is None:
        return named, at + 1
    phrase = named.narrowed(day_of_month(found[0]))
    return (phrase if phrase.resolved(words.today) else None), found[1]


def _means_a_year(words: Words, at: int, after: int) -> bool:
    """Whether four figures are a year: in 2016, the end of 2016, 1972 - 1975; not in 2000 words."""
    if words[at - 1] == "between":
        return True
    if words[after] in TO and words.year(after + 1) and words[at - 1] not in {"-", "+"}:
        return True
    of = words[at - 1] == "of" and words[at - 2] in {"year", "end", "start"}
    return (words[at - 1] in _ASKING_FOR_A_YEAR or of) and not _counts_things(words, after)


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
        if figure is None or words[after - 1] != "s" or len(words[at]) != len("90") or figure % 10:
            return None
        number = figure
    before = words[at - 1] if words[at - 1] not in {"'", "’"} else words[at - 2]
    if before not in {"the", "in", "early", "mid", "late", "-"}:
        return None
    return decade(full_year(number, words.today), after)


def numbered_week(words: Words, at: int) -> Reading | None:
    """Week 10, week 10 of 2019."""
    number = words.figure(at + 1)
    if words[at] != "week" or number is None or number not in _WEEK_NUMBERS:
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
    if words[at - 1] in {"in", "during", "since"} or (
        words[at - 1] == "the" and words[at - 2] in {"in", "during", "over"}
    ):
        return one_of(Unit.YEAR, step), at + 1
    return None
