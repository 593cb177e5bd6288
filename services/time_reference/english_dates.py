"""Dates and longer stretches in English that the calendar names: May 3rd, Friday the 15th, 2019, week 10, Q4."""

import re
from collections.abc import Sequence
from datetime import date

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
    Reader,
    Reading,
    Text,
    in_year,
    month_number,
    number,
    phrase_at,
    reads,
    season_name,
    weekday_number,
    year,
)
from services.time_reference.phrases import (
    DAY_NUMBERS,
    MONTH_NUMBERS,
    Phrase,
    Step,
    Unit,
    full_year,
    known,
    one_of,
    period,
)
from services.time_reference.steps import day_of_month, days_of_month, month, nth, season, weekday

_YEARS_THAT_STAND_ALONE = range(1900, 2101)
_DECADES = ("twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties")
_ITS_YEAR = rf"(?:,|\s+of\b|\s+in\b){{0,2}}\s*(?P<year>{YEAR})"
_SHORT_YEAR = r"\s*(?:(?:of\s+['’]?|['’])(?=\d)|{})(?P<short>\d\d)(?![\d:.,/%])"
_YEAR_AFTER = f"(?:{_ITS_YEAR}|{_SHORT_YEAR.format('(?!)')})?"
_YEAR_AFTER_MONTH = f"(?:{_ITS_YEAR}|{_SHORT_YEAR.format('(?=3[2-9]|[4-9])')})?"
_ORDINAL = re.compile(ORDINAL)
_BETWEEN_NAMES = re.compile(rf"(?:{MONTH}|{WEEKDAY}){TO}$|\bbetween\s+\w+\s+and\s+$", re.ASCII)
_NAME_FOLLOWS = re.compile(
    rf"{TO}(?:{MONTH}|{WEEKDAY})|\s+(?:(?:of|in|the)\s+){{0,3}}{WHICH}\s+(?:year|yr)\b", re.ASCII
)
_ASKS_FOR_A_YEAR = re.compile(
    r"\b(?:in|since|during|year|until|till|before|after|from|by|between|(?:year|end|start)\s+of)\s+$"
)
_COUNTED = re.compile(r"\s+(?!(?:was|is|has|as|this|us|s|does|yes)\b)[a-z]*s\b", re.ASCII)
_NAMES = re.compile(r"\b(?:last|next|this)\s+$", re.ASCII)
_REPEATS = re.compile(r"\b(?:every|each)\s+$", re.ASCII)
_YEAR_FOLLOWS = re.compile(f"{TO}{YEAR}", re.ASCII)
_DAY_FOLLOWS = re.compile(rf"\s*{DAY}", re.ASCII)


def _is_an_end(text: Text, match: re.Match[str]) -> bool:
    """Whether a name is the one or the other end of from March to May, or has its year after it."""
    return bool(_BETWEEN_NAMES.search(text.before(match.start())) or _NAME_FOLLOWS.match(text.text, match.end()))


def _may_be_verb(text: Text, match: re.Match[str], *verbs: str) -> bool:
    return match["month"] in verbs and not text.written[match.start("month")].isupper()


def _date(text: Text, match: re.Match[str]) -> Reading:
    """The day or days of the month that a match names, in its year if it names one."""
    first, last = number(match["day"]), match["last"]
    steps = (
        month(month_number(match["month"])),
        days_of_month(first, number(last)) if last else day_of_month(first),
    )
    if match["year"] or match["short"]:
        which = year(match["year"]) if match["year"] else full_year(int(match["short"]), text.today)
        return text.existing(in_year(which).narrowed(*steps), match.end())
    return text.existing(one_of(Unit.YEAR, *steps), match.end())


def _in(said: str | None, step: Step) -> Phrase:
    """The part of a year, or of any."""
    return in_year(year(said)).narrowed(step) if said else one_of(Unit.YEAR, step)


def decade(first: int) -> Phrase | None:
    """The ten years from that one on, if it begins some."""
    return known(period(Unit.DECADE, date(first, 1, 1))) if first % 10 == 0 else None


