"""Select the ranked units to show: of several versions the newest, and for a prompt what is likely and new.

"The meeting room is on floor two" and "The meeting room is on floor five" have the same words around one place in
which they differ. What is asked for decides which place that may be: whatever a question names is what both are
about, and not where they differ.
"""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from services.search.hits import Excluded, Ranked, Ranking, Unit
from services.search.queries import MessageKind, Query
from services.text.caches import text_cache
from services.text.language import folded
from services.text.tokenizer import terms

SHOWN_IN_WINDOW = "shown in the window"
BELOW_FLOOR = "not likely enough"
STATES_NOTHING = "asks or orders something and states nothing"
OVER_BUDGET = "over the budget"

LIKELY = 0.01
"""The least probability of anything shown: a model copes with a line too many, not with a missing one."""
CLOSE = 0.05
"""Share of the best one's probability that each further item must have."""
_FIRST, _LIKELY_BEHIND = 4, 0.02
"""Units behind which each must have this probability, however few units the user has."""
_BEST, _STEEPNESS, _HIGHEST = 0.02, 4.5, 0.6
"""The probability that the best must have where it is even whether the message needs memory, the power of the odds
that it needs nothing with which that grows, and its most."""
_UNKNOWN = 0.03
"""Least probability where no head tells what the message needs."""
_LIKELY_FOR_WORK, _IS_CHOICE = 0.2, 0.5
"""Least probability where the words order work and leave no choice for a preference; least choice."""
_LIKELY_OF_THE_ASSISTANT = 0.02
"""Probability at most where the message asks about what the assistant said."""

Covers = Callable[[Unit, Sequence[Unit]], bool]

_TOKEN = re.compile(r"[a-z0-9]+(?:[.'-][a-z0-9]+)*|[\u3400-\u9fff]")
_MOST_TOKENS = 60
_LONGEST = 1_000
"""Characters of a text that may have so few tokens."""
_SHARED = 0.5
"""Share of the longer statement's words that both have in common around the place where they differ."""
_MOST_DIFFERENT = 14
_LEAST_SHARED, _AT_ONE_END = 3, 2


@dataclass(frozen=True, slots=True)
class Recalled:
    """An episode at its best unit's place, with those of its units that were found, in the order of saying."""

    episode_id: str
    best: Ranked
    units: tuple[Ranked, ...]


@dataclass(frozen=True, slots=True)
class Floor:
    """The probability that the best must have for anything to be shown. Where nothing has it, what was said at
    the time referred to is shown."""

    likelihood: float = _UNKNOWN
    then: tuple[datetime, datetime] | None = None

    @classmethod
    def of(
        cls,
        query: Query,
        *,
        about_past: bool = False,
        kind: MessageKind | None = None,
        then: tuple[datetime, datetime] | None = None,
    ) -> "Floor":
        """Return the floor for a message.

        Args:
            query: the message.
            about_past: it refers to what was said before.
            kind: what it is like, if anything tells.
            then: from when until when something was said that it refers to.
        """
        kind = kind or MessageKind()
        if about_past:
            return cls(LIKELY, then)
        odds = kind.nothing / max(1 - kind.nothing, 1e-9)
        needed = _UNKNOWN if kind == MessageKind() else _BEST * odds**_STEEPNESS
        least = _LIKELY_FOR_WORK if query.wants_work and kind.choice < _IS_CHOICE else LIKELY
        most = _LIKELY_OF_THE_ASSISTANT if query.asks and query.of_assistant else _HIGHEST
        return cls(min(max(needed, least), most), then)

    def of_each(self, best: float, place: int = 0) -> float:
        """Return the least probability of what stands at a place (from 0); infinite where nothing is likely."""
        least = _LIKELY_BEHIND if place >= _FIRST else LIKELY
        return max(least, CLOSE * best) if best >= self.likelihood else math.inf

    def admits_by_time(self, ranked: Ranked) -> bool:
        """Whether the unit was said in the time that the message refers to."""
        return self.then is not None and self.then[0] <= ranked.unit.created_at < self.then[1]


@dataclass(frozen=True, slots=True)
class Selection:
    """Units for a prompt, best first, and for every other one the reason why it is left out."""

    recalled: tuple[Recalled, ...]
    excluded: tuple[Excluded, ...]


def by_episode(ranking: Ranking, depth: int = 20) -> tuple[Recalled, ...]:
    """The first `depth` units gathered into their episodes, each episode once, at its best unit's place."""
    return _gathered(ranking.results[:depth])


