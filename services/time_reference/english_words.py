"""The words with which English names times, as pieces of patterns, and the readers of phrases made of them.

In a reader's pattern a space stands for any white space.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

from services.time_reference import steps
from services.time_reference.numerals import ENGLISH_ONES, ENGLISH_ORDINALS, ENGLISH_TENS
from services.time_reference.numeric import dated
from services.time_reference.phrases import FEW, Phrase, Step, Unit, period

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")
_UNITS = {
    **{"da": Unit.DAY, "ni": Unit.DAY, "we": Unit.WEEK, "wk": Unit.WEEK, "fo": Unit.WEEK, "mo": Unit.MONTH},
    **{"qu": Unit.QUARTER, "qt": Unit.QUARTER, "ye": Unit.YEAR, "yr": Unit.YEAR, "de": Unit.DECADE},
    **{"ce": Unit.CENTURY},
}
"""Units of time by the first two letters of their names."""
_VALUES = {**ENGLISH_ONES, **ENGLISH_TENS, **ENGLISH_ORDINALS, "a": 1, "an": 1}
_VALUES |= dict.fromkeys(("few", "several", "some"), FEW[1])
_BACKWARD = "last|past|previous|prior|preceding"
_FORWARD = "next|coming|following|upcoming"

SHIFTED = rf"(?:{_BACKWARD}|{_FORWARD})\b"
WHICH = rf"(?:{_BACKWARD}|{_FORWARD}|this|current)\b"
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![a-z])"
)
WEEKDAY = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nes(?:day)?)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?"
    r"|sun(?:day)?)\b"
)
SURE = re.compile(
    "(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:jan|febr)uary|july|(?:septem|octo|novem|decem)ber"
)
"""Words that can only be a month or a weekday, so that nothing around them has to ask for one."""
UNIT = r"(?:days?|nights|weeks?|wks?|fortnights?|months?|quarters?|qtrs?|years?|yrs?|decades?|century|centuries)\b"
ONE_UNIT = r"(?:day|week|wk|fortnight|month|quarter|qtr|year|yr|decade|century)\b"
SEASON = r"(?:spring|summer|autumn|fall|winter)\b"
_TENS, _ONES = "|".join(ENGLISH_TENS), "|".join(sorted(ENGLISH_ONES, key=len, reverse=True))
_SPELT = rf"(?:(?:{_TENS})(?:[\s-](?:{_ONES}))?|{_ONES})\b"
_BEFORE_A_FIGURE = r"(?<!\d[:.,/])(?<![$€£#+:\d])(?<![$€£#+]\s)"
_AFTER_A_FIGURE = r"(?![\d%]|(?:st|nd|rd|th)\b|[:.,/]\d|\s?[ap]m\b)"
NUMBER = rf"(?:{_BEFORE_A_FIGURE}\d{{1,4}}{_AFTER_A_FIGURE}|{_SPELT})"
"""A number that is no part of a price, a time of day or a fraction."""
COUNT = rf"(?:an?\scouple(?:\sof)?|couple(?:\sof)?|an?|{NUMBER})"
ORDINAL = rf"(?:\d{{1,2}}(?:st|nd|rd|th)|(?:(?:{_TENS})[\s-])?(?:{'|'.join(ENGLISH_ORDINALS)}))(?![a-z\d])"
DAY = rf"(?:{ORDINAL}|{_BEFORE_A_FIGURE}\d{{1,2}}{_AFTER_A_FIGURE}|{_SPELT})"
YEAR = (
    rf"(?:{_BEFORE_A_FIGURE}(?:1[5-9]|2[01])\d\d{_AFTER_A_FIGURE}|two\sthousand(?:(?:\sand)?\s{_SPELT})?"
    rf"|(?:eighteen|nineteen|twenty)\s(?=ten|elev|twelve|\w+teen|\w+ty){_SPELT})"
)
TO = r"(?:\s{0,9}(?:(?:to|until|till|through|thru)\b|[-–—~])\s{0,9})"
CLOCK_WORD = r"(?:morning|afternoon|evening|night|noon|midday|midnight|lunchtime)\b"
DAY_WORDS = {**{"today": 0, "tonight": 0, "yesterday": -1, "yday": -1, "tomorrow": 1, "tmrw": 1, "tmr": 1}}
_CLOCK = re.compile(rf"(?:\s{{1,9}}{CLOCK_WORD})?", re.ASCII)
_ASKING = re.compile(
    r"\b(?:in|on|during|since|from|between|by|until|till|of|through|before|after)\s{1,9}(?:the\s{1,9})?$|^$",
    re.ASCII,
)
_LOOK_BACK = 24
_THE = re.compile(r"(?:the\s{1,9})?", re.ASCII)
_OF_WHICH = re.compile(
    rf"(?:\s{{1,9}}(?:of|in|the)){{0,3}}\s{{1,9}}(?P<which>{WHICH})\s{{1,9}}(?P<unit>{ONE_UNIT})", re.ASCII
)
_IN_IT = re.compile(r"(?:['’]s\b|[\s-]|\b(?:on|in|the)\b){1,6}", re.ASCII)
_HOLDING = frozenset({Unit.WEEK, Unit.MONTH, Unit.YEAR})
_FIGURES = frozenset("0123456789qh")
"""First characters of dates in figures: 2026-11-21, q4 2016."""
_DEEPEST = 4
"""Maximum depth of nested references; "the end of the second week of the month of May" has this depth."""

Reading = tuple[Phrase | None, int]
"""A phrase and where it stops; no phrase if the words name a day that does not exist."""


class Said:
    """A match of a reader's pattern in a text in lower case, which has as many characters as the original."""

    def __init__(self, text: "Text", match: re.Match[str]) -> None:
        self.text, self.match = text, match
        self.today = text.today

    def __getitem__(self, name: str) -> str:
        """Return the text of a group; empty if it matched nothing."""
        return self.match[name] or ""

    @property
    def before(self) -> str:
        """Return the text before the match."""
        return self.text.text[max(0, self.match.start() - _LOOK_BACK) : self.match.start()]

    @property
    def asked(self) -> bool:
        """Return whether the context asks for a time: "in May", "on the 4th", or the match is the whole text."""
        before = _ASKING.search(self.before)
        return bool(before and (before[0] or self.text.text.strip(" .").isalpha()))

    @property
    def in_capitals(self) -> bool:
        """Return whether the month begins with a capital letter."""
        return self.text.written[self.match.start("month")].isupper()

    @property
    def unit(self) -> Unit:
        """Return the unit that the match names."""
        return _UNITS[self["unit"][:2]]

    @property
    def month(self) -> Step:
        """Return the step to the month that the match names."""
        return steps.month(_MONTHS.index(self["month"][:3]) + 1)

    @property
    def weekday(self) -> int:
        """Return the number of the weekday; Monday is 0."""
        return _WEEKDAYS.index(self["weekday"][:2])

    @property
    def season(self) -> Step:
        """Return the step to the season that the match names."""
        return steps.season("autumn" if self["season"] == "fall" else self["season"])

    @property
    def away(self) -> int:
        """Return the number of units from the current one: -1 for last, 1 for next."""
        return -1 if self["which"] in _BACKWARD else 1 if self["which"] in _FORWARD else 0

    def number(self, name: str) -> int:
        """Return the number that a group names; 1 if it names none."""
        return number(self[name] or "one")

    def year(self, name: str = "year") -> Phrase:
        """Return the year that a group names."""
        return in_year(year(self[name]))

    def running(self, of: Unit, away: int = 0) -> Phrase:
        """Return the current unit, or the one that is `away` units from it."""
        return Phrase(period(of, self.today, away))

    def existing(self, phrase: Phrase) -> "Reading":
        """Return the phrase, without it if it names a day that does not exist."""
        return (phrase if phrase.resolved(self.today) else None), self.match.end()

    def follows(self, pattern: re.Pattern[str]) -> bool:
        """Return whether such words follow the match."""
        return pattern.match(self.text.text, self.match.end()) is not None

    def then(self, at: int | None = None) -> "Reading | None":
        """Return the reference that follows the match, or begins at a place."""
        return phrase_at(self.text, self.match.end() if at is None else at)


