"""Search in Milvus, for users without a working set. It returns ids; the units are in PostgreSQL."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from services.errors import Unavailable
from services.memory.episodes.episode import StoredUnit
from services.memory.episodes.index import EpisodeIndex, UnitHit
from services.memory.episodes.scope import Scope
from services.memory.episodes.store import EpisodeStore
from services.memory.recall.request import SearchRequest, SearchResult, unit_of
from services.platform.milvus import CollectionMissing
from services.search.hits import Ranking, SearchLeg, SearchList
from services.search.index_terms import marked, sought_terms
from services.search.parameters import SEARCH_DEPTH
from services.search.ranking import rank
from services.text.tokenizer import terms

_AT_ONCE = 4
_IN_A_TURN_S = 2.0
"""Seconds after which a search is considered broken."""


class IndexSearch:
    """Searches by words and by meaning, a few turns at a time, in order of arrival."""

    def __init__(self, episodes: EpisodeStore, index: EpisodeIndex) -> None:
        self._episodes = episodes
        self._index = index
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def find(self, sought: SearchRequest) -> SearchResult:
        """Find and rank units; those not indexed yet are ranked by their words.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        degraded: list[str] = []
        async with self._places:
            searches = [
                self._search(within, sought, degraded)
                for within in dict.fromkeys((sought.scope, sought.then))
                if within is not None
            ]
            lists, hits = _together(await asyncio.gather(*searches))
        waiting = await self._episodes.unindexed(sought.scope)
        found = ((hit.unit_id, hit.episode_id) for hit in hits.values())
        episodes = await self._episodes.found(sought.scope, found)
        # Terms of what is not indexed yet are computed here, of a long message hundreds of milliseconds.
        ranking, stored = await asyncio.to_thread(_ranked, sought, lists, hits, list(episodes.values()), waiting)
        return SearchResult(ranking, stored, degraded)

    async def _search(
        self, scope: Scope, sought: SearchRequest, degraded: list[str]
    ) -> tuple[list[SearchList], dict[str, UnitHit]]:
        words = [
            sought_terms(query.text) if query.kind == "message" else terms(query.text) for query in sought.queries
        ]
        try:
            by_words, by_meaning = await self._index.search(
                scope,
                words,
                sought.vectors,
                SEARCH_DEPTH,
                dense_limit=sought.nearest,
                within_s=_IN_A_TURN_S if sought.hurried else None,
            )
        except CollectionMissing:  # it was lost, or never held anything of the user
            if await self._episodes.index_again(scope.tenant_id, scope.user_id):
                _note(degraded, "milvus")
            return [], {}
        except Unavailable:
            _note(degraded, "milvus")
            return [], {}
        lists = [*_lists("lexical", by_words), *_lists("dense", by_meaning)]
        return lists, {str(hit.unit_id): hit for found in (*by_words, *by_meaning) for hit in found}


def _ranked(
    sought: SearchRequest,
    lists: Sequence[SearchList],
    hits: Mapping[str, UnitHit],
    found: Sequence[StoredUnit],
    waiting: Sequence[StoredUnit],
) -> tuple[Ranking, dict[str, StoredUnit]]:
    """Rank the units that the index found, and those that wait for it; return also the units by their ids."""
    stored = {str(unit.unit_id): unit for unit in found}
    units = [
        unit_of(unit, marked(hits[name].terms, unit.text, unit.speaker, unit.role), indexed=True)
        for name, unit in stored.items()
    ]
    for unit in waiting:
        if str(unit.unit_id) not in stored:
            stored[str(unit.unit_id)] = unit
            units.append(unit_of(unit, marked((), unit.text, unit.speaker, unit.role), indexed=False))
    ranking = rank(
        sought.queries, lists, units, now=sought.now, quality=sought.quality, parameters=sought.parameters
    )
    return ranking, stored


def _note(degraded: list[str], source: str) -> None:
    if source not in degraded:
        degraded.append(source)


def _together(
    found: Iterable[tuple[Sequence[SearchList], Mapping[str, UnitHit]]],
) -> tuple[list[SearchList], dict[str, UnitHit]]:
    """Merge the results of the same queries in several scopes; a unit has the same score in each."""
    scores: dict[tuple[int, SearchLeg], dict[str, float]] = {}
    hits: dict[str, UnitHit] = {}
    for lists, found_there in found:
        hits |= found_there
        for each in lists:
            scores.setdefault((each.query, each.leg), {}).update(each.scores)
    return [SearchList(query, leg, of) for (query, leg), of in scores.items()], hits


def _lists(leg: SearchLeg, found: Iterable[Sequence[UnitHit]]) -> list[SearchList]:
    return [
        SearchList(place, leg, {str(hit.unit_id): hit.score for hit in hits}) for place, hits in enumerate(found)
    ]