def newest_first(results: Sequence[Ranked], asked: Collection[str]) -> tuple[Ranked, ...]:
    """Let the newest of several versions of a fact change places with the best of them.

    Args:
        results: the best of a ranking, in the order of their positions.
        asked: the terms of the message.
    """
    order = list(range(len(results)))
    ordered = list(results)
    sharing = [place for place, ranked in enumerate(results) if ranked.words > 0]  # versions share terms with it
    for older, newer in newer_versions([results[place].unit for place in sharing], asked).items():
        at, other = order.index(sharing[older]), order.index(sharing[newer])
        if at < other:
            order[at], order[other] = order[other], order[at]
            old, new = ordered[at], ordered[other]
            likelihood = max(old.likelihood, new.likelihood)
            ordered[at] = new._replace(position=at + 1, score=old.score, likelihood=likelihood)
            ordered[other] = old._replace(position=other + 1, score=new.score)
    return tuple(ordered)


def select(
    ranking: Ranking,
    *,
    floor: Floor,
    shown: Collection[str],
    covers: Covers,
    count_tokens: Callable[[Recalled], int],
    best_known: float = 0.0,
    max_items: int = 8,
    max_tokens: int = 600,
    depth: int = 20,
) -> Selection:
    """Choose episodes for a prompt from the best `depth` units, and order them by their likelihood.

    Left out, each with its reason, are units whose message is among those `shown` (ids), what better units say,
    what the user only asked or ordered, what is not likely, and messages that say nothing beside the memories that
    were written from them. `covers` tells whether units say all that one says; `count_tokens` counts an episode as
    it is shown; `best_known` is the highest probability of what the prompt says already.
    """
    excluded: list[Excluded] = []
    best = ranking.results[:depth]
    unfit = [_unfit(ranked.unit, shown) for ranked in best]
    highest = max(
        best_known, *(each.likelihood for each, reason in zip(best, unfit, strict=True) if not reason), 0
    )
    least = floor.of_each(highest)
    memories = [ranked.unit for ranked in best if ranked.likelihood >= least and ranked.unit.sources]
    fit: list[Ranked] = []
    for ranked, about in zip(best, unfit, strict=True):
        enough = floor.of_each(highest, len(fit))
        # Behind the best, that there are few units makes none of them likely.
        speaks = ranked.spoken_for or ranked.likelihood >= highest
        admitted = (ranked.likelihood >= enough and speaks) or (math.isinf(least) and floor.admits_by_time(ranked))
        reason = about or (None if admitted else BELOW_FLOOR)
        reason = reason or _said_by(ranked.unit, [each.unit for each in fit], memories, covers)
        if reason:
            excluded.append(Excluded(ranked.unit.id, reason))
        else:
            fit.append(ranked)
    chosen: list[Recalled] = []
    left = max_tokens
    for recalled in _gathered(fit):
        kept, tokens = _fitting(recalled, left, count_tokens) if len(chosen) < max_items else ((), 0)
        excluded.extend(Excluded(ranked.unit.id, OVER_BUDGET) for ranked in recalled.units if ranked not in kept)
        if kept:
            chosen.append(Recalled(recalled.episode_id, recalled.best, kept))
            left -= tokens
    chosen.sort(key=lambda recalled: -recalled.best.likelihood)
    return Selection(tuple(chosen), tuple(excluded))


def _said_by(unit: Unit, better: Sequence[Unit], memories: Sequence[Unit], covers: Covers) -> str | None:
    """Return which of the units that are shown says all that one says, as a reason to leave it out."""
    for other in better:
        newer = other.created_at >= unit.created_at  # a newer unit may change what an older one says
        says = newer and not (other.by_assistant or unit.by_assistant) and covers(unit, [other])
        if says or folded(other.text) == folded(unit.text):
            return f"repeats {other.id}"
    own = next((memory for memory in memories if unit.message_id in memory.sources), None)
    return f"in the memory {own.id}" if own is not None and covers(unit, memories) else None


def _unfit(unit: Unit, shown: Collection[str]) -> str | None:
    if unit.message_id in shown:
        return SHOWN_IN_WINDOW
    return STATES_NOTHING if unit.message_id and not unit.states else None


def _gathered(results: Sequence[Ranked]) -> tuple[Recalled, ...]:
    episodes: defaultdict[str, list[Ranked]] = defaultdict(list)
    for ranked in results:
        episodes[ranked.unit.episode_id].append(ranked)
    return tuple(
        Recalled(episode, units[0], tuple(sorted(units, key=lambda ranked: ranked.unit.created_at)))
        for episode, units in episodes.items()
    )


def _fitting(
    recalled: Recalled, most: int, count_tokens: Callable[[Recalled], int]
) -> tuple[tuple[Ranked, ...], int]:
    """The units of an episode that fit in, all or the best, and their tokens."""
    for units in (recalled.units, (recalled.best,)):
        tokens = count_tokens(replace(recalled, units=units))
        if tokens <= most:
            return units, tokens
    return (), 0


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
