"""The language of a text, Chinese or English, and its sentences with their positions."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from services.text.caches import text_cache

Language = Literal["zh", "en"]

_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[A-Za-zÀ-ɏ]+")
_SHORT = 500

_ENDS = ".!?。！？\\n"
SEMICOLONS = ";；"
ABBREVIATIONS = ("Dr", "Mr", "Mrs", "Ms", "Prof", "St", "vs", r"e\.g", r"i\.e")
"""Patterns of abbreviations that end with a full stop and seldom end a sentence."""
_ABBREVIATED = "|".join(rf"(?<=\b{each})\." for each in ABBREVIATIONS)
"""The full stop of an abbreviation that goes on."""


def language_of(texts: Iterable[str]) -> Language:
    """Chinese where there are at least half as many Chinese characters as words in other scripts."""
    chinese = words = 0
    for text in texts:
        more_chinese, more_words = (_remembered_count if len(text) <= _SHORT else _remembered_long_count)(text)
        chinese += more_chinese
        words += more_words
    return "zh" if chinese > 0 and chinese * 2 >= words else "en"


def _count(text: str) -> tuple[int, int]:
    """Chinese characters and words in other scripts."""
    return len(_CHINESE.findall(text)), len(_WORD.findall(text))


# Many readers of a message in a turn ask for its language.
_remembered_count = text_cache(512)(_count)
_remembered_long_count = text_cache(16)(_count)


@dataclass(frozen=True)
class Span:
    """A part of a text."""

    start: int
    end: int


@dataclass(frozen=True)
class Sentence(Span):
    """A sentence with its closing marks and following white space; joined, sentences are the text."""

    text: str
    mark: str
    """The marks that end it; empty at the end of a text without one."""

    @property
    def asks(self) -> bool:
        """Whether it ends with a question mark."""
        return "?" in self.mark or "？" in self.mark


def sentences(text: str, also: str = "") -> list[Sentence]:
    """Split a text into its sentences, in order; `also` are further characters that end one."""
    return [
        Sentence(*found.span(), found[0], found["mark"]) for found in _pattern(also).finditer(text) if found[0]
    ]


@cache
def _pattern(also: str) -> re.Pattern[str]:
    ends = f"{_ENDS}{also}"
    # A full stop before a character is part of a figure, an address or an abbreviation.
    body = rf"[^{ends}]*(?:(?:\.(?=\S)|{_ABBREVIATED})[^{ends}]*)*"
    return re.compile(rf"{body}(?P<mark>[{ends}]+|$)\s*")
