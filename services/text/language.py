"""Texts as wholes: whether they are Chinese or English, their sentences, and whether two texts say the same."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from services.text.caches import text_cache

Language = Literal["zh", "en"]

_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[A-Za-zÀ-ɏ]+")

_ENDS = ".!?。！？\\n"
SEMICOLONS = ";；"
ABBREVIATIONS = ("Dr", "Mr", "Mrs", "Ms", "Prof", "St", "vs", r"e\.g", r"i\.e")
"""Patterns of abbreviations that end with a full stop and seldom end a sentence."""
_ABBREVIATED = "|".join(rf"(?<=\b{each})\." for each in ABBREVIATIONS)
"""Full stop of an abbreviation, which does not end the sentence."""

Comparison = Literal["same", "alike", "apart"]
"""`same`: equal except for case, width, spaces and punctuation. `alike`: the texts may say the same or
contradict each other, which a model can tell. `apart`: they are about different things."""

ALIKE = 0.55
"""Minimum cosine of two embeddings for texts to count as alike, unless unrelated texts reach it too."""
_SHORT, _KEPT = 500, 2_000
"""Longest text, in characters, whose folded form is cached, and number of cached texts."""
_MARKS = " .,;:!?\"'“”‘’()（）。，；：！？、…"
_BESIDE_CHINESE = re.compile(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])")


def language_of(texts: Iterable[str]) -> Language:
    """Return `zh` if there are at least half as many Chinese characters as words in other scripts, else `en`."""
    chinese = words = 0
    for text in texts:
        more_chinese, more_words = (_remembered_count if len(text) <= _SHORT else _remembered_long_count)(text)
        chinese += more_chinese
        words += more_words
    return "zh" if chinese > 0 and chinese * 2 >= words else "en"


def _count(text: str) -> tuple[int, int]:
    """Count the Chinese characters, and the words in other scripts."""
    return len(_CHINESE.findall(text)), len(_WORD.findall(text))


# Several parts of a turn ask for the language of its message.
_remembered_count = text_cache(512)(_count)
_remembered_long_count = text_cache(16)(_count)


@dataclass(frozen=True)
class Span:
    """A part of a text."""

    start: int
    end: int


@dataclass(frozen=True)
class Sentence(Span):
    """A sentence with its closing marks and the white space after it; all sentences joined are the text."""

    text: str
    mark: str
    """Marks that end the sentence; empty at the end of a text that has none there."""

    @property
    def asks(self) -> bool:
        """Whether it ends with a question mark."""
        return "?" in self.mark or "？" in self.mark


def sentences(text: str, also: str = "") -> list[Sentence]:
    """Split a text into its sentences, in order; `also` names further characters that end a sentence."""
    return [
        Sentence(*found.span(), found[0], found["mark"]) for found in _pattern(also).finditer(text) if found[0]
    ]


@cache
def _pattern(also: str) -> re.Pattern[str]:
    ends = f"{_ENDS}{also}"
    # A full stop directly before a character belongs to a number, an address or an abbreviation.
    body = rf"[^{ends}]*(?:(?:\.(?=\S)|{_ABBREVIATED})[^{ends}]*)*"
    return re.compile(rf"{body}(?P<mark>[{ends}]+|$)\s*")


def compare(one: str, other: str, likeness: float = 0.0, *, floor: float = ALIKE) -> Comparison:
    """Compare two texts.

    Args:
        likeness: Cosine of their embeddings, -1 to 1.
        floor: Minimum likeness of texts that are alike.
    """
    if folded(one) == folded(other):
        return "same"
    return "alike" if likeness >= floor else "apart"


def folded(text: str) -> str:
    """Return a text without differences that mean nothing: case, width, spaces, punctuation around words."""
    return (_kept if len(text) <= _SHORT else _folded)(text)


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _BESIDE_CHINESE.sub("", " ".join([word for each in folded.split() if (word := each.strip(_MARKS))]))


_kept = text_cache(_KEPT)(_folded)
