"""Dates and longer times in English that the calendar names: May 3rd, Friday the 15th, 2019, week 10, Q4."""

import re
from datetime import date

from services.time_reference import steps
from services.time_reference.english_words import (
    DAY,
    MONTH,
    ORDINAL,
    SEASON,
    SURE,
    TO,
    WEEKDAY,
    WHICH,
    YEAR,
    Reading,
    Said,
    in_year,
    reads,
    year,
)
from services.time_reference.feasts import FEAST, feast
from services.time_reference.phrases import (
    DAY_NUMBERS,
    MONTH_NUMBERS,
    DayAhead,
    Phrase,
    Step,
    Unit,
    full_year,
    one_of,
    period,
)

_YEARS_THAT_STAND_ALONE = range(1900, 2101)
_DECADES = ("twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties")
_ITS_YEAR = rf"(?:,|\s{{1,9}}of\b|\s{{1,9}}in\b){{0,2}}\s{{0,9}}(?P<year>{YEAR})"
_SHORT_YEAR = r"\s{{0,9}}(?:(?:of\s{{1,9}}['’]?|['’])(?=\d)|{})(?P<short>\d\d)(?![\d%]|[:.,/]\d)"
_YEAR_AFTER = f"(?:{_ITS_YEAR}|{_SHORT_YEAR.format('(?!)')})?"
_YEAR_AFTER_MONTH = f"(?:{_ITS_YEAR}|{_SHORT_YEAR.format('(?=3[2-9]|[4-9])')})?"
_ORDINAL = re.compile(ORDINAL)
_BETWEEN_NAMES = re.compile(rf"(?:{MONTH}|{WEEKDAY}){TO}$|\bbetween\s{{1,9}}\w+\s{{1,9}}and\s{{1,9}}$", re.ASCII)
_NAME_FOLLOWS = re.compile(
    rf"{TO}(?:{MONTH}|{WEEKDAY})|\s{{1,9}}(?:(?:of|in|the)\s{{1,9}}){{0,3}}{WHICH}\s{{1,9}}(?:year|yr)\b", re.ASCII
)
_ASKS_FOR_A_YEAR = re.compile(
    r"\b(?:in|since|during|year|until|till|before|after|from|by|between|(?:year|end|start)\s{1,9}of)\s{1,9}$"
)
_COUNTED = re.compile(r"\s{1,9}(?!(?:was|is|has|as|this|us|s|does|yes)\b)[a-z]*s\b", re.ASCII)
_NAMES = re.compile(r"\b(?:last|next|this)\s{1,9}$", re.ASCII)
_REPEATS = re.compile(r"\b(?:every|each)\s{1,9}$", re.ASCII)
_YEAR_FOLLOWS = re.compile(f"{TO}{YEAR}", re.ASCII)
_DAY_FOLLOWS = re.compile(rf"\s{{0,9}}{DAY}", re.ASCII)


def _is_an_end(said: Said) -> bool:
    """Return whether a name is one end of "from March to May", or is followed by its year."""
    return bool(_BETWEEN_NAMES.search(said.before) or said.follows(_NAME_FOLLOWS))


def _date(said: Said) -> Reading:
    """Read one or more days of a month, in its year if one is named."""
    first = said.number("day")
    days = steps.days_of_month(first, said.number("last")) if said["last"] else steps.day_of_month(first)
    if said["short"]:
        return said.existing(in_year(full_year(int(said["short"]), said.today)).narrowed(said.month, days))
    return said.existing(_in_its_year(said, said.month, days))


def _in_its_year(said: Said, *parts: Step) -> Phrase:
    """Return a part of the year that is named, or of any year."""
    return said.year().narrowed(*parts) if said["year"] else one_of(Unit.YEAR, *parts)


def _decade(first: int) -> Phrase | None:
    return Phrase(period(Unit.DECADE, date(first, 1, 1))) if first % 10 == 0 else None


