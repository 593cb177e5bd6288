"""The words that English says time with, and a text cut into words, figures and signs."""

import re
from dataclasses import dataclass
from datetime import date

from services.time_reference.numerals import ENGLISH_ONES, ENGLISH_ORDINALS, ENGLISH_TENS
from services.time_reference.phrases import TWO_FIGURES, Unit
from services.time_reference.steps import Part

_FULL_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_FULL_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = {
    **{name: number for number, name in enumerate(_FULL_MONTHS, 1)},
    **{name[:3]: number for number, name in enumerate(_FULL_MONTHS, 1)},
    **{"sept": 9},
}
WEEKDAYS = {
    **{name: number for number, name in enumerate(_FULL_WEEKDAYS)},
    **{name[:3]: number for number, name in enumerate(_FULL_WEEKDAYS)},
    **{"tues": 1, "wednes": 2, "thur": 3, "thurs": 3},
}
SAFE_ALONE = frozenset({*_FULL_WEEKDAYS, *_FULL_MONTHS}) - {"march", "may", "april", "june", "august"}
"""Words that are nothing but a month or a day of the week, with nothing around them that asks for one."""
UNITS = {
    **{"day": Unit.DAY, "week": Unit.WEEK, "month": Unit.MONTH, "quarter": Unit.QUARTER, "qtr": Unit.QUARTER},
    **{"year": Unit.YEAR, "decade": Unit.DECADE, "century": Unit.CENTURY, "wk": Unit.WEEK, "yr": Unit.YEAR},
    **{"fortnight": Unit.WEEK},
    **{"nights": Unit.DAY},
}
UNITS |= {word + "s": unit for word, unit in UNITS.items()} | {"centuries": Unit.CENTURY}
BACKWARD = frozenset({"last", "past", "previous", "prior", "preceding"})
CURRENT = frozenset({"this", "current"})
FORWARD = frozenset({"next", "coming", "following", "upcoming"})
DAY_WORDS = {
    **{"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1, "tmrw": 1, "tmr": 1, "yday": -1},
    **{"todays": 0, "yesterdays": -1, "tomorrows": 1},
}
SEASONS = {"spring": "spring", "summer": "summer", "autumn": "autumn", "fall": "autumn", "winter": "winter"}
PARTS: dict[str, Part] = {
    **{"early": "early", "beginning": "early", "start": "early", "mid": "middle", "middle": "middle"},
    **{"late": "late", "end": "late"},
}
CLOCK_WORDS = frozenset({"morning", "afternoon", "evening", "night", "noon", "midday", "midnight", "lunchtime"})
ASKING = frozenset(
    {"in", "on", "during", "since", "from", "between", "by", "until", "till", "of", "through", "before", "after"}
)
TO = frozenset({"to", "until", "till", "through", "thru", "-", "–", "—", "~"})
DECADE_WORDS = {
    **{"twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70},
    **{"eighties": 80, "nineties": 90},
}
FEW = frozenset({"few", "several", "some"})

_MOST_PASSED = 6
"""So that no text takes time that grows with the square of its length."""
_FIGURES = 4
_ONES = range(1, 10)
_REST_OF_A_YEAR = range(10, 100)
_YEARS = range(1500, 2200)
_WORD = re.compile(
    r"[A-Za-z]+|\d+(?:st|nd|rd|th)(?![A-Za-z\d])|\d+|[\u3400-\u9fff]+|[^\sA-Za-z\d]", re.IGNORECASE | re.ASCII
)
_STARTS_A_FRACTION = re.compile(r"[:.,/]\d|%|\d")
_ENDS_A_FRACTION = re.compile(r"\d[:.,/]$|[$€£#+]\s?$|:$")


@dataclass(frozen=True, slots=True)
class Word:
    """A word, a figure or a sign, in lower case, and its place."""

    text: str
    begin: int
    stop: int
    capital: bool


class Words:
    """A text, word by word; what lies beyond its ends is the empty word."""

    def __init__(self, text: str, today: date) -> None:
        self.text = text
        self.today = today
        self.depth = 0
        """How many references within references are being read."""
        self.words = [
            Word(found[0].lower(), found.start(), found.end(), found[0][0].isupper())
            for found in _WORD.finditer(text)
        ]

    def __getitem__(self, at: int) -> str:
        return self.words[at].text if 0 <= at < len(self.words) else ""

    def capital(self, at: int) -> bool:
        """Whether it begins with a capital letter."""
        return 0 <= at < len(self.words) and self.words[at].capital

    def past(self, at: int, *words: str) -> int:
        """The place after those of these words that stand there."""
        end = at + _MOST_PASSED
        while at < end and self[at] and self[at] in words:
            at += 1
        return at

    def asked(self, at: int) -> bool:
        """Whether a word before it asks for a time: in May, on the 4th, or it is all there is."""
        before = self[at - 1] if self[at - 1] != "the" else self[at - 2]
        return before in ASKING or self.past(1, ".") == len(self.words)

    def figure(self, at: int) -> int | None:
        """The whole number in figures there, if it is no part of a price, a time of day or a fraction."""
        text = self[at]
        if not text.isdecimal() or not text.isascii():
            return None
        word = self.words[at]
        before = self.text[max(0, word.begin - 2) : word.begin]
        if _STARTS_A_FRACTION.match(self.text, word.stop) or _ENDS_A_FRACTION.search(before):
            return None
        return int(text) if len(text) <= _FIGURES and self[at + 1] not in {"am", "pm"} else None

    def count(self, at: int) -> tuple[int, int] | None:
        """How many, in figures or words (12, twenty-one, a, couple of), and the place after it."""
        if self[at] in {"a", "an"}:
            if self[at + 1] == "couple":
                return 2, self.past(at + 2, "of")
            return None if self[at + 1] in FEW else (1, at + 1)
        if self[at] == "couple":
            return 2, self.past(at + 1, "of")
        return self.cardinal(at)

    def cardinal(self, at: int) -> tuple[int, int] | None:
        """A number up to 9999 in figures, or up to 99 in words, and the place after it."""
        if (figure := self.figure(at)) is not None:
            return figure, at + 1
        if self[at] in ENGLISH_ONES:
            return ENGLISH_ONES[self[at]], at + 1
        if self[at] not in ENGLISH_TENS:
            return None
        tens, after = ENGLISH_TENS[self[at]], self.past(at + 1, "-")
        ones = ENGLISH_ONES.get(self[after], 0)
        return (tens + ones, after + 1) if ones in _ONES else (tens, at + 1)

    def ordinal(self, at: int) -> tuple[int, int] | None:
        """4th, fourth, twenty-first, and the place after it."""
        text = self[at]
        if text[:1].isdecimal() and text[-2:] in {"st", "nd", "rd", "th"}:
            return (int(text[:-2]), at + 1) if len(text) <= _FIGURES else None
        if text in ENGLISH_ORDINALS:
            return ENGLISH_ORDINALS[text], at + 1
        if text in ENGLISH_TENS:
            after = self.past(at + 1, "-")
            ones = ENGLISH_ORDINALS.get(self[after], 0)
            return (ENGLISH_TENS[text] + ones, after + 1) if ones in _ONES else None
        return None

    def day_number(self, at: int) -> tuple[int, int] | None:
        """The number of a day in its month, and the place after it; not a time of day."""
        found = self.ordinal(at) or self.cardinal(at)
        if found is None or found[0] not in TWO_FIGURES or self[found[1]] in {"am", "pm", "%", ":"}:
            return None
        return found

    def year(self, at: int) -> tuple[int, int] | None:
        """A year in four figures or in words (nineteen sixty nine, two thousand and seven), and what follows."""
        figure = self.figure(at)
        if figure is not None:
            return (figure, at + 1) if figure in _YEARS else None
        if self[at] == "two" and self[at + 1] == "thousand":
            rest = self.cardinal(self.past(at + 2, "and"))
            return (2000 + rest[0], rest[1]) if rest and rest[0] in TWO_FIGURES else (2000, at + 2)
        if self[at] in {"nineteen", "twenty", "eighteen"}:
            century = {"eighteen": 1800, "nineteen": 1900, "twenty": 2000}[self[at]]
            rest = self.cardinal(at + 1)
            return (century + rest[0], rest[1]) if rest and rest[0] in _REST_OF_A_YEAR else None
        return None