_OTHERS: Sequence[tuple[str, str, Reader]] = (
    # 3 to March 18, 1998
    ("number", rf"(?P<day>{DAY}){TO}(?:the )?(?P<month>{MONTH}) (?P<last>{DAY}){_YEAR_AFTER}", _date),
    # May of 2023; the 1990s
    (
        "month",
        rf"(?P<month>{MONTH})(?:[\s.,/-]|\bof\b|\bin\b){{1,4}}(?P<year>{YEAR})",
        lambda _, match: in_year(year(match["year"])).narrowed(month(month_number(match["month"]))),
    ),
    ("number", rf"(?P<decade>{YEAR})\s?['’]?s\b", lambda _, match: decade(year(match["decade"]))),
    # Week 10 (of 2019); Q4 of 2016
    (
        "unit",
        rf"week (?P<number>[1-5]?\d)(?![\d:.,/%]\d|\d)(?:(?:,| of| in){{1,2}} (?P<year>{YEAR}))?",
        lambda _, match: _in(match["year"], nth(Unit.WEEK, int(match["number"]))),
    ),
    (
        "other",
        rf"q(?P<number>[1-4])(?:[\s,-]|\bof\b|\bin\b){{0,4}}(?P<year>{YEAR})?(?![a-z\d])",
        lambda _, match: _in(match["year"], nth(Unit.QUARTER, int(match["number"]))),
    ),
)
for _kinds, _pattern, _reader in _OTHERS:
    reads(_kinds, _pattern)(_reader)


@reads(
    "month",
    rf"(?P<month>{MONTH})(?:\.?[\s,/-]{{0,2}}| the )(?!{YEAR})(?P<day>{DAY})"
    rf"(?:(?:{TO}(?:the )?| and the )(?P<last>{DAY})(?!\s*[/:]| {MONTH}))?{_YEAR_AFTER}",
)
def _month_first(text: Text, match: re.Match[str]) -> Reading | None:
    """May 3rd, 2023; May 3-5; but not "I may 3 times"."""
    weak = _may_be_verb(text, match, "may") and not text.asked(match.start())
    return None if weak and not _ORDINAL.match(match["day"]) else _date(text, match)


@reads(
    "number",
    rf"(?P<day>{DAY})(?:(?P<to>{TO}| and )(?:the )?(?P<last>{DAY}))?(?P<of>(?: of\b| day\b|[\s./-]){{1,3}})"
    rf"(?P<month>{MONTH})\.?{_YEAR_AFTER_MONTH}",
)
def _day_first(text: Text, match: re.Match[str]) -> Reading | None:
    """3 May 2023, the 4th of July, 10-22 August, the ninth and seventeenth of April."""
    before = text.before(match.start()).split()[-1:]
    listed = (match["to"] or "").strip() == "and" and before not in (["between"], ["the"])
    if listed or before in (["a"], ["an"]):
        return None
    if "of" not in match["of"] and not _ORDINAL.match(match["day"]):
        # "chapter 3 March 5": the second figure is the day.
        other = not match["year"] and not match["short"] and _DAY_FOLLOWS.match(text.text, match.end())
        if other or _may_be_verb(text, match, "may"):
            return None
    return _date(text, match)


@reads("month", rf"(?P<month>{MONTH})")
def _month_alone(text: Text, match: re.Match[str]) -> Phrase | None:
    """May, where it can be nothing else."""
    if SURE.fullmatch(match[0]) or text.asked(match.start()) or _is_an_end(text, match):
        return one_of(Unit.YEAR, month(month_number(match[0])))
    return None


@reads(
    "weekday",
    rf"(?P<weekday>{WEEKDAY})(?P<the>(?:[\s.,]|\bthe\b){{1,4}})(?P<day>{DAY})"
    rf"(?!{TO}|[\s./-]*(?:of )?{MONTH})(?P<end>\s*(?:[.?!]|\Z))?",
)
def _weekday_the_nth(_: Text, match: re.Match[str]) -> Reading | None:
    """Friday the 15th, Fri 15; not Friday 3-5, which are hours."""
    if not (_ORDINAL.match(match["day"]) or "the" in match["the"] or match["end"]):
        return None
    steps = day_of_month(number(match["day"])), weekday(weekday_number(match["weekday"]))
    return one_of(Unit.MONTH, *steps), match.end("day")


@reads("weekday", rf"(?P<weekday>{WEEKDAY})(?:[\s.,(-]|\bthe\b|\bof\b){{1,4}}(?={MONTH}|{DAY})")
def _weekday_with_date(text: Text, match: re.Match[str]) -> Reading | None:
    """Monday, February 18; Monday (June-15); Tuesday two weeks ago."""
    found = phrase_at(text, match.end())
    phrase = found[0] if found else None
    span = phrase.resolved(text.today) if phrase else None
    if found is None or phrase is None or (span and span.unit is Unit.DAY):
        return found
    if phrase.base and phrase.base.unit is Unit.WEEK and not phrase.steps:
        return phrase.narrowed(weekday(weekday_number(match["weekday"]))), found[1]
    return None


