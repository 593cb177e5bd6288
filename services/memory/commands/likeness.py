"""Which words of a statement a new value takes the place of, where no rule names its kind.

“soy milk” goes where “oat milk” stands, “Castleford Homes” where “Castlegate Housing” does: by meaning (vectors of
words), or by spelling. Pure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import cast

import numpy as np
from numpy.typing import NDArray

from services.text.tokenizer import informative_terms, simplified, terms
from services.text.word_vectors import word_vectors

Vector = NDArray[np.float32]
_WORD = re.compile(r"[A-Za-zÀ-ÿ][\w'’-]*|\d[\d.,:]*\w*")
_LINK_WORDS = """
a an the my our his her their your its is are was were am be been i he she it we they and or but so in at on to of
with for from as by who that which not this have has had i'm i've we're she's he's it's
"""
_LINKS = frozenset(_LINK_WORDS.split())
_MOST_WORDS = 3
_SHORTEST = 2
_LONGEST_NAME = 3
"""Characters of a Chinese name."""
_ALIKE_IN_SPELLING = 0.5
_ALIKE_IN_MEANING = 0.25
_STANDS_OUT = 0.1
"""By how much the best of several places is ahead of the next one that does not overlap it."""


@dataclass(frozen=True)
class Place:
    """Words of a statement that may be replaced."""

    start: int
    end: int
    score: float
    """How like the new value they are (0..1)."""
    by_spelling: float
    """The same by their letters alone."""


def place_like(statement: str, new: str) -> Place | None:
    """The words of a statement that are most like a value; None where none is, or several are alike."""
    if not informative_terms(new) or new.casefold() in statement.casefold():
        return None
    found = sorted(
        _scored(statement, new), key=lambda place: (-place.score, abs(place.end - place.start - len(new)))
    )
    if not found:
        return None
    best = found[0]
    others = [each for each in found[1:] if each.end <= best.start or each.start >= best.end]
    return best if not others or best.score - others[0].score >= _STANDS_OUT else None


def _scored(statement: str, new: str) -> Iterator[Place]:
    wanted = _vector(new)
    for start, end in _spans(statement, new):
        old = statement[start:end]
        if old.casefold() in new.casefold():
            continue
        spelling = _spelled_alike(old, new)
        meaning = float(wanted @ _vector(old)) if wanted.any() else 0.0
        if spelling >= _ALIKE_IN_SPELLING or meaning >= _ALIKE_IN_MEANING:
            yield Place(start, end, max(spelling, meaning), spelling)


def _spans(statement: str, new: str) -> Iterator[tuple[int, int]]:
    if new.isascii():
        words = [found.span() for found in _WORD.finditer(statement)]
        for at, (start, _) in enumerate(words):
            for _, end in words[at : at + _MOST_WORDS]:
                run = statement[start:end]
                if re.search(r"[^\w\s'’-]", run) or any(word.casefold() in _LINKS for word in run.split()):
                    break
                yield start, end
        return
    folded = simplified(statement)
    if len(folded) != len(statement):
        return
    spans = {
        found.span()
        for term in informative_terms(folded)
        if len(term) >= _SHORTEST
        for found in re.finditer(re.escape(term), folded)
    }
    # A name may be cut into characters.
    is_short = _SHORTEST <= len(new) <= _LONGEST_NAME
    windows = {(at, at + len(new)) for at in range(len(folded) - len(new) + 1)} if is_short else set()
    alike = {span for span in windows if _spelled_alike(folded[slice(*span)], new) >= _ALIKE_IN_SPELLING}
    yield from sorted(spans | alike)


def _spelled_alike(old: str, new: str) -> float:
    """How far two words of about the same length share their letters in order; what is the same says nothing."""
    one, other = simplified(old).casefold(), simplified(new).casefold()
    if not one.isascii() and len(one) == len(other):
        return sum(a == b for a, b in zip(one, other, strict=True)) / len(one) + 0.1
    if min(len(one), len(other)) <= _MOST_WORDS or one[0] != other[0]:
        return 0.0
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _vector(text: str) -> Vector:
    """The weighted mean of the vectors of a text's words, of unit length; zero where none is known."""
    vectors = word_vectors()
    known: Sequence[str] = sorted(set(terms(text)))
    rows = vectors.rows(known)
    rows = rows[rows >= 0]
    if not len(rows):
        return np.zeros(128, dtype=np.float32)
    mean = (vectors.at(rows) * vectors.weights_at(rows)[:, np.newaxis]).sum(axis=0)
    length = float(np.sqrt(mean @ mean))
    return cast(Vector, mean / length if length else mean)