# 3 to March 18, 1998; May of 2023; the 1990s; week 10 (of 2019); Q4 of 2016
reads("number", rf"(?P<day>{DAY}){TO}(?:the )?(?P<month>{MONTH}) (?P<last>{DAY}){_YEAR_AFTER}")(_date)
reads("month", rf"(?P<month>{MONTH})(?:[\s.,/-]|\bof\b|\bin\b){{1,4}}(?P<year>{YEAR})")(
    lambda said: said.year().narrowed(said.month)
)
reads("number", rf"(?P<decade>{YEAR})\s?['’]?s\b")(lambda said: _decade(year(said["decade"])))
reads("unit", rf"week (?P<number>[1-5]?\d)(?![\d:.,/%]\d|\d)(?:(?:,| of| in){{1,2}} (?P<year>{YEAR}))?")(
    lambda said: _in_its_year(said, steps.nth(Unit.WEEK, said.number("number")))
)
reads("other", rf"q(?P<number>[1-4])(?:[\s,-]|\bof\b|\bin\b){{0,4}}(?P<year>{YEAR})?(?![a-z\d])")(
    lambda said: _in_its_year(said, steps.nth(Unit.QUARTER, said.number("number")))
)
reads("other", rf"h(?P<number>[12])(?:[\s,-]|\bof\b|\bin\b){{0,4}}(?P<year>{YEAR})")(
    lambda said: said.year().narrowed(steps.nth(Unit.HALF, said.number("number")))
)


@reads(
    "month",
    rf"(?P<month>{MONTH})(?:\.?[\s,/-]{{0,2}}| the )(?!{YEAR})(?P<day>{DAY})"
    rf"(?:(?:{TO}(?:the )?| and the )(?P<last>{DAY})(?!\s{{0,9}}[/:]| {MONTH}))?{_YEAR_AFTER}",
)
def _month_first(said: Said) -> Reading | None:
    """Read May 3rd, 2023 or May 3-5, but not "I may 3 times"."""
    weak = said["month"] == "may" and not said.in_capitals and not said.asked
    return None if weak and not _ORDINAL.match(said["day"]) else _date(said)


@reads(
    "number",
    rf"(?P<day>{DAY})(?:(?P<to>{TO}| and )(?:the )?(?P<last>{DAY}))?(?P<of>(?: of\b| day\b|[\s./-]){{1,3}})"
    rf"(?P<month>{MONTH})\.?{_YEAR_AFTER_MONTH}",
)
def _day_first(said: Said) -> Reading | None:
    """Read 3 May 2023, the 4th of July, 10-22 August, the ninth and seventeenth of April."""
    before = said.before.split()[-1:]
    listed = (said["to"] or "").strip() == "and" and before not in (["between"], ["the"])
    if listed or before in (["a"], ["an"]):
        return None
    if "of" not in said["of"] and not _ORDINAL.match(said["day"]):
        # In "chapter 3 March 5" the second number is the day.
        other = not said["year"] and not said["short"] and said.follows(_DAY_FOLLOWS)
        verb = said["month"] == "may" and not said.in_capitals and not isinstance(said.today, DayAhead)
        if other or verb:
            return None
    return _date(said)


@reads("month", rf"(?P<month>{MONTH})")
def _month_alone(said: Said) -> Phrase | None:
    """Read May, where it can be nothing but a month."""
    if SURE.fullmatch(said.match[0]) or said.asked or _is_an_end(said):
        return one_of(Unit.YEAR, said.month)
    return None


@reads(
    "weekday",
    rf"(?P<weekday>{WEEKDAY})(?P<the>(?:[\s.,]|\bthe\b){{1,4}})(?P<day>{DAY})"
    rf"(?!{TO}|[\s./-]*(?:of )?{MONTH})(?P<end>\s{{0,9}}(?:[.?!]|\Z))?",
)
def _weekday_the_nth(said: Said) -> Reading | None:
    """Read Friday the 15th or Fri 15, but not Friday 3-5, which are hours."""
    if not (_ORDINAL.match(said["day"]) or "the" in said["the"] or said.match["end"] is not None):
        return None
    both = steps.day_of_month(said.number("day")), steps.weekday(said.weekday)
    return one_of(Unit.MONTH, *both), said.match.end("day")


@reads("weekday", rf"(?P<weekday>{WEEKDAY})(?:[\s.,(-]|\bthe\b|\bof\b){{1,4}}(?={MONTH}|{DAY})")
def _weekday_with_date(said: Said) -> Reading | None:
    """Read Monday, February 18; Monday (June-15); Tuesday two weeks ago."""
    found = said.then()
    phrase = found[0] if found else None
    span = phrase.resolved(said.today) if phrase else None
    if found is None or phrase is None or (span and span.unit is Unit.DAY):
        return found
    if phrase.base and phrase.base.unit is Unit.WEEK and not phrase.steps:
        return phrase.narrowed(steps.weekday(said.weekday)), found[1]
    return None


