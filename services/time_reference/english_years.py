"""Longer stretches in English that the calendar names: in 2019, 2016 Nov, the 1990s, week 10, Q4, summer 2019."""

from datetime import date

from services.time_reference.english_dates import Reading
from services.time_reference.english_words import DECADE_WORDS, MONTHS, SEASONS, TO, Words
from services.time_reference.phrases import Phrase, known, one_of
from services.time_reference.ranges import Unit, full_year, period
from services.time_reference.steps import day_of_month, month, nth, season

_WEEK_NUMBERS = range(1, 54)
_YEARS_THAT_STAND_ALONE = range(1900, 2101)
_ASKING_FOR_A_YEAR = frozenset({"in", "since", "during", "year", "until", "till", "before", "after", "from", "by"})
_NOT_A_PLURAL = frozenset({"was", "is", "has", "as", "this", "us", "s", "does", "yes"})


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
