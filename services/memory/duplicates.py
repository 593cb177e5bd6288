"""Which of the units found say the same as a better one."""

from collections.abc import Sequence

from services.llm.lexical import words
from services.memory.hits import Unit

# Beyond these nobody looks, and comparing is quadratic.
_COMPARED = 50
_NEGATIONS = frozenset(["not", "no", "never", "nobody", "nothing", "none", "without", "nor"])
_CHINESE_NEGATIONS = frozenset("不没沒别別未无無非")


def duplicates(units: Sequence[Unit], overlap: float) -> dict[str, str]:
    """For each unit among the first 50 that says the same as a better one: the id of that one.

    The hard case of maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): what overlaps less
    than nearly fully keeps its place, since two memories on one subject may both be asked for. Texts that
    differ by a number or a negation never say the same.
    """
    kept: list[tuple[Unit, frozenset[str]]] = []
    repeated: dict[str, str] = {}
    for unit in units[:_COMPARED]:
        said = frozenset(words(unit.text))
        original = next((other.id for other, its in kept if said and _same(said, its, overlap)), None)
        if original is None:
            kept.append((unit, said))
        else:
            repeated[unit.id] = original
    return repeated


def say_the_same(one: str, other: str, overlap: float = 0.9) -> bool:
    """Whether two texts say the same, as of two memories one is enough."""
    its, others = frozenset(words(one)), frozenset(words(other))
    return bool(its) and _same(its, others, overlap)


def _same(one: frozenset[str], other: frozenset[str], overlap: float) -> bool:
    if min(len(one), len(other)) < overlap * max(len(one), len(other)):
        return False
    if len(one & other) < overlap * len(one | other):
        return False
    return not any(_turns_the_meaning(word) for word in one ^ other)


def _turns_the_meaning(word: str) -> bool:
    return (
        any(character.isdigit() for character in word)
        or word in _NEGATIONS
        or word.endswith("n't")
        or not _CHINESE_NEGATIONS.isdisjoint(word)
    )
