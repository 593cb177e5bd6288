"""Search in a working set; only the best units are read from PostgreSQL."""

import asyncio
from typing import Any
from uuid import UUID

import numpy as np

from services.memory.episodes.episode import StoredUnit
from services.memory.episodes.scope import Scope
from services.memory.episodes.store import EpisodeStore
from services.memory.recall.request import SearchRequest, SearchResult, unit_of
from services.memory.recall.working_set import WorkingSet
from services.search.hits import Ranked, Ranking
from services.search.ranking import Scored, Values, score
from services.search.selection import newest_first
from services.search.sequences import Places
from services.text.tokenizer import terms

_LONG_QUERY = 1_000
_MANY_UNITS = 20_000
"""Characters and units from which a search runs in a thread, as it would hold up everybody else."""
_PREFERRED = 2.0
"""Added to the score of what was said in the time that a message refers to: people err about days."""

Wanted = list[tuple[UUID, UUID]]


async def find_in_set(units: WorkingSet, sought: SearchRequest, episodes: EpisodeStore) -> SearchResult:
    """Find and rank units of a working set, and read the best of them; those removed meanwhile are left out."""
    if len(sought.query.text) > _LONG_QUERY or len(units) > _MANY_UNITS:
        async with units.in_use:
            scored, wanted = await asyncio.to_thread(best_of, units, sought)
    else:
        scored, wanted = best_of(units, sought)
    if not wanted:
        return SearchResult(Ranking((), scored.found))
    stored = await episodes.found(sought.scope, wanted)
    return ranked(scored, wanted, stored, sought)


def best_of(units: WorkingSet, sought: SearchRequest) -> tuple[Scored, Wanted]:
    """The best units, by score and place, with the ids to read.

    All that is needed of the set is taken: it may change once somebody else runs.
    """
    mask = units.within(**_part(sought.scope))
    scored = score(sought.query, sought.vectors, units, mask, sought.heads)
    if (then := sought.then) is not None and then.since and then.until:
        inside = mask & units.within(**_part(then))
        missed = np.setdiff1d(np.flatnonzero(inside), scored.places)
        if len(missed):  # what was said then is looked at, wherever it stands
            scored = _together(scored, score(sought.query, sought.vectors, units, inside, sought.heads))
        said_then = units.said_between(scored.places, then.since, then.until)
        scores = scored.scores + np.where(said_then, _PREFERRED, 0.0)
        scored = _taken(scored, np.argsort(-scores, kind="stable"), scores)
    places = scored.places[: sought.depth].tolist()
    return scored, [(units.unit_id(place), units.episode_id(place)) for place in places]


def ranked(
    scored: Scored, wanted: Wanted, stored: "dict[UUID, StoredUnit]", sought: SearchRequest
) -> SearchResult:
    """Return the units that are still there, best first, of several versions of a fact the newest."""
    cosines = np.nan_to_num(scored.cosines, nan=-1.0)
    by_words, by_meaning = _places_in(scored.words), _places_in(cosines)
    results: list[Ranked] = []
    for at, (unit_id, _) in enumerate(wanted):
        if unit_id not in stored:
            continue
        ranks = {"words": int(by_words[at])} if scored.words[at] > 0 else {}
        if cosines[at] > -1:
            ranks["meaning"] = int(by_meaning[at])
        results.append(
            Ranked(
                unit=unit_of(stored[unit_id]),
                position=len(results) + 1,
                score=float(scored.scores[at]),
                likelihood=float(scored.probability[at]),
                words=float(scored.words[at]),
                cosine=float(cosines[at]) if cosines[at] > -1 else None,
                ranks=ranks,
            )
        )
    # Where a time is asked for, what was said then holds.
    ordered = tuple(results) if sought.then else newest_first(results, terms(sought.query.text))
    return SearchResult(Ranking(ordered, scored.found), {str(unit_id): unit for unit_id, unit in stored.items()})


def _places_in(values: Values) -> Places:
    found = np.empty(len(values), dtype=np.intp)
    found[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return found


def _taken(scored: Scored, at: Places, scores: Values) -> Scored:
    return Scored(
        scored.places[at],
        scores[at],
        scored.probability[at],
        scored.features[at],
        scored.words[at],
        scored.cosines[at],
        scored.found,
    )


def _together(one: Scored, other: Scored) -> Scored:
    more = ~np.isin(other.places, one.places)
    return Scored(
        np.concatenate([one.places, other.places[more]]),
        np.concatenate([one.scores, other.scores[more]]),
        np.concatenate([one.probability, other.probability[more]]),
        np.concatenate([one.features, other.features[more]]),
        np.concatenate([one.words, other.words[more]]),
        np.concatenate([one.cosines, other.cosines[more]]),
        one.found,
    )


def _part(scope: Scope) -> dict[str, Any]:
    return {
        "conversation_id": scope.conversation_id,
        "episode_type": scope.episode_type,
        "since": scope.since,
        "until": scope.until,
    }
