"""Words by which a text is found in other texts, and which show whether a clause says the same as a text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from services.memory.core.content import FIELD_LABELS, FIELD_STATEMENTS
from services.memory.model import Memory
from services.text.caches import text_cache
from services.text.tokenizer import informative_terms, simplified, terms

_SHORTEST_STEM = 5
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_PERSON = re.compile(
    r"\s{0,8}(?:that\s{1,8})?(?:(?P<own>i\b|i['’]|we\b|我)|(?:she|he|they)\b|[她他])", re.IGNORECASE
)
_LITTLE = frozenset("我你您他她它咱们的地得了着是对有在会于这那个件事都也很吗呢吧啊呀请把和跟与就说过叫")
"""Chinese characters that are too common to tell statements apart."""
_NAME = re.compile(r"\d+|(?<=[\w,;:'’“(] )[A-Z][\w'-]*")
_MOST_OF_IT = 0.5
"""A clause with more than this share of a text's words counts as saying the same as the text."""


@dataclass(frozen=True)
class Words:
    """The words by which a text is found in others."""

    terms: frozenset[str]
    """Stems of the informative words in scripts other than Chinese."""
    characters: frozenset[str]

    @staticmethod
    def of(text: str) -> "Words":
        """Return the informative words of a text, or all of its words if none is informative."""
        return _remembered_words(text)

    @property
    def count(self) -> float:
        """Return the number of words; two Chinese characters count as one."""
        return len(self.terms) + len(self.characters) / 2

    def share_in(self, other: "Words") -> float:
        """Return the share of these words, 0 to 1, that are in another text."""
        if not self.count:
            return 0.0
        shared = len(self.terms & other.terms) + len(self.characters & other.characters) / 2
        return shared / self.count

    def without(self, other: "Words") -> "Words":
        """Return the words that another text does not have."""
        return Words(self.terms - other.terms, self.characters - other.characters)

    def covered_by(self, other: "Words") -> bool:
        """Return whether another text has all of these words; of many Chinese characters, nearly all."""
        missing = len(self.characters - other.characters)
        return bool(self.count) and self.terms <= other.terms and missing * 10 <= len(self.characters)

    def resembles(self, other: "Words") -> bool:
        """Return whether another text has all of these words, or words that begin like them (“allergy”,
        “allergic”)."""
        missing = len(self.characters - other.characters)
        beginnings = {each[:_SHORTEST_STEM] for each in other.terms if len(each) >= _SHORTEST_STEM}
        apart = [each for each in self.terms - other.terms if each[:_SHORTEST_STEM] not in beginnings]
        return not apart and missing * 10 <= len(self.characters)


@text_cache(1_024)
def _remembered_words(text: str) -> Words:
    found = informative_terms(text) or frozenset(terms(text))
    characters = frozenset(_CHINESE.findall(simplified(text))) - _LITTLE
    return Words(frozenset(each for each in found if not _CHINESE.search(each)), characters)


def labelled(memory: Memory) -> str:
    """Return a memory's text; for a value, with the names of its field in both languages."""
    if memory.kind != "value":
        return memory.text
    labels = [each[memory.field] for each in FIELD_LABELS.values() if memory.field in each]
    return " ".join([*labels, memory.field.replace("_", " "), memory.text])


def stated(memory: Memory) -> str:
    """Return a memory's text together with every word by which a user may state it."""
    said = FIELD_STATEMENTS.get(memory.field, "") if memory.kind == "value" else ""
    return f"{labelled(memory)} {said}"


def words_of(memory: Memory) -> Words:
    """Return the words by which a memory is found; a value is also found by the words in which users state it."""
    return Words.of(stated(memory))


def speaks_of_another(text: str, memory: Memory) -> bool:
    """Return whether a text and a memory speak of different people: one begins with “I”, the other with “she”,
    “he” or “they”."""
    states = memory.kind == "value" and memory.field in FIELD_STATEMENTS
    known = "I" if states else _person(memory.text)
    return {known, _person(text)} == {"I", "they"}


def begins_with_another(text: str) -> bool:
    """Return whether a text begins with “she”, “he” or “they”, whom an earlier text names."""
    return _person(text) == "they"


def _person(text: str) -> str | None:
    found = _PERSON.match(text)
    return None if found is None else "I" if found["own"] else "they"


def patterns_of(words: str) -> list[str]:
    """Return patterns for LIKE; any text that shares a word with these words matches one of them."""
    stems = {
        term[:-1] if term.isascii() and len(term) >= _SHORTEST_STEM else term
        for term in (informative_terms(words) or frozenset(terms(words)))
    }
    # Traditional characters are stored as they were written, and terms are simplified.
    stems |= {f"{one}{other}" for one, other in pairwise(words) if _CHINESE.match(one) and _CHINESE.match(other)}
    long = {stem for stem in stems if len(stem) > 1} or stems
    return sorted("%" + re.sub(r"([\\%_])", r"\\\1", stem) + "%" for stem in long)


def names_in(text: str) -> str:
    """Return the figures in a text, and the capitalised words that do not begin a sentence, joined by blanks."""
    return " ".join(_NAME.findall(text))


def says(clause: str, text: str) -> bool:
    """Return whether a clause has most words of a text."""
    return Words.of(text).share_in(Words.of(clause)) > _MOST_OF_IT


def repeats(clause: str, text: str) -> bool:
    """Return whether a clause of an answer has half of the words of a text, or every name and figure of it.

    An answer often repeats what it was told in other words (“Peanuts, I see”). Losing one of its clauses costs
    nothing that the user has said.
    """
    return Words.of(text).share_in(Words.of(clause)) >= _MOST_OF_IT or has_names(clause, text)


def has_names(clause: str, text: str) -> bool:
    """Return whether a clause has every name and figure of a text; false if the text has none."""
    found = names_in(text)
    return bool(found) and Words.of(found).covered_by(Words.of(clause))


def shares_name(clause: str, texts: Iterable[str]) -> bool:
    """Return whether a clause has a name or a figure of some texts."""
    return Words.of(names_in("\n".join(texts)) or "-").share_in(Words.of(clause)) > 0
