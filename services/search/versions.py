"""Statements that give the same thing another value: of these the newer holds.

"The meeting room is on floor two" and "The meeting room is on floor five" have the same words around one place in
which they differ. What is asked for decides which place that may be: whatever a question names is what both are
about, and not where they differ.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

from services.search.hits import Unit
from services.text.caches import text_cache
from services.text.tokenizer import terms

_TOKEN = re.compile(r"[a-z0-9]+(?:[.'-][a-z0-9]+)*|[\u3400-\u9fff]")
_MOST_TOKENS = 60
_LONGEST = 1_000
"""Characters of a text that may have so few tokens."""
_SHARED = 0.5
"""Share of the longer statement's words that both have in common around the place where they differ."""
_MOST_DIFFERENT = 14
_LEAST_SHARED, _AT_ONE_END = 3, 2


def newer_versions(units: Sequence[Unit], asked: Collection[str]) -> dict[int, int]:
    """For each unit with a newer version among the units: the place of the newest one.

    Args:
        units: the best of a ranking.
        asked: the terms of the question.
    """
    wanted = frozenset(asked)
    written: dict[int, tuple[str, ...]] = {}
    # Two versions share words at one end: at least half of the fewest that versions may share.
    alike: defaultdict[tuple[bool, Sequence[str]], list[int]] = defaultdict(list)
    beside: dict[int, tuple[list[int], list[int]]] = {}
    for place, unit in enumerate(units):
        if not unit.by_assistant and len(tokens := _tokens(unit.text)) > _LEAST_SHARED:
            written[place] = tokens
            beside[place] = alike[True, tokens[:_AT_ONE_END]], alike[False, tokens[-_AT_ONE_END:]]
            for places in beside[place]:
                places.append(place)
    newest: dict[int, int] = {}
    for place, (begins, ends) in beside.items():
        if len(begins) == len(ends) == 1:
            continue
        versions = [
            other
            for other in {*begins, *ends}
            if units[other].created_at > units[place].created_at
            and _differ_in_one_place(written[place], written[other], wanted)
            # Last: most differ anyway, and terms take longest.
            and not wanted.isdisjoint(terms(units[place].text))
            and not wanted.isdisjoint(terms(units[other].text))
        ]
        if versions:
            newest[place] = max(versions, key=lambda at: _when(units[at]))
    return newest


def _when(unit: Unit) -> tuple[datetime, str]:
    return unit.created_at, unit.id


@text_cache(512)
def _tokens(text: str) -> tuple[str, ...]:
    # Messages on one subject recall the same units.
    if len(text) > _LONGEST:
        return ()
    found = _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())
    return tuple(found) if len(found) <= _MOST_TOKENS else ()


def _differ_in_one_place(one: Sequence[str], other: Sequence[str], asked: frozenset[str]) -> bool:
    if one == other:
        return False
    shortest = min(len(one), len(other))
    begins = ends = 0
    while begins < shortest and one[begins] == other[begins]:
        begins += 1
    while ends < shortest - begins and one[-1 - ends] == other[-1 - ends]:
        ends += 1
    mine, theirs = one[begins : len(one) - ends], other[begins : len(other) - ends]
    if not mine or not theirs or max(len(mine), len(theirs)) > _MOST_DIFFERENT:
        return False
    if begins + ends < max(_LEAST_SHARED, _SHARED * max(len(one), len(other)) - 1):
        return False
    named = asked.intersection([*terms(" ".join(mine)), *terms(" ".join(theirs))])
    return not named or named.issubset([*terms(" ".join(one[:begins])), *terms(" ".join(one[len(one) - ends :]))])
