"""Features of a text by which linear models tell memory commands from other messages.

Words by themselves tell little: anything can be forgotten, and anything can be told. Beside n-grams of the words
themselves, features are n-grams of the classes that they belong to (`words.toml`), between which whatever
is not a word of commands counts as one gap: "bin the debt thing" and "drop the alarm code" are the same there.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations, pairwise
from zlib import crc32

from services.text.tokenizer import english_stems, simplified_text

_TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[\u3400-\u9fff]|\ue000+|[^\w\s\ue000]+|\n|\w")
_HIDDEN = "\ue000"
_MARK = re.compile(rf"[^\w\s'{_HIDDEN}]|\n")
_LONGEST_PHRASE = 4
_NOT = "n't"
_GAP = "*"
_EMPTY = frozenset({_GAP, "^", "$"})
_LONGEST_SHAPE = 5
_LONGEST_OF_WORDS = 3
_LONGEST_OF_CHARACTERS = 4
_PART_OF_WORD = 4
"""Letters of a part of a word, by which a misspelt one is recognised."""
_NEAR = 8
"""Tokens between two words that count as a pair."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of English, a character of Chinese, or a mark."""

    text: str
    """Folded; of a number only that it is one."""
    start: int
    end: int
    classes: tuple[str, ...]
    """Classes of the command word that begins with it."""
    span: int
    """Tokens of that word."""

    @property
    def is_mark(self) -> bool:
        """Whether it parts clauses."""
        return _MARK.match(self.text) is not None


def tokens(folded: str) -> list[Token]:
    """The tokens of a text in lower case, in half width and in simplified characters, with their places in it."""
    words, places = _split(folded)
    found = []
    for at, (word, (start, end)) in enumerate(zip(words, places, strict=True)):
        classes, span = _classes(words, at)
        text = "0" if word.isdigit() else word[:1] if word.startswith(_HIDDEN) else word
        found.append(Token(text, start, end, classes, span))
    return found


def _split(folded: str) -> tuple[list[str], list[tuple[int, int]]]:
    words, places = [], []
    for found in _TOKEN.finditer(folded):
        word, start, end = found.group(), found.start(), found.end()
        if word.endswith(_NOT) and len(word) > len(_NOT):
            words += [word[: -len(_NOT)], _NOT]
            places += [(start, end - len(_NOT)), (end - len(_NOT), end)]
        else:
            words.append(word)
            places.append((start, end))
    return words, places


def _classes(words: Sequence[str], at: int) -> tuple[tuple[str, ...], int]:
    table = _table()
    for length in range(min(_LONGEST_PHRASE, len(words) - at), 0, -1):
        named = table.get(tuple(map(_stem, words[at : at + length])))
        if named:
            return named, length
    return (), 1


@cache
def _stem(word: str) -> str:
    stems = english_stems(word) if word.isascii() and word[0].isalpha() else ()
    return stems[0] if len(stems) == 1 else word


@cache
def _table() -> dict[tuple[str, ...], tuple[str, ...]]:
    raw = tomllib.loads((files("services.memory.commands") / "words.toml").read_text(encoding="utf-8"))
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for name, entry in raw.items():
        english = [_split(phrase.replace("_", " "))[0] for phrase in entry["en"].split()]
        chinese = [list(simplified_text(word)) for word in entry["zh"].split()]
        for words in (*english, *chinese):
            key = tuple(map(_stem, words))
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), name)))
    return found


def features_of_text(found: Sequence[Token]) -> list[str]:
    """Features of a text as a whole."""
    features: set[str] = set()
    everywhere: set[str] = set()
    for clause in _clauses(found):
        features.update(_of_words(clause))
        shape = _shape(clause)
        names = ["^", *(name for name, _ in shape), "$"]
        features.update("s" + " ".join(gram) for gram in _grams(names, _LONGEST_SHAPE))
        spoken = [(name, place) for name, place in shape if name != _GAP]
        everywhere.update(name for name, _ in spoken)
        for (first, place), (second, other) in combinations(spoken, 2):
            if other - place <= _NEAR:
                features.add(f"p{first} {second}")
    features.update(f"t{first} {second}" for first, second in combinations(sorted(everywhere), 2))
    if any("?" in token.text for token in found):
        features.add("asks")
    return sorted(features)


