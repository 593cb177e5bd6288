"""Search in a working set; only the best units are read from PostgreSQL."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.memory.episodes.episode import EpisodeStore, Scope, StoredUnit
from services.memory.recall.working_set import WorkingSet
from services.search.hits import Ranked, Ranking, Unit
from services.search.legs import sought as compared
from services.search.queries import Heads, MessageKind, Query
from services.search.ranking import Scored, score
from services.search.selection import newest_first
from services.search.units import Places, Values, Vectors
from services.text.passages import passage
from services.text.tokenizer import terms

_LONG_QUERY = 1_000
_MANY_UNITS = 20_000
"""Number of characters, and of units, from which on a search runs in a thread, because it would hold up all other
turns."""


@dataclass(frozen=True)
class SearchRequest:
    """A search: what is sought, and where.

    Attributes:
        scope: The owner of the memory, and the part to search.
        then: A part of the scope whose units come first: the time that a message refers to.
        query: The message.
        vectors: Embeddings of `query.texts`; none = words alone decide.
        heads: Those of the encoder, if there are any.
        kind: What the message is like.
        depth: Maximum number of units returned with their texts.
        hurried: Whether a turn waits for it.
        least: Where no unit has this probability, none is read.
    """

    scope: Scope
    then: Scope | None
    query: Query
    vectors: Vectors
    heads: Heads | None
    kind: MessageKind
    depth: int
    hurried: bool
    least: float = 0.0


@dataclass(frozen=True)
class SearchResult:
    """The ranked results."""

    ranking: Ranking
    units: Mapping[str, StoredUnit] = field(default_factory=dict)
    """By their ids, as they are stored."""
    degraded: Sequence[str] = ()
    """Sources that did not answer."""


class Wanted(NamedTuple):
    """A unit to read."""

    unit_id: str
    episode_id: str
    by_assistant: bool
    states: bool
    """Whether it states something."""
    written: bool
    said_at: float
    passage: int
    """Number of the passage that is nearest to the message."""


async def find_in_set(units: WorkingSet, sought: SearchRequest, episodes: EpisodeStore) -> SearchResult:
    """Find and rank units of a working set, and read the best of them. Units that were removed in the meantime are
    left out."""
    if len(sought.query.text) > _LONG_QUERY or len(units) > _MANY_UNITS:
        async with units.in_use:
            scored, wanted = await asyncio.to_thread(best_of, units, sought)
    else:
        scored, wanted = best_of(units, sought)
    if not wanted:
        return SearchResult(Ranking((), scored.found))
    if float(scored.probability[: sought.depth].max()) < sought.least:
        return ranked(scored, wanted, None, sought)
    stored = await episodes.found(sought.scope, [(each.unit_id, each.episode_id) for each in wanted])
    return ranked(scored, wanted, stored, sought)


def best_of(units: WorkingSet, sought: SearchRequest) -> tuple[Scored, list[Wanted]]:
    """Return the best units by score and place, and those of them whose texts are to be read. Everything needed is
    copied from the set, because the set may change as soon as another task runs."""
    mask = units.within(**_part(sought.scope))
    then = units.within(**_part(sought.then)) if sought.then else None
    scored = score(sought.query, sought.vectors, units, mask, sought.heads, sought.kind, then)
    places = scored.places[: sought.depth]
    known = units.overview()
    columns = (known.by_assistant, ~known.states_nothing, known.written, units.said_at)
    about = [column[places].tolist() for column in columns]
    passages = _nearest_passages(units, places.tolist(), sought)
    return scored, list(map(Wanted, units.unit_ids(places), units.episode_ids(places), *about, passages))


def _nearest_passages(units: WorkingSet, places: Sequence[int], search: SearchRequest) -> list[int]:
    """Return the number of the passage of each unit that is nearest to the message or to one of its parts."""
    long = [place for place in places if units.has_passages(place)]
    if not long:
        return [0] * len(places)
    vectors = search.vectors
    if len(vectors):
        vectors = compared(search.query, vectors)
        vectors = search.heads.turned(vectors) if search.heads else vectors
    texts = [terms(text) for text in (search.query.text, *search.query.parts)]
    found = {place: units.best_passage(place, texts, vectors) for place in long}
    return [found.get(place, 0) for place in places]


def ranked(
    scored: Scored, wanted: Sequence[Wanted], stored: Mapping[str, StoredUnit] | None, sought: SearchRequest
) -> SearchResult:
    """Return the units that still exist, best first; of several versions of a fact only the newest. If `stored` is
    None, return all of them without their texts."""
    columns: tuple[NDArray[Any], ...] = (
        scored.scores,
        scored.probability,
        scored.words,
        scored.cosines,
        _ranks(scored.words),
        _ranks(scored.cosines),
        scored.spoken_for,
    )
    results: list[Ranked] = []
    for each, *numbers in zip(wanted, *(column[: len(wanted)].tolist() for column in columns), strict=True):
        unit = _unread(each) if stored is None else _unit(stored.get(each.unit_id), each)
        if unit is not None:
            score, likelihood, words, cosine, by_words, by_meaning, speaks = numbers
            ranks = {"words": by_words} if words > 0 else {}
            if math.isnan(cosine):
                cosine = None
            else:
                ranks["meaning"] = by_meaning
            results.append(Ranked(unit, len(results) + 1, score, likelihood, words, cosine, ranks, speaks))
    # Where a time is asked for, what was said then holds.
    ordered = tuple(results) if sought.then else newest_first(results, terms(sought.query.text))
    return SearchResult(Ranking(ordered, scored.found), stored or {})


def _unit(stored: StoredUnit | None, wanted: Wanted) -> Unit | None:
    if stored is None:
        return None
    return Unit(
        id=wanted.unit_id,
        episode_id=wanted.episode_id,
        created_at=stored.created_at,
        text=passage(stored.text, wanted.passage),
        message_id=wanted.unit_id if stored.message_id else None,
        episode_type=stored.episode_type,
        by_assistant=wanted.by_assistant,
        states=wanted.states,
        sources=frozenset() if stored.message_id else frozenset(map(str, stored.source_message_ids)),
    )


def _unread(wanted: Wanted) -> Unit:
    return Unit(
        id=wanted.unit_id,
        episode_id=wanted.episode_id,
        created_at=datetime.fromtimestamp(wanted.said_at, UTC),
        text="",
        message_id=None if wanted.written else wanted.unit_id,
        by_assistant=wanted.by_assistant,
        states=wanted.states,
    )


def _ranks(values: Values) -> Places:
    """Return the rank of each value from 1, the highest first; NaN comes last."""
    found = np.empty(len(values), dtype=np.intp)
    found[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return found


def _part(scope: Scope) -> dict[str, Any]:
    return {
        "conversation_id": scope.conversation_id,
        "episode_type": scope.episode_type,
        "since": scope.since,
        "until": scope.until,
    }
