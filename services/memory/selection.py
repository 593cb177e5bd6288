"""Which of the ranked units are shown: by episode, and for a prompt only what is relevant, new and fits."""

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from services.llm.language import Language
from services.memory.hits import Excluded, Ranked, Ranking

SHOWN_IN_WINDOW = "shown in the window"
BELOW_FLOOR = "below the floor"
ASKS_THE_SAME = "asks the same"
OVER_BUDGET = "over the budget"

# A general question in passing shares a word with something that was said: it takes more to open the memory
# than one about the user. Chinese is cut into words differently from text to text, so fewer can recur.
_OPENS: dict[Language, float] = {"en": 0.42, "zh": 0.31}
_OPENS_FOR_OWN: dict[Language, float] = {"en": 0.25, "zh": 0.2}
# Where meaning is compared, it finds what words do not: by words alone nearly all has to be there, and what
# only follows is judged by more, too.
_OPENS_BESIDE_MEANING = 0.6
_FOLLOWS = 0.1
_FOLLOWS_BESIDE_MEANING = 0.3
_TIED = 0.3


@dataclass(frozen=True, slots=True)
class Recalled:
    """An episode at its best unit's place, with those of its units that were found, in the order of saying."""

    episode_id: str
    best: Ranked
    units: tuple[Ranked, ...]


@dataclass(frozen=True, slots=True)
class Floor:
    """When units are relevant at all.

    A unit is whose `coverage` of a query or `cosine` to one reaches this; no cosine is given where the
    embedding is not good enough for the language to be believed. Where there is such a unit, the memory is
    what is asked about, and less admits the others: a coverage of `follows`, or being `tied` to the best.
    """

    coverage: float
    cosine: float | None = None
    follows: float = 1.0
    tied: float | None = None

    @classmethod
    def of(cls, language: Language, cosine: float | None = None, *, own: bool = False) -> "Floor":
        """The floor for a question.

        Args:
            language: that of the question.
            cosine: what the embedding's probe found for the language.
            own: the question is about the user's own affairs.
        """
        if cosine is not None:
            opens = _OPENS_FOR_OWN[language] if own else _OPENS_BESIDE_MEANING
            return cls(opens, cosine, _FOLLOWS_BESIDE_MEANING)
        return cls(_OPENS_FOR_OWN[language] if own else _OPENS[language], None, _FOLLOWS, _TIED)

    def admits(self, ranked: Ranked) -> bool:
        """Whether the unit is relevant by itself."""
        if ranked.echo:
            return False
        if ranked.coverage >= self.coverage:
            return True
        return self.cosine is not None and ranked.cosine is not None and ranked.cosine >= self.cosine

    def admits_beside(self, ranked: Ranked) -> bool:
        """Whether the unit is relevant where another one is by itself."""
        if self.admits(ranked) or ranked.coverage >= self.follows:
            return True
        return self.tied is not None and ranked.tied >= self.tied


@dataclass(frozen=True, slots=True)
class Selection:
    """What goes into a prompt, best first, and why everything else does not."""

    recalled: tuple[Recalled, ...]
    excluded: tuple[Excluded, ...]


def by_episode(ranking: Ranking, depth: int = 20) -> tuple[Recalled, ...]:
    """The first `depth` units gathered into their episodes, each episode once, at its best unit's place."""
    return _gathered(ranking.results[:depth])


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

    Left out, each with its reason, are units whose message is among those `shown` (ids), what repeats a
    better unit, and what the floor does not admit; of an episode that does not fit into `max_tokens`
    its best unit may still fit. What lies beyond `depth` units is not considered.
    """
    excluded: list[Excluded] = []
    candidates: list[Ranked] = []
    considered = ranking.results[:depth]
    opened = any(floor.admits(ranked) for ranked in considered)
    for ranked in considered:
        reason = _unfit(ranked, shown) or (None if opened and floor.admits_beside(ranked) else BELOW_FLOOR)
        if reason:
            excluded.append(Excluded(ranked.unit.id, reason))
        else:
            candidates.append(ranked)
    chosen: list[Recalled] = []
    left = max_tokens
    for recalled in _gathered(candidates):
        fitting = _fitting(recalled, left, count_tokens) if len(chosen) < max_items else None
        kept = fitting.units if fitting else ()
        excluded.extend(Excluded(ranked.unit.id, OVER_BUDGET) for ranked in recalled.units if ranked not in kept)
        if fitting:
            chosen.append(fitting)
            left -= sum(count_tokens(ranked.unit.text) for ranked in fitting.units)
    return Selection(tuple(chosen), tuple(excluded))


def _unfit(ranked: Ranked, shown: Collection[str]) -> str | None:
    if ranked.unit.message_id in shown:
        return SHOWN_IN_WINDOW
    if ranked.echo:
        return ASKS_THE_SAME
    if ranked.duplicate_of:
        return f"near duplicate of {ranked.duplicate_of}"
    return None


def _gathered(results: tuple[Ranked, ...] | list[Ranked]) -> tuple[Recalled, ...]:
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