def _of_words(clause: Sequence[Token]) -> Iterator[str]:
    words = ["^", *(token.text for token in clause), "$"]
    for gram in _grams(words, _LONGEST_OF_CHARACTERS):
        # Characters of Chinese are less than words.
        if len(gram) <= _LONGEST_OF_WORDS or not gram[1].isascii():
            yield "w" + "\t".join(gram)
    for token in clause:
        if token.text.isascii() and len(token.text) > _PART_OF_WORD:
            padded = f"<{token.text}>"
            for at in range(len(padded) - _PART_OF_WORD + 1):
                yield "x" + padded[at : at + _PART_OF_WORD]


def _grams(names: Sequence[str], longest: int) -> Iterator[Sequence[str]]:
    for length in range(1, longest + 1):
        for at in range(len(names) - length + 1):
            yield names[at : at + length]


def _clauses(found: Sequence[Token]) -> Iterator[list[Token]]:
    clause: list[Token] = []
    for token in found:
        if token.is_mark:
            if clause:
                yield clause
            clause = []
        else:
            clause.append(token)
    if clause:
        yield clause


def _shape(clause: Sequence[Token]) -> list[tuple[str, int]]:
    """The classes of a clause's words in order, each with its place; what has none is a gap."""
    shape: list[tuple[str, int]] = []
    at = 0
    while at < len(clause):
        token = clause[at]
        if token.classes:
            shape.append(("+".join(token.classes), at))
        elif not shape or shape[-1][0] != _GAP:
            shape.append((_GAP, at))
        at += token.span
    return shape


def features_of_token(found: Sequence[Token], at: int, kind: str) -> list[str]:
    """What tells the part that a token has in a command of a kind: the words around it, and their classes."""
    words = ["^^", "^", *(token.text for token in found), "$", "$$"]
    classes = ["^", "^", *_spread(found), "$", "$"]
    here = at + 2
    features = [f"k{kind}"]
    for reach in (-2, -1, 0, 1, 2):
        features.append(f"w{reach} {words[here + reach]}")
        features.append(f"c{reach} {classes[here + reach]}")
    for first, second in pairwise((-2, -1, 0, 1, 2)):
        features.append(f"c{first}{second} {classes[here + first]}\t{classes[here + second]}")
    features += [f"C{first} {' '.join(classes[here + first : here + first + 3])}" for first in (-2, -1, 0)]
    before = [name for name in classes[:here] if name not in _EMPTY]
    after = [name for name in classes[here + 1 :] if name not in _EMPTY]
    own = classes[here] == _GAP
    features += [
        f"b1 {own} {before[-1:]}",
        f"b2 {own} {before[-2:]}",
        f"a1 {own} {after[:1]}",
        f"a2 {own} {after[:2]}",
        f"ab {own} {before[-1:]} {after[:1]}",
        f"kb {kind} {own} {before[-1:]}",
        f"ka {kind} {own} {after[:1]}",
    ]
    return features


def _spread(found: Sequence[Token]) -> list[str]:
    """The class of the word that each token belongs to."""
    names = [_GAP] * len(found)
    at = 0
    while at < len(found):
        token = found[at]
        if token.classes:
            for place in range(at, min(at + token.span, len(found))):
                names[place] = "+".join(token.classes)
        elif token.is_mark:
            names[at] = token.text[0]
        at += token.span
    return names


def hashed(features: Sequence[str], size: int) -> list[int]:
    """The places of features in a table of a power of two."""
    mask = size - 1
    return [crc32(feature.encode()) & mask for feature in features]
