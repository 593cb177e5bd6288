"""Select the ranked units to show: by episode, and for a prompt only those that are likely, new and fit in.

A question is never shown without its answer, nor an answer of the assistant without its question.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from services.search.hits import Excluded, Ranked, Ranking

SHOWN_IN_WINDOW = "shown in the window"
BELOW_FLOOR = "not likely enough"
FAR_BEHIND = "far behind the best"
ASKS_THE_SAME = "asks the same"
STATES_NOTHING = "asks or orders something and states nothing"
OVER_BUDGET = "over the budget"

_LIKELY = 0.1
"""Probability from which a unit is shown: chosen so that half of what is shown, and more, bears on the message."""
_LIKELY_FOR_NOBODY = 0.2
"""The same where the message wants something done or explained, and says nothing of its user."""
_LIKELY_OF_THE_PAST = 0.05
"""The same where the message refers to what was said before."""
_BESIDE_ANOTHER = 0.7
"""Share of these probabilities that a further item needs once one is shown: nothing is shown less often for it."""
_CLOSE = 0.25
"""Share of the best one's probability that each further item must have."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """An episode at its best unit's place, with those of its units that were found, in the order of saying."""

    episode_id: str
    best: Ranked
    units: tuple[Ranked, ...]


@dataclass(frozen=True, slots=True)
class Floor:
    """From where on units are shown at all: those whose `likelihood`, or whose `cosine`, reaches this.

    No cosine is given where the embedding is not good enough for the language to be believed.
    """

    likelihood: float = _LIKELY
    cosine: float | None = None
    then: tuple[datetime, datetime] | None = None
    """The time that the message refers to: where nothing is likely, what was said in it is shown."""

    @classmethod
    def of(
        cls,
        *,
        about_past: bool = False,
        of_nobody: bool = False,
        cosine: float | None = None,
        then: tuple[datetime, datetime] | None = None,
    ) -> "Floor":
        """The floor for a message.

        Args:
            about_past: it refers to what was said before.
            of_nobody: it wants something done or explained, and says nothing of its user.
            cosine: what the embedding's probe found for the language.
            then: from when until when something was said that it refers to.
        """
        likely = _LIKELY_FOR_NOBODY if of_nobody else _LIKELY
        return cls(_LIKELY_OF_THE_PAST if about_past else likely, cosine, then)

    def admits(self, ranked: Ranked) -> bool:
        """Whether the unit is shown by itself."""
        return ranked.likelihood >= self.likelihood or self._is_near(ranked)

    def admits_beside_another(self, ranked: Ranked) -> bool:
        """Whether the unit is shown where another one is shown by itself."""
        least = min(self.likelihood, max(_BESIDE_ANOTHER * self.likelihood, _LIKELY_OF_THE_PAST))
        return ranked.likelihood >= least or self._is_near(ranked)

    def _is_near(self, ranked: Ranked) -> bool:
        return self.cosine is not None and ranked.cosine is not None and ranked.cosine >= self.cosine

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


def likeliest(ranking: Ranking, depth: int) -> tuple[Ranked, ...]:
    """The first of the results by their likelihood; of equal ones the better placed is first."""
    return tuple(sorted(ranking.results, key=lambda ranked: (-ranked.likelihood, ranked.position))[:depth])


def select(
    ranking: Ranking,
    *,
    floor: Floor,
    shown: Collection[str],
    count_tokens: Callable[[str], int],
    max_items: int = 5,
    max_tokens: int = 300,
    depth: int = 20,
) -> Selection:
    """Choose episodes for a prompt.

    Left out, each with its reason, are units whose message is among those `shown` (ids), what repeats a better
    unit or only asks, what the floor does not admit, and what is far behind the best; of an episode that does not
    fit into `max_tokens` its best unit may still fit. Only the `depth` likeliest units are considered.
    """
    excluded: list[Excluded] = []
    fit: list[Ranked] = []
    considered = [(ranked, _unfit(ranked, shown)) for ranked in likeliest(ranking, depth)]
    relevant = any(floor.admits(ranked) for ranked, unfit in considered if unfit is None)
    for ranked, unfit in considered:
        admitted = floor.admits_beside_another(ranked) if relevant else floor.admits_by_time(ranked)
        reason = unfit or (None if admitted else BELOW_FLOOR)
        if reason:
            excluded.append(Excluded(ranked.unit.id, reason))
        else:
            fit.append(ranked)
    chosen: list[Recalled] = []
    left = max_tokens
    ordered = _gathered(_in_order(fit))
    for recalled in ordered:
        if chosen and recalled.best.likelihood < _CLOSE * ordered[0].best.likelihood:
            excluded.extend(Excluded(ranked.unit.id, FAR_BEHIND) for ranked in recalled.units)
            continue
        if written := _written_as_memory(recalled, chosen):
            excluded.extend(Excluded(ranked.unit.id, f"in the memory {written}") for ranked in recalled.units)
            continue
        fitting = _fitting(recalled, left, count_tokens) if len(chosen) < max_items else None
        kept = fitting.units if fitting else ()
        excluded.extend(Excluded(ranked.unit.id, OVER_BUDGET) for ranked in recalled.units if ranked not in kept)
        if fitting:
            chosen.append(fitting)
            left -= sum(count_tokens(ranked.unit.text) for ranked in fitting.units)
    return Selection(tuple(chosen), tuple(excluded))


def _unfit(ranked: Ranked, shown: Collection[str]) -> str | None:
    unit = ranked.unit
    if unit.message_id in shown:
        return SHOWN_IN_WINDOW
    if ranked.echo:
        return ASKS_THE_SAME
    if ranked.duplicate_of:
        return f"near duplicate of {ranked.duplicate_of}"
    if unit.message_id and not unit.by_assistant and "states" not in unit.features:
        return STATES_NOTHING
    return None


def _in_order(fit: Sequence[Ranked]) -> list[Ranked]:
    """By their likelihood; an older version of a fact stands behind the newer one."""
    worth = {ranked.unit.id: ranked.likelihood for ranked in fit}
    for ranked in fit:
        if ranked.version_of in worth:
            newer, older = worth[ranked.version_of], worth[ranked.unit.id]
            worth[ranked.version_of], worth[ranked.unit.id] = max(newer, older), min(newer, older)
    behind = {ranked.unit.id: ranked.version_of in worth for ranked in fit}
    return sorted(fit, key=lambda ranked: (-worth[ranked.unit.id], behind[ranked.unit.id], ranked.position))


def _written_as_memory(recalled: Recalled, chosen: Sequence[Recalled]) -> str | None:
    """The memory among those chosen that was written from what the episode says."""
    said = {ranked.unit.message_id for ranked in recalled.units}
    return next((other.best.unit.id for other in chosen if said <= other.best.unit.sources), None)


def _gathered(results: Sequence[Ranked]) -> tuple[Recalled, ...]:
    episodes: defaultdict[str, list[Ranked]] = defaultdict(list)
    for ranked in results:
        episodes[ranked.unit.episode_id].append(ranked)
    return tuple(
        Recalled(episode, units[0], tuple(sorted(units, key=lambda ranked: ranked.unit.created_at)))
        for episode, units in episodes.items()
    )


def _fitting(recalled: Recalled, tokens: int, count_tokens: Callable[[str], int]) -> Recalled | None:
    if sum(count_tokens(ranked.unit.text) for ranked in recalled.units) <= tokens:
        return recalled
    if count_tokens(recalled.best.unit.text) <= tokens:
        return Recalled(recalled.episode_id, recalled.best, (recalled.best,))
    return None