@dataclass
class Text:
    """A text that is being read."""

    written: str
    text: str
    """The text in lower case, with as many characters as the original."""
    today: date
    depth: int = 0
    """Depth of nested references at this point."""


Reader = Callable[[Said], Phrase | Reading | None]
_READERS: dict[str, list[tuple[str, Reader]]] = {}
_KIND = re.compile(
    rf"(?P<month>{MONTH})|(?P<weekday>{WEEKDAY})|(?P<which>{WHICH})|(?P<season>{SEASON})|(?P<unit>{ONE_UNIT})"
    rf"|(?P<number>\d|{ORDINAL}|{_SPELT}|(?:an?|half|couple)\b)|(?P<other>)",
    re.ASCII,
)


def reads(kinds: str, pattern: str) -> Callable[[Reader], Reader]:
    """Register a reader of phrases that begin with a word of one of these kinds; they are asked in this order.

    A reader returns a phrase made of the whole match, a phrase and where it stops, or None if the words mean
    something else.
    """

    def register(reader: Reader) -> Reader:
        for kind in kinds.split():
            _READERS.setdefault(kind, []).append((pattern, reader))
        return reader

    return register


@cache
def readers(kind: str) -> Sequence[tuple[re.Pattern[str], Reader]]:
    """Return the readers for a kind of word; they are compiled late because that takes too long for an import."""
    return [(re.compile(pattern.replace(" ", r"\s{1,9}"), re.ASCII), reader) for pattern, reader in _READERS[kind]]


