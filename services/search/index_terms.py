"""Terms that are indexed for a unit beside its words: the concepts it speaks of and what kind of text it is.

They stand in front of the terms of its row, as terms that no text has, so that a search finds them and a hit
brings them back. Rows of an older version have none; then they are made from the text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from services.text.caches import text_cache
from services.text.concepts import concepts, telling_concepts, widened
from services.text.features import FEATURES, Feature, expected, features
from services.text.language import language_of
from services.text.questions import asks_of_oneself
from services.text.tokenizer import indexed_text, terms

VERSION = "2"
"""Version of what is indexed of a text."""

_VERSION, _NAMED, _BROADER, _FEATURE = f"0v{VERSION}", "0c", "0b", "0f"
_KINDS: Mapping[str, Feature] = {f"{_FEATURE}{feature}": feature for feature in FEATURES}
_BESIDE_KINDS = 4
"""Times that a question's words count as much as the kind of text it seeks."""
_MARKS = 2
"""Characters that tell a mark from a word."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A unit's words, and what was marked of it."""

    terms: tuple[str, ...]
    concepts: Mapping[str, float]
    features: frozenset[Feature]


@text_cache(256)
def indexed_terms(text: str, speaker: str | None, role: Literal["user", "assistant"]) -> Sequence[str]:
    """The terms under which a message or a memory is indexed; none where it has no word."""
    # A working set and, some seconds later, the index need those of what was just said.
    words = terms(indexed_text(speaker or "", text))
    if not words:
        return ()
    spoken = concepts(text)
    named = [f"{_NAMED}{name}" for name, weight in spoken.items() if weight == 1.0]
    broader = [f"{_BROADER}{name}" for name, weight in spoken.items() if weight < 1.0]
    kinds = [f"{_FEATURE}{feature}" for feature in sorted(features(text, role))]
    return (_VERSION, *named, *broader, *kinds, *words)


def sought_terms(question: str) -> list[str]:
    """The terms by which a question is searched for: its words, and what it is about in any words.

    That something is stated, and has a value of the kind asked for, is sought as well: so few words of a question
    may stand in its answer that otherwise nothing finds it. Terms of most rows weigh little beside the others.
    """
    marks = [f"{kind}{name}" for name in telling_concepts(question) for kind in (_NAMED, _BROADER)]
    words = terms(question)
    language = language_of([question])
    if not words or not asks_of_oneself(question, language):
        return [*marks, *words]
    kinds = [f"{_FEATURE}{kind}" for kind in ("states", *sorted(expected(question, language)))]
    return [*kinds, *_BESIDE_KINDS * [*marks, *words]]


def is_of_this_version(found: Sequence[str]) -> bool:
    """Whether a row's terms were made by this version."""
    return bool(found) and found[0] == _VERSION


def marked(found: Sequence[str], text: str, speaker: str | None, role: Literal["user", "assistant"]) -> Marked:
    """Read a row's terms; if another version wrote them, take those of its text instead."""
    if not is_of_this_version(found):
        found = indexed_terms(text, speaker, role)
    zeros = [term for term in found if term[:1] == "0"]
    named = [term[_MARKS:] for term in zeros if term.startswith(_NAMED)]
    marks = {term for term in zeros if _is_mark(term)}
    kinds = frozenset(_KINDS[mark] for mark in marks if mark in _KINDS)
    return Marked(tuple(term for term in found if term not in marks), widened(named), kinds)


def _is_mark(term: str) -> bool:
    if term == _VERSION or term in _KINDS:
        return True
    return term[:_MARKS] in (_NAMED, _BROADER) and term[_MARKS:].isalpha()