@reads("weekday", rf"(?P<weekday>{WEEKDAY})")
def _weekday_alone(text: Text, match: re.Match[str]) -> Phrase | None:
    before = text.before(match.start())
    named = SURE.fullmatch(match[0]) or text.asked(match.start()) or _NAMES.search(before)
    if not (named or _is_an_end(text, match)) or _REPEATS.search(before):
        return None
    return one_of(Unit.WEEK, weekday(weekday_number(match[0])))


@reads(
    "number",
    rf"(?P<day>{DAY})(?=(?P<end>\s*(?:[.?!,]|\Z))|\s*[;:)–-]| (?:and|or|to|at|in|with|about|for|from|of|through"
    r"|until|till|if|we|i|you|did|was|is|what|when|please|morning|afternoon|evening|night|noon)\b)",
)
def _the_nth(text: Text, match: re.Match[str]) -> Phrase | None:
    """The 4th, the twenty-second: a day of a month if nothing else can be meant, as with the 4th floor."""
    before = text.before(match.start()).split()[-2:]
    if before[-1:] != ["the"] or number(match["day"]) not in DAY_NUMBERS:
        return None
    if not _ORDINAL.match(match["day"]):
        if before != ["on", "the"] or not match["end"]:  # on the 27.
            return None
    # The first, the third are seldom days; the twenty-second is.
    elif not match["day"][0].isdecimal() and number(match["day"]) in MONTH_NUMBERS:
        return None
    return one_of(Unit.MONTH, day_of_month(number(match["day"])))


@reads(
    "number other", rf"['’]?(?P<tens>\d0)\s?['’]?s\b|(?:(?P<century>nineteen) )?(?P<name>{'|'.join(_DECADES)})\b"
)
def _short_decade(text: Text, match: re.Match[str]) -> Phrase | None:
    """The 70s, in the '90s, the seventies, nineteen seventies."""
    tens = int(match["tens"]) if match["tens"] else 20 + 10 * _DECADES.index(match["name"])
    if match["century"]:
        return decade(1900 + tens)
    if not re.search(r"(?:\b(?:the|in|early|mid|late)\s+|-\s?)['’]?$", text.before(match.start())):
        return None
    return decade(full_year(tens, text.today))


@reads("number", rf"(?P<year>{YEAR})(?P<gap>[\s,/-]{{1,3}})(?P<month>{MONTH})(?:[\s/-]{{1,2}}(?P<day>{DAY}))?")
def _year_first(text: Text, match: re.Match[str]) -> Reading | None:
    """2014, jun; 2019 May 3."""
    if not match["gap"].strip() and _may_be_verb(text, match, "may", "march"):
        return None
    phrase = in_year(year(match["year"])).narrowed(month(month_number(match["month"])))
    if match["day"]:
        phrase = phrase.narrowed(day_of_month(number(match["day"])))
    return text.existing(phrase, match.end())


@reads("number", rf"(?P<year>{YEAR})")
def _year_alone(text: Text, match: re.Match[str]) -> Phrase | None:
    """In 2016, the end of 2016, 1972 - 1975; not in 2000 words."""
    before = text.before(match.start())
    ranges = _YEAR_FOLLOWS.match(text.text, match.end()) and not before.endswith(("-", "+"))
    asked = _ASKS_FOR_A_YEAR.search(before) and not _COUNTED.match(text.text, match.end())
    number_ = year(match["year"])
    return in_year(number_) if number_ in _YEARS_THAT_STAND_ALONE and (ranges or asked) else None


@reads("season", rf"(?P<season>{SEASON})(?:(?:,|\s|\bof\b|\bin\b){{1,4}}(?P<year>{YEAR}))?")
def _season(text: Text, match: re.Match[str]) -> Phrase | None:
    """Summer 2019, in the summer (of 2019)."""
    asked = re.search(r"\b(?:in|during|since|(?:in|during|over)\s+the)\s+$", text.before(match.start()))
    if match["year"] or asked or _NAME_FOLLOWS.match(text.text, match.end()):
        return _in(match["year"], season(season_name(match["season"])))
    return None
