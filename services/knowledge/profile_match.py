"""Match a message with the profiles of a tenant's knowledge bases, without reading documents.

A base says it by its keywords, by the headings of its documents and its example questions, and by its description.
Pure, and quick enough for every message: the words of all headings are in one table.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from services.knowledge.base import BaseProfile
from services.knowledge.chunking import HEADING_SEPARATOR
from services.knowledge.overlap import Wanted, wanted
from services.knowledge.word_forms import folded_forms
from services.text.tokenizer import informative_terms, simplified, terms

_READ = 600
"""Characters read at either end of a message: the question stands at one of them."""
_FIRST_CHARACTERS = 2
_FIRST_LETTERS = 5
"""Letters that two English stems must share to count as one word when one begins with the other."""


@dataclass(frozen=True)
class Hit:
    """Match of a base's profile with a message."""

    keywords: tuple[str, ...] = ()
    """Keywords found in the message, as the profile writes them."""
    weight: float = 0.0
    """Weight of these keywords; 1 for each that no other base has."""
    heading: float = 0.0
    """Largest share of a heading's words found in the message, 0 to 1."""
    heading_words: int = 0
    """Number of these words."""
    described: float = 0.0
    """Words of the description found in the message, each divided by the number of bases that have it."""


class Profiles:
    """The bases of a tenant, ready to be compared with messages."""

    def __init__(self, profiles: Sequence[BaseProfile]) -> None:
        self.all = tuple(profiles)
        self._keywords = _Keywords(profiles)
        self._headings = _Headings(profiles)
        self._descriptions = [folded_forms(informative_terms(folded(profile.description))) for profile in profiles]
        self._describe = Counter(term for terms in self._descriptions for term in terms)

    def get(self, prefix: str) -> BaseProfile | None:
        """Return the base with this prefix."""
        return next((profile for profile in self.all if profile.prefix == prefix), None)

    def compare(self, message: str) -> dict[str, Hit]:
        """Matches of a message by prefix; bases without any are left out."""
        text = folded(ends_of(message))
        want = wanted(text)
        keywords = self._keywords.found_in(text, want)
        headings = self._headings.best_for(want)
        hits = {}
        for place, profile in enumerate(self.all):
            described = sum(1 / self._describe[term] for term in want.terms & self._descriptions[place])
            if place in keywords or place in headings or described:
                found = keywords.get(place, {})
                share, words = headings.get(place, (0.0, 0))
                hits[profile.prefix] = Hit(tuple(found), sum(found.values()), share, words, described)
        return hits


def ends_of(message: str) -> str:
    """The part of a message that is read: all of a short one, both ends of a long one."""
    return message if len(message) <= 2 * _READ else f"{message[:_READ]}\n{message[-_READ:]}"


def folded(text: str) -> str:
    """Fold case, full-width forms and traditional characters."""
    return simplified(unicodedata.normalize("NFKC", text).lower().replace("’", "'"))


class _Headings:
    """Finds the heading or example question of each base that a message covers best."""

    def __init__(self, profiles: Sequence[BaseProfile]) -> None:
        self._sizes: list[tuple[int, int]] = []
        self._with: dict[str, list[int]] = defaultdict(list)
        self._beginning: dict[str, list[str]] = defaultdict(list)
        for place, profile in enumerate(profiles):
            for heading in dict.fromkeys([*profile.headings, *profile.questions]):
                words = wanted(folded(heading.rpartition(HEADING_SEPARATOR)[2])).terms
                for word in words:
                    self._with[word].append(len(self._sizes))
                self._sizes.append((place, len(words)))
        for word in self._with:
            if len(word) >= _FIRST_LETTERS and word.isascii():
                self._beginning[word[:_FIRST_LETTERS]].append(word)

    def best_for(self, want: Wanted) -> dict[int, tuple[float, int]]:
        """The largest share of a heading in the message, and the number of words, by base."""
        found = Counter(heading for word in self._words(want) for heading in self._with[word])
        best: dict[int, tuple[float, int]] = {}
        for heading, words in found.items():
            place, size = self._sizes[heading]
            best[place] = max(best.get(place, (0.0, 0)), (words / size, words))
        return best

    def _words(self, want: Wanted) -> set[str]:
        words = {term for term in want.all if term in self._with}
        for term in want.terms - words:
            words.update(
                other
                for other in self._beginning.get(term[:_FIRST_LETTERS], ())
                if term.isascii() and (other.startswith(term) or term.startswith(other))
            )
        return words


class _Keywords:
    """Finds all keywords of all bases in one pass over a text."""

    def __init__(self, profiles: Sequence[BaseProfile]) -> None:
        self._bases: dict[str, dict[int, str]] = {}
        for place, profile in enumerate(profiles):
            for keyword in profile.keywords:
                if word := folded(keyword).strip():
                    self._bases.setdefault(word, {})[place] = keyword
        self._by_beginning: dict[str, list[str]] = {}
        for word in sorted(self._bases, key=len, reverse=True):
            self._by_beginning.setdefault(word[:_FIRST_CHARACTERS], []).append(word)
        self._stems: dict[str, list[tuple[frozenset[str], str]]] = defaultdict(list)
        for word in self._bases:
            if word.isascii() and (stems := folded_forms(terms(word))):
                self._stems[min(stems)].append((stems, word))

    def found_in(self, text: str, want: Wanted) -> dict[int, dict[str, float]]:
        """By base its keywords in the text, each with its weight: verbatim, or inflected.

        Of those that overlap the longest is found.
        """
        found: dict[int, dict[str, float]] = {}
        at, walked = 0, []
        while at < len(text):
            word = self._at(text, at)
            walked.append(word)
            self._note(found, word)
            at += len(word) or 1
        for term in want.terms:
            for stems, word in self._stems.get(term, ()):
                if stems <= want.terms and not any(word in longer for longer in walked):
                    self._note(found, word)
        return found

    def _note(self, found: dict[int, dict[str, float]], word: str) -> None:
        for place, keyword in self._bases.get(word, {}).items():
            found.setdefault(place, {})[keyword] = 1 / len(self._bases[word])

    def _at(self, text: str, at: int) -> str:
        starts = (text[at : at + length] for length in range(_FIRST_CHARACTERS, 0, -1))
        for word in (word for start in starts for word in self._by_beginning.get(start, ())):
            if text.startswith(word, at) and _stands_alone(text, at, at + len(word)):
                return word
        return ""


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether the match is a whole Latin word, or its plural."""
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
