"""Which of a tenant's knowledge bases a message is about, by its words. Pure.

Two measures, both with every word weighed by how few bases have it:

- *keywords*: which of a base's own words and phrases stand in the message;
- *coverage*: how much of what the message is about stands in a base's profile, 0 to 1.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.knowledge.profile import BaseProfile
from services.memory.terms import informative_terms, simplified

_READ = 600
"""Characters at either end of a message that are looked at: a question stands at one of them."""
_FIRST_CHARACTERS = 2
_HOW_MUCH = frozenset(
    """
    几天 几点 几个 几次 几年 几月 几号 多久 多大 多长 多高 多远 多少钱 长时间 时间
    什么时候 开始 结束 需要 应该 要求
    """.split()  # noqa: SIM905 — words are easier to read so
)
"""What a Chinese question asks for, not what it is about."""


@dataclass(frozen=True)
class Hit:
    """How well a base fits a message."""

    profile: BaseProfile
    keywords: tuple[str, ...]
    """Those of its keywords that stand in the message, as its profile has them."""
    weight: float
    """Of these keywords: 1 for each that no other base has."""
    coverage: float
    terms: int
    """How many keywords and other informative terms the message has."""


class Profiles:
    """The bases of a tenant, ready to be compared with messages."""

    def __init__(self, profiles: Sequence[BaseProfile]) -> None:
        self.all = tuple(profiles)
        self._keywords = _Keywords(profiles)
        self._terms = [_terms_of(profile) for profile in profiles]
        count = Counter(term for terms in self._terms for term in terms)
        self._weights = {term: 1 / bases for term, bases in count.items()}

    def get(self, prefix: str) -> BaseProfile | None:
        """The base of that prefix."""
        return next((profile for profile in self.all if profile.prefix == prefix), None)

    def compare(self, message: str) -> list[Hit]:
        """Every base, with what it has of the message."""
        text = folded(ends_of(message))
        found = self._keywords.found_in(text)
        named = {folded(keyword) for keywords in found.values() for keyword in keywords}
        # What a keyword says is not said once more by the words that it is made of, however they are cut.
        rest = {
            term
            for term in informative_terms(text) - _HOW_MUCH
            if not any(term in keyword or keyword in term for keyword in named)
        }
        terms = len(named) + len(rest)
        hits = []
        for place, profile in enumerate(self.all):
            keywords = found.get(place, {})
            weight = sum(keywords.values())
            shared = weight + sum(self._weights[term] for term in rest & self._terms[place])
            hits.append(Hit(profile, tuple(keywords), weight, shared / terms if terms else 0.0, terms))
        return hits


def ends_of(message: str) -> str:
    """What of a message is looked at: all of a short one, the beginning and the end of a long one."""
    return message if len(message) <= 2 * _READ else f"{message[:_READ]}\n{message[-_READ:]}"


def folded(text: str) -> str:
    """In lower case, with full-width forms and traditional characters folded."""
    return simplified(unicodedata.normalize("NFKC", text).lower().replace("’", "'"))


class _Keywords:
    """Finds all keywords of all bases in one walk through a text, whatever their number."""

    def __init__(self, profiles: Sequence[BaseProfile]) -> None:
        self._bases: dict[str, dict[int, str]] = {}
        for place, profile in enumerate(profiles):
            for keyword in profile.keywords:
                if word := folded(keyword).strip():
                    self._bases.setdefault(word, {})[place] = keyword
        self._by_beginning: dict[str, list[str]] = {}
        for word in sorted(self._bases, key=len, reverse=True):
            self._by_beginning.setdefault(word[:_FIRST_CHARACTERS], []).append(word)

    def found_in(self, text: str) -> dict[int, dict[str, float]]:
        """By base its keywords in the text, each with its weight; of overlapping ones the longest."""
        found: dict[int, dict[str, float]] = {}
        at = 0
        while at < len(text):
            word = self._at(text, at)
            for place, keyword in self._bases.get(word, {}).items():
                found.setdefault(place, {})[keyword] = 1 / len(self._bases[word])
            at += len(word) or 1
        return found

    def _at(self, text: str, at: int) -> str:
        starts = (text[at : at + length] for length in range(_FIRST_CHARACTERS, 0, -1))
        for word in (word for start in starts for word in self._by_beginning.get(start, ())):
            if text.startswith(word, at) and _stands_alone(text, at, at + len(word)):
                return word
        return ""


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether what stands there is not a part of a longer Latin word; a plural is the word."""
    if _is_latin(text[start]) and start and _is_latin(text[start - 1]):
        return False
    if not _is_latin(text[end - 1]):
        return True
    rest = end
    while rest < len(text) and _is_latin(text[rest]):
        rest += 1
    return text[end:rest] in {"", "s", "es"}


def _is_latin(character: str) -> bool:
    return character.isalnum() and ord(character) < 0x2E80  # noqa: PLR2004 — where the CJK blocks begin


def _terms_of(profile: BaseProfile) -> frozenset[str]:
    texts: Iterable[str] = (profile.description, *profile.keywords, *profile.questions, *profile.headings)
    return informative_terms("\n".join(folded(text) for text in texts))