def warm() -> None:
    """Compile all readers."""
    for kind in _READERS:
        readers(kind)


def phrase_at(text: Text, at: int, *, follows: bool = False) -> Reading | None:
    """Return the reference at a place, with its time of day; with `follows`, another one stands before it."""
    if text.depth == _DEEPEST:
        return None
    text.depth += 1
    found = _read(text, at, follows=follows)
    if found and found[0]:
        found = _placed(text, found[0], found[1])
    text.depth -= 1
    return found


def _read(text: Text, at: int, *, follows: bool) -> Reading | None:
    the = _THE.match(text.text, at)
    at = the.end() if the else at
    kind = _KIND.match(text.text, at)
    in_figures = text.text[at : at + 1] in _FIGURES
    if in_figures and (found := dated(text.text, at, text.today, follows=follows)):
        return found
    for pattern, reader in readers(kind.lastgroup or "") if kind else ():
        match = pattern.match(text.text, at)
        try:
            reading = reader(Said(text, match)) if match else None
        except (ValueError, OverflowError):  # the calendar ends
            continue
        if match is None or reading is None:
            continue
        phrase, stop = (reading, match.end()) if isinstance(reading, Phrase) else reading
        if phrase is None:
            return None, stop
        if phrase.resolved(text.today):
            clock = _CLOCK.match(text.text, stop)
            return phrase, clock.end() if clock else stop
    return None


def _placed(text: Text, phrase: Phrase, stop: int) -> Reading:
    """Join a phrase with the words before or after it that say which one is meant: October 3 last year."""
    if phrase.cycle:
        of = _OF_WHICH.match(text.text, stop)
        which = Said(text, of) if of else None
        if of and which and which.unit is phrase.cycle:
            placed = phrase.within(period(phrase.cycle, text.today, which.away))
            return (placed, of.end()) if placed.resolved(text.today) else (phrase, stop)
        return phrase, stop
    base = phrase.base if not phrase.steps else None
    gap = _IN_IT.match(text.text, stop) if base and base.unit in _HOLDING else None
    found = phrase_at(text, gap.end()) if gap else None
    if base and found and found[0] and found[0].cycle is base.unit:
        placed = found[0].within(base)
        return (placed, found[1]) if placed.resolved(text.today) else (phrase, stop)
    return phrase, stop


def in_year(number: int) -> Phrase:
    """Return the phrase of a year."""
    return Phrase(period(Unit.YEAR, date(number, 1, 1)))


def number(said: str) -> int:
    """Return a number that is written in digits or words: 12, 4th, twenty-one, a couple of."""
    if said[0].isdecimal():
        return int(said.rstrip("stndrh"))
    return 2 if "couple" in said else sum(_VALUES.get(word, 0) for word in re.split(r"[\s-]+", said))


def year(said: str) -> int:
    """Return a year that is written in four digits or in words (nineteen sixty nine, two thousand and seven)."""
    if said.isdecimal():
        return int(said)
    first, _, rest = said.partition(" ")
    century = {"eighteen": 1800, "nineteen": 1900, "twenty": 2000, "two": 2000}[first]
    return century + sum(_VALUES.get(word, 0) for word in re.split(r"[\s-]+", rest))
