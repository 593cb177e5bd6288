"""Which of the units found are duplicates of a better one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.search.hits import Unit
from services.text.caches import text_cache
from services.text.lexical import words

# Beyond these nobody looks, and comparing is quadratic.
_COMPARED = 50
_SHORT = 200
"""Characters of a text whose words are remembered: the set of a longer one takes tens of kilobytes."""
_NEGATIONS = frozenset(["not", "no", "never", "nobody", "nothing", "none", "without", "nor"])
_CHINESE_NEGATIONS = frozenset("不没沒别別未无無非")


def duplicates(units: Sequence[Unit], overlap: float) -> dict[str, str]:
    """For each unit among the first 50 that duplicates a better one: the id of that one.

    The hard case of maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): what overlaps less
    than nearly fully keeps its place, since two memories on one subject may both be asked for. Texts that
    differ by a number or a negation are never duplicates.
    """
    compared = units[:_COMPARED]
    said = [_words(unit.text) for unit in compared]
    alike = _alike(said, overlap)
    repeated: dict[str, str] = {}
    for place, unit in enumerate(compared):
        for better in alike[place, :place].nonzero()[0].tolist():
            other = compared[better].id
            if other not in repeated and not any(map(_turns_the_meaning, said[place] ^ said[better])):
                repeated[unit.id] = other
                break
    return repeated


def _words(text: str) -> frozenset[str]:
    return _remembered_words(text) if len(text) <= _SHORT else frozenset(words(text))


@text_cache(512)
def _remembered_words(text: str) -> frozenset[str]:
    # Messages on one subject recall the same units.
    return frozenset(words(text))


def _alike(said: Sequence[frozenset[str]], overlap: float) -> NDArray[np.bool_]:
    """Which texts have so large a share of all their words in common, each with each; none without words."""
    columns = {word: at for at, word in enumerate(frozenset().union(*said))}
    held = np.zeros((len(said), len(columns)), dtype=np.bool_)
    for place, its in enumerate(said):
        held[place, [columns[word] for word in its]] = True
    bits = np.packbits(held, axis=1)
    common = np.bitwise_count(bits[:, np.newaxis] & bits).sum(axis=2, dtype=np.intp)
    sizes = held.sum(axis=1)
    found: NDArray[np.bool_] = (common >= overlap * (sizes[:, np.newaxis] + sizes - common)) & (common > 0)
    return found


def are_duplicates(one: str, other: str, overlap: float = 0.9) -> bool:
    """Whether two texts mean the same, so that one of two memories is enough."""
    its, others = _words(one), _words(other)
    alike = bool(its) and len(its & others) >= overlap * len(its | others)
    return alike and not any(map(_turns_the_meaning, its ^ others))


def _turns_the_meaning(word: str) -> bool:
    return (
        any(character.isdigit() for character in word)
        or word in _NEGATIONS
        or word.endswith("n't")
        or not _CHINESE_NEGATIONS.isdisjoint(word)
    )
