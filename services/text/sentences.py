"""Split Chinese or English text into sentences with their positions."""

import re
from dataclasses import dataclass
from functools import cache

_ENDS = ".!?。！？\\n"
SEMICOLONS = ";；"
ABBREVIATIONS = ("Dr", "Mr", "Mrs", "Ms", "Prof", "St", "vs", r"e\.g", r"i\.e")
"""Patterns of abbreviations that end with a full stop and seldom end a sentence."""
_ABBREVIATED = "|".join(rf"(?<=\b{each})\." for each in ABBREVIATIONS)
"""The full stop of an abbreviation that goes on."""


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
