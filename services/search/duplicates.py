"""Finds units that duplicate a better one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.search.hits import Unit
from services.text.caches import text_cache
from services.text.lexical import words

Words = NDArray[np.int64]
"""The distinct words of a text as hashes, in order; an odd one turns the meaning of a text that lacks it."""

_COMPARED = 50
"""Units compared with each other, which is quadratic; nobody looks at those that follow."""
_USUAL = 2_000
"""Characters of a text whose words are kept."""
_NEGATIONS = frozenset(["not", "no", "never", "nobody", "nothing", "none", "without", "nor"])
_CHINESE_NEGATIONS = frozenset("不没沒别別未无無非")


def duplicates(units: Sequence[Unit], overlap: float) -> dict[str, str]:
    """For each unit among the first 50 that duplicates a better one: the id of that one.

    The hard case of maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): what overlaps less
    than nearly fully keeps its place, since two memories on one subject may both be asked for. Texts that
    differ by a number or a negation are never duplicates.
    """
    compared = units[:_COMPARED]
    same = _same([_words(unit.text) for unit in compared], overlap)
    repeated: dict[str, str] = {}
    for place, better in np.argwhere(np.tril(same, -1)).tolist():
        its, other = compared[place].id, compared[better].id
        if its not in repeated and other not in repeated:
            repeated[its] = other
    return repeated


def are_duplicates(one: str, other: str, overlap: float = 0.9) -> bool:
    """Whether two texts mean the same, so that one of two memories is enough."""
    return bool(_same([_words(one), _words(other)], overlap)[0, 1])


def _words(text: str) -> Words:
    return _kept_words(text) if len(text) <= _USUAL else _hashed(text)


@text_cache(2_048)
def _kept_words(text: str) -> Words:
    # Messages on one subject recall the same units.
    return _hashed(text)


def _hashed(text: str) -> Words:
    return np.array(sorted({hash(word) & ~1 | _turns_the_meaning(word) for word in words(text)}), dtype=np.int64)


def _same(said: Sequence[Words], overlap: float) -> NDArray[np.bool_]:
    """Compare each text with each; two mean the same if they share at least this part of all their words, and no
    word that reverses the meaning is in only one of them. A text without words is like no other."""
    every, columns = np.unique(np.concatenate(said) if said else np.zeros(0, np.int64), return_inverse=True)
    sizes = np.array([len(its) for its in said], dtype=np.intp)
    held = np.zeros((len(said), len(every)), dtype=np.bool_)
    held[np.repeat(np.arange(len(said)), sizes), columns] = True
    common = _in_common(held)
    turning = held[:, (every & 1).astype(np.bool_)]
    turns = turning.sum(axis=1)
    shared = _in_common(turning)
    found: NDArray[np.bool_] = (common >= overlap * (sizes[:, np.newaxis] + sizes - common)) & (common > 0)
    found &= (shared == turns) & (shared == turns[:, np.newaxis])
    return found


def _in_common(held: NDArray[np.bool_]) -> NDArray[np.intp]:
    """How many columns two rows both hold, each with each."""
    bits = np.packbits(held, axis=1)
    found: NDArray[np.intp] = np.bitwise_count(bits[:, np.newaxis] & bits).sum(axis=2, dtype=np.intp)
    return found


def _turns_the_meaning(word: str) -> bool:
    return (
        any(character.isdigit() for character in word)
        or word in _NEGATIONS
        or word.endswith("n't")
        or not _CHINESE_NEGATIONS.isdisjoint(word)
    )
