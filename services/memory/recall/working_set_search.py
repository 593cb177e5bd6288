"""Search in a working set: candidates by words and by meaning, ranked; only the best are read from PostgreSQL."""

import asyncio
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from services.memory.episodes.scope import Scope
from services.memory.episodes.store import EpisodeStore
from services.memory.recall.request import SearchRequest, SearchResult, unit_of
from services.memory.recall.working_set import WorkingSet
from services.platform.threads import beside_the_loop
from services.search.hits import Ranking
from services.search.index_terms import Marked, sought_terms
from services.search.parameters import PREFERRED, SEARCH_DEPTH
from services.search.ranking import Scored, score
from services.search.sequences import Places
from services.search.term_matrix import Values
from services.text.tokenizer import terms

_LIKELIEST = 20
"""Number of units that a search reads besides the best, since their likelihood is shown."""
_LONG_QUERIES = 1_000
_LONG_TEXTS = 20_000
_MANY_UNITS = 5_000
"""Characters and units from which a search runs in a thread, as it would hold up everybody else."""
_MOST_WAITING = 200
"""Number of the newest units not indexed yet that are ranked in any case."""


async def find_in_set(units: WorkingSet, sought: SearchRequest, episodes: EpisodeStore) -> SearchResult:
    """Find and rank units of a working set, and read the best of them; those removed meanwhile are left out.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    if sum(len(query.text) for query in sought.queries) > _LONG_QUERIES or len(units) > _MANY_UNITS:
        async with units.in_use:
            found = await asyncio.to_thread(_best, units, sought)
    else:
        found = _best(units, sought)
    if found is None:
        return SearchResult(Ranking((), 0.0))
    scored, wanted, known = found
    stored = await episodes.found(sought.scope, wanted, with_previous=False)
    ranked = {}
    for unit_id, unit in stored.items():
        at, indexed, content = known[unit_id]
        ranked[at] = unit_of(unit, content, indexed=indexed)
    ranking = await beside_the_loop(
        partial(scored.ranking, ranked),
        characters=sum(len(unit.text) for unit in stored.values()),
        most=_LONG_TEXTS,
    )
    return SearchResult(ranking, {str(unit_id): unit for unit_id, unit in stored.items()})


def _best(
    units: WorkingSet, sought: SearchRequest
) -> tuple[Scored, list[tuple[UUID, UUID]], dict[UUID, tuple[int, bool, Marked]]] | None:
    """The scores, the units to read, and of each its place among the scores and what the set knows; None = none.

    All that is needed of the set is taken: it may change once somebody else runs.
    """
    masks = [units.within(**_part(within)) for within in (sought.scope, sought.then) if within is not None]
    places, cosines = _candidates(units, sought, masks)
    if not len(places):
        return None
    scored = score(
        sought.queries,
        cosines,
        units.columns(places),
        now=sought.now,
        quality=sought.quality,
        parameters=sought.parameters,
    )
    # A prompt chooses among the likeliest alone, wherever they stand in the order; a search shows the order.
    read = [scored.likeliest(sought.depth if sought.hurried else _LIKELIEST)]
    if not sought.hurried:
        read.append(scored.best(sought.depth))
    if (then := sought.then) is not None and then.since and then.until:
        preferred = np.where(units.said_between(places, then.since, then.until), PREFERRED, 1.0)
        read.append(scored.best(sought.depth, preferred))
    best = np.unique(np.concatenate(read))
    chosen = places[best]
    wanted = [(units.unit_id(place), units.episode_id(place)) for place in chosen.tolist()]
    known = {
        unit_id: (at, indexed, content)
        for (unit_id, _), at, indexed, content in zip(
            wanted, best.tolist(), units.are_indexed(chosen), units.contents(chosen), strict=True
        )
    }
    return scored, wanted, known


def _candidates(units: WorkingSet, sought: SearchRequest, masks: list[NDArray[np.bool_]]) -> tuple[Places, Values]:
    """Return the places to rank, and for each query the similarities of those near it."""
    found = [units.waiting(masks[0], _MOST_WAITING)]
    near: list[tuple[int, Places, Values]] = []
    for number, query in enumerate(sought.queries):
        words = sought_terms(query.text) if query.kind == "message" else terms(query.text)
        for mask in masks:
            found.append(units.by_words(words, mask, SEARCH_DEPTH))
            if sought.vectors:
                near.append((number, *units.by_meaning(sought.vectors[number], mask, sought.nearest)))
    places = units.in_order(*found, *(nearest for _, nearest, _ in near))
    order = np.argsort(places)
    cosines = np.full((len(sought.queries), len(places)), np.nan)
    for number, nearest, scores in near:
        cosines[number, order[np.searchsorted(places, nearest, sorter=order)]] = scores
    return places, cosines


def _part(scope: Scope) -> dict[str, Any]:
    part: dict[str, UUID | str | Any] = {
        "conversation_id": scope.conversation_id,
        "episode_type": scope.episode_type,
        "since": scope.since,
        "until": scope.until,
    }
    return part
