"""Everyday concepts: which of them a text speaks of, so that a question meets a statement in other words.

"Who is my physician?" and "I see Dr. Lee on Monday" share no term. Both speak of doctors. A compact bilingual
table (`concepts.toml`) says which words stand for a concept or for a kind of it, and which concepts are broader.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from services.text.caches import text_cache
from services.text.tokenizer import (
    english_stems,
    english_words,
    informative_terms,
    is_everyday,
    lone_characters,
    simplified_text,
    terms,
)

UNRELATED = "unrelated"
_BROADER = 0.5
"""Share of a concept that the concept above it counts."""
_SHORT = 500
_DOERS = ("er", "or", "ist", "ian")
_VAGUE = 0.35
_LONE = 0.3
_EVERYDAY = 0.2


@dataclass(frozen=True)
class _Table:
    english: Mapping[tuple[str, ...], Sequence[str]]
    """Concepts by the stems of a word or phrase, in an order that every process has."""
    chinese: Mapping[str, Sequence[str]]
    longest_english: Mapping[str, int]
    """By the first word or stem how many words the longest phrase has."""
    longest_chinese: Mapping[str, int]
    """By the first character how many the longest word has."""
    broader: Mapping[str, Mapping[str, float]]
    """For each concept those that hold as well, itself with 1."""
    vague: frozenset[str]
    """Concepts that say what is asked of a subject, and not which subject."""


@dataclass(frozen=True, slots=True)
class Facet:
    """One of the things that a question is about."""

    terms: tuple[str, ...]
    """Terms of which a text holds all where it uses the same words."""
    concepts: Mapping[str, float]
    """Concepts that it stands for, as of `concepts`."""
    weight: float
    """Less than 1 for words that hardly tell one subject from another."""


def concepts(text: str) -> dict[str, float]:
    """The concepts of which a text speaks: 1 for those it names, less for broader ones.

    Of words within one another the longest counts. Traditional characters are folded.
    """
    return widened(each for _, named in _named_in(text) for each in named)


def widened(named: Iterable[str]) -> dict[str, float]:
    """Concepts that are named, with the broader ones that hold as well; unknown names are left out."""
    table = _table()
    found: dict[str, float] = {}
    for concept in named:
        for broader, weight in table.broader.get(concept, {}).items():
            found[broader] = max(weight, found.get(broader, 0.0))
    found.pop(UNRELATED, None)
    return found


def telling_concepts(question: str) -> list[str]:
    """The concepts that a question names and that tell one subject from another."""
    vague = _table().vague
    return [concept for concept, weight in concepts(question).items() if weight == 1.0 and concept not in vague]


def words_for(concepts_named: Iterable[str]) -> list[str]:
    """The terms (`services.text.tokenizer`) of single words that stand for these concepts, to search by words."""
    words = _words_by_concept()
    return list(dict.fromkeys(term for concept in concepts_named for term in words.get(concept, ())))


def kinds_of(named: Iterable[str]) -> list[str]:
    """These concepts and all that are kinds of them."""
    wanted = set(named)
    return [concept for concept, broader in _table().broader.items() if not wanted.isdisjoint(broader)]


@cache
def word_pattern(language: str, *named: str) -> str:
    """Return a regular expression that matches any word for these concepts or kinds of them, the longest first.

    Args:
        language: `en` or `zh`, of the words.
        named: concepts of the table.
    """
    raw = _entries()
    kinds = [concept for concept in raw if not set(_broader(concept, _above())).isdisjoint(named)]
    words = {word.replace("_", " ") for kind in kinds for word in raw[kind].get(language, "").split()}
    return f"(?:{'|'.join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))})"


def facets(question: str) -> tuple[Facet, ...]:
    """What a question is about, each thing once."""
    return (_remembered_facets if len(question) <= _SHORT else _facets)(question)


def _facets(question: str) -> tuple[Facet, ...]:
    table = _table()
    found: dict[tuple[str, ...], Facet] = {}
    covered: set[str] = set()
    for words, named in _named_in(question):
        own = tuple(terms(words))
        covered.update(own)
        if UNRELATED in named or not named:
            continue
        held = widened(named)
        vague = all(each in table.vague for each in named)
        key = tuple(sorted(informative_terms(words))) or own or (words,)
        found[key] = Facet(key, held, _VAGUE if vague else 1.0)
    for term in sorted(informative_terms(question)):
        if term not in covered:
            found[term,] = Facet((term,), {}, _EVERYDAY if is_everyday(term) else 1.0)
    for term in sorted(lone_characters(question)):
        if term not in covered:
            found[term,] = Facet((term,), {}, _LONE)
    return tuple(found.values())


# A message is looked at several times in a turn: for commands, in recall, and in knowledge bases.
_remembered_facets = text_cache(512)(_facets)

_Named = tuple[str, Sequence[str]]
"""Words of a text, and the concepts that they stand for."""


def _named_in(text: str) -> Sequence[_Named]:
    return (_remembered_names if len(text) <= _SHORT else _all_named)(text)


def _all_named(text: str) -> Sequence[_Named]:
    table = _table()
    return (*_in_english(text, table), *_in_chinese(text, table))


# The concepts of a message are wanted for its facets, to search by and to rank by.
_remembered_names = text_cache(512)(_all_named)


def _in_english(text: str, table: _Table) -> Iterator[_Named]:
    words = english_words(text)
    stems = english_stems(text)
    at = 0
    while at < len(stems):
        longest = max(table.longest_english.get(words[at], 0), table.longest_english.get(stems[at], 0))
        for length in range(min(longest, len(stems) - at), 0, -1):
            end = at + length
            named = table.english.get(tuple(words[at:end])) or table.english.get(tuple(stems[at:end]))
            if named:
                yield " ".join(words[at : at + length]), named
                at += length
                break
        else:
            at += 1


def _in_chinese(text: str, table: _Table) -> Iterator[_Named]:
    if text.isascii():
        return
    folded = simplified_text(text)
    at = 0
    while at < len(folded):
        for length in range(min(table.longest_chinese.get(folded[at], 0), len(folded) - at), 0, -1):
            named = table.chinese.get(folded[at : at + length])
            if named:
                yield folded[at : at + length], named
                at += length
                break
        else:
            at += 1


@cache
def _words_by_concept() -> Mapping[str, Sequence[str]]:
    table = _table()
    found: dict[str, list[str]] = {}
    single = ((stems[0], named) for stems, named in table.english.items() if len(stems) == 1)
    for word, named in (*single, *table.chinese.items()):
        for concept in named:
            found.setdefault(concept, []).append(word)
    return found


def warm() -> None:
    """Read the table of concepts."""
    _table()


@cache
def _table() -> _Table:
    raw = _entries()
    english: dict[tuple[str, ...], set[str]] = {}
    chinese: dict[str, set[str]] = {}
    for concept, entry in raw.items():
        for phrase in entry.get("en", "").split():
            words = english_words(phrase.replace("_", " "))
            # A gardener is no garden: who does something is not told from it by the stem.
            exact = len(words) == 1 and words[0].endswith(_DOERS) and english_stems(words[0]) != words
            keys = [words, [f"{words[0]}s"]] if exact else [english_stems(phrase.replace("_", " "))]
            for key in keys:
                english.setdefault(tuple(key), set()).add(concept)
        for word in entry.get("zh", "").split():
            # A word in Latin letters within Chinese is found as English.
            chinese.setdefault(simplified_text(word), set()).add(concept)
    above = _above()
    return _Table(
        english={stems: sorted(named) for stems, named in english.items()},
        chinese={word: sorted(named) for word, named in chinese.items()},
        longest_english=_longest({stems: stems[0] for stems in english}),
        longest_chinese=_longest({word: word[0] for word in chinese}),
        broader={concept: _broader(concept, above) for concept in raw},
        vague=frozenset(concept for concept, entry in raw.items() if entry.get("vague")),
    )


@cache
def _entries() -> Mapping[str, Mapping[str, Any]]:
    text = (files("services.text") / "concepts.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _above() -> Mapping[str, Sequence[str]]:
    return {concept: entry.get("under", "").split() for concept, entry in _entries().items()}


def _longest(firsts: Mapping[Any, str]) -> dict[str, int]:
    longest: dict[str, int] = {}
    for phrase, first in firsts.items():
        longest[first] = max(len(phrase), longest.get(first, 0))
    return longest


def _broader(concept: str, above: Mapping[str, Sequence[str]]) -> dict[str, float]:
    found = {concept: 1.0}
    waiting = [concept]
    while waiting:
        each = waiting.pop()
        for broader in above[each]:
            if broader not in found:
                found[broader] = found[each] * _BROADER
                waiting.append(broader)
    return found
