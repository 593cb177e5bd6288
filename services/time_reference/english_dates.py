"""Dates in English that the calendar names: May 3rd, 3 May 2023, Friday the 15th, the 4th, in May."""

from datetime import date

from services.time_reference.english_words import CLOCK_WORDS, MONTHS, SAFE_ALONE, TO, WEEKDAYS, Words
from services.time_reference.numeric import dated
from services.time_reference.phrases import Phrase, known, one_of
from services.time_reference.ranges import DAY_NUMBERS, MONTH_NUMBERS, TWO_FIGURES, Unit, full_year, period
from services.time_reference.steps import Step, day_of_month, days_of_month, month, weekday

Reading = tuple[Phrase | None, int]
"""A phrase and the place after it; no phrase if the words name a day that does not exist."""

_AFTER_A_NUMBERED_DAY = CLOCK_WORDS | {
    *(
        "",
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
    ),
    *("of", "through", "until", "till", "if", "we", "i", "you", "did", "was", "is", "what", "when", "please"),
}
"""Words that may follow “the 4th” when it is a day, not the 4th floor."""


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