@reads("weekday", rf"(?P<weekday>{WEEKDAY})")
def _weekday_alone(said: Said) -> Phrase | None:
    before = said.before
    named = SURE.fullmatch(said.match[0]) or said.asked or _NAMES.search(before)
    if not (named or _is_an_end(said)) or _REPEATS.search(before):
        return None
    return one_of(Unit.WEEK, steps.weekday(said.weekday))


@reads(
    "number",
    rf"(?P<day>{DAY})(?=(?P<end>\s{{0,9}}(?:[.?!,]|\Z))|\s{{0,9}}[;:)–-]| (?:and|or|to|at|in|with|about|for|from"
    r"|of|through|until|till|if|we|i|you|did|was|is|what|when|please|morning|afternoon|evening|night|noon)\b)",
)
def _the_nth(said: Said) -> Phrase | None:
    """Read the 4th or the twenty-second as a day of a month, if it can be nothing else, such as the 4th floor."""
    before = said.before.split()[-2:]
    if before[-1:] != ["the"] or said.number("day") not in DAY_NUMBERS:
        return None
    if not _ORDINAL.match(said["day"]):
        if before != ["on", "the"] or said.match["end"] is None:  # on the 27.
            return None
    # "The first" and "the third" are seldom days; "the twenty-second" is.
    elif not said["day"][0].isdecimal() and said.number("day") in MONTH_NUMBERS:
        return None
    return one_of(Unit.MONTH, steps.day_of_month(said.number("day")))


@reads(
    "number other", rf"['’]?(?P<tens>\d0)\s?['’]?s\b|(?:(?P<century>nineteen) )?(?P<name>{'|'.join(_DECADES)})\b"
)
def _short_decade(said: Said) -> Phrase | None:
    """Read the 70s, in the '90s, the seventies, nineteen seventies."""
    tens = int(said["tens"]) if said["tens"] else 20 + 10 * _DECADES.index(said["name"])
    if said["century"]:
        return _decade(1900 + tens)
    if not re.search(r"(?:\b(?:the|in|early|mid|late)\s{1,9}|-\s?)['’]?$", said.before):
        return None
    return _decade(full_year(tens, said.today))


@reads("number", rf"(?P<year>{YEAR})(?P<gap>[\s,/-]{{1,3}})(?P<month>{MONTH})(?:[\s/-]{{1,2}}(?P<day>{DAY}))?")
def _year_first(said: Said) -> Reading | None:
    """Read 2014, jun or 2019 May 3."""
    if not said["gap"].strip() and said["month"] in {"may", "march"} and not said.in_capitals:
        return None
    phrase = said.year().narrowed(said.month)
    if said["day"]:
        phrase = phrase.narrowed(steps.day_of_month(said.number("day")))
    return said.existing(phrase)


@reads("number", rf"(?P<year>{YEAR})")
def _year_alone(said: Said) -> Phrase | None:
    """Read in 2016, the end of 2016, 1972 - 1975, but not in 2000 words."""
    before = said.before
    ranges = said.follows(_YEAR_FOLLOWS) and not before.endswith(("-", "+"))
    asked = _ASKS_FOR_A_YEAR.search(before) and not said.follows(_COUNTED)
    alone = year(said["year"]) in _YEARS_THAT_STAND_ALONE and (ranges or asked)
    return said.year() if alone else None


@reads("season", rf"(?P<season>{SEASON})(?:(?:,|\s|\bof\b|\bin\b){{1,4}}(?P<year>{YEAR}))?")
def _season(said: Said) -> Phrase | None:
    """Read summer 2019 or in the summer (of 2019)."""
    asked = re.search(r"\b(?:in|during|since|(?:in|during|over)\s{1,9}the)\s{1,9}$", said.before)
    if said["year"] or asked or said.follows(_NAME_FOLLOWS):
        return _in_its_year(said, said.season)
    return None


@reads("other", FEAST)
def _feast(said: Said) -> Phrase | None:
    """Read Good Friday or New Year's Eve as a day, where somebody plans; told of, it is often a time around it."""
    name = said["fixed"] or said["moved"] or said["nth"]
    return one_of(Unit.YEAR, feast(name)) if isinstance(said.today, DayAhead) else None
