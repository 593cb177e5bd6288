"""Select the ranked units to show: by episode, and for a prompt only those that are likely, new and fit in."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from services.search.heads import MessageKind
from services.search.hits import Excluded, Ranked, Ranking, Unit
from services.search.queries import Query
from services.search.versions import newer_versions
from services.text.compare import folded

SHOWN_IN_WINDOW = "shown in the window"
BELOW_FLOOR = "not likely enough"
STATES_NOTHING = "asks or orders something and states nothing"
OVER_BUDGET = "over the budget"

LIKELY, _LIKELY_FOR_WORK, _LIKELY_FOR_NOTHING = 0.03, 0.2, 0.35
"""Probability from which a unit is shown, where the message orders work and says nothing of its user, and
where it needs nothing of memory. A model
copes with a line too many, not with a missing one."""
CLOSE = 0.05
"""Share of the best one's probability that each further item must have."""
_LIKELY_OF_THE_PAST, _LIKELY_OF_ONESELF, _LIKELY_FOR_A_CHOICE = 0.01, 0.025, 0.01
"""The floor where the message refers to what was said before, where it asks about the user's own affairs or about
what the assistant said, and where it leaves a choice on which a preference may bear."""
_IS_CHOICE, _IS_NOTHING = 0.5, 0.65


@dataclass(frozen=True, slots=True)
class Recalled:
    """An episode at its best unit's place, with those of its units that were found, in the order of saying."""

    episode_id: str
    best: Ranked
    units: tuple[Ranked, ...]


@dataclass(frozen=True, slots=True)
class Floor:
    """The probability from which units are shown; where none reaches it, those of the time referred to are."""

    likelihood: float = LIKELY
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
        if about_past:
            return cls(_LIKELY_OF_THE_PAST, then)
        if kind and kind.choice >= _IS_CHOICE:
            return cls(_LIKELY_FOR_A_CHOICE, then)
        if kind and kind.nothing >= _IS_NOTHING:
            return cls(_LIKELY_FOR_NOTHING, then)
        if query.wants_work:
            return cls(_LIKELY_FOR_WORK, then)
        of_both = query.of_oneself or query.of_assistant
        return cls(_LIKELY_OF_ONESELF if query.asks and of_both else LIKELY, then)

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
    count_tokens: Callable[[str], int],
    max_items: int = 8,
    max_tokens: int = 600,
    depth: int = 20,
) -> Selection:
    """Choose episodes for a prompt from the best `depth` units.

    Left out, each with its reason, are units whose message is among those `shown` (ids), what repeats a better
    unit, what the user only asked or ordered, what is not likely, and the messages of a memory that is shown.
    """
    excluded: list[Excluded] = []
    fit: list[Ranked] = []
    best = ranking.results[:depth]
    covered = {
        source: ranked
        for ranked in best
        if ranked.likelihood >= floor.likelihood
        for source in ranked.unit.sources
    }
    unfit = [_unfit(ranked.unit, shown) for ranked in best]
    highest = max((each.likelihood for each, reason in zip(best, unfit, strict=True) if not reason), default=0.0)
    least = max(floor.likelihood, CLOSE * highest)
    better: dict[str, str] = {}
    for ranked, about in zip(best, unfit, strict=True):
        unit = ranked.unit
        admitted = ranked.likelihood >= least if highest >= floor.likelihood else floor.admits_by_time(ranked)
        reason = about or (None if admitted else BELOW_FLOOR)
        if reason is None and (same := better.get(folded(unit.text))) is not None:
            reason = f"repeats {same}"
        if reason is None and (memory := covered.get(unit.message_id or "")) is not None:
            reason = f"in the memory {memory.unit.id}"
        if reason:
            excluded.append(Excluded(unit.id, reason))
        else:
            better[folded(unit.text)] = unit.id
            fit.append(ranked)
    chosen: list[Recalled] = []
    left = max_tokens
    for recalled in _gathered(fit):
        kept, tokens = _fitting(recalled, left, count_tokens) if len(chosen) < max_items else ((), 0)
        excluded.extend(Excluded(ranked.unit.id, OVER_BUDGET) for ranked in recalled.units if ranked not in kept)
        if kept:
            chosen.append(Recalled(recalled.episode_id, recalled.best, kept))
            left -= tokens
    return Selection(tuple(chosen), tuple(excluded))


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


def _fitting(recalled: Recalled, most: int, count_tokens: Callable[[str], int]) -> tuple[tuple[Ranked, ...], int]:
    """The units of an episode that fit in, all or the best, and their tokens."""
    for units in (recalled.units, (recalled.best,)):
        tokens = sum(count_tokens(ranked.unit.text) for ranked in units)
        if tokens <= most:
            return units, tokens
    return (), 0
