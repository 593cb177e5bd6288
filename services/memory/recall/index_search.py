"""Search in Milvus for users without a working set; the units that it finds are ranked as a small set."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from services.errors import Unavailable
from services.memory.episodes.episode import EpisodeStore, PassageId, Scope, StoredUnit
from services.memory.episodes.index import EpisodeIndex
from services.memory.recall.unit_arrays import KeptUnit
from services.memory.recall.unit_loading import Found, contents_of
from services.memory.recall.working_set import WorkingSet
from services.memory.recall.working_set_search import SearchRequest, SearchResult, best_of, ranked
from services.platform.milvus import CollectionMissing
from services.search.collection import SEARCH_DEPTH
from services.search.hits import Ranking
from services.text.passages import passages_of
from services.text.tokenizer import terms

_AT_ONCE = 4
_IN_A_TURN_S = 2.0
"""Seconds after which a search is considered broken."""


class IndexSearch:
    """Searches by words and by meaning, a few turns at a time, in order of arrival."""

    def __init__(self, episodes: EpisodeStore, index: EpisodeIndex, *, dimension: int) -> None:
        """Take the index, and the dimensions of its embeddings."""
        self._episodes = episodes
        self._index = index
        self._dimension = dimension
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def find(self, sought: SearchRequest) -> SearchResult:
        """Find and rank units; those not indexed yet are ranked by their words."""
        degraded: list[str] = []
        async with self._places:
            within = [scope for scope in dict.fromkeys((sought.scope, sought.then)) if scope is not None]
            found = await asyncio.gather(*(self._search(scope, sought, degraded) for scope in within))
        pairs = {unit_id: episode_id for each in found for unit_id, episode_id in each.items()}
        waiting = await self._episodes.unindexed(sought.scope)
        stored = {str(unit.unit_id): unit for unit in waiting}
        stored |= await self._episodes.found(
            sought.scope, [(str(unit), str(each)) for unit, each in pairs.items()]
        )
        if not stored:
            return SearchResult(Ranking(()), {}, degraded)
        # The text of a unit that waits to be indexed may have changed.
        changed = {unit.unit_id for unit in waiting}
        indexed = await self._indexed(sought, [unit for unit in stored.values() if unit.unit_id not in changed])
        # Terms of long messages take hundreds of milliseconds.
        result = await asyncio.to_thread(self._ranked, sought, stored, indexed)
        return replace(result, degraded=degraded)

    async def _search(self, scope: Scope, sought: SearchRequest, degraded: list[str]) -> dict[UUID, UUID]:
        texts = sought.query.texts
        try:
            by_words, by_meaning = await self._index.search(
                scope,
                [terms(text) for text in texts],
                sought.vectors.tolist(),
                SEARCH_DEPTH,
                within_s=_IN_A_TURN_S if sought.hurried else None,
            )
        except CollectionMissing:  # it was lost, or never held anything of the user
            if await self._episodes.index_again(scope.tenant_id, scope.user_id):
                _note(degraded, "milvus")
            return {}
        except Unavailable:
            _note(degraded, "milvus")
            return {}
        return {hit.unit_id: hit.episode_id for hits in (*by_words, *by_meaning) for hit in hits}

    async def _indexed(self, sought: SearchRequest, units: Sequence[StoredUnit]) -> Mapping[PassageId, Found]:
        passages = [(unit.unit_id, number) for unit in units for number in range(len(passages_of(unit.text)))]
        if not passages:
            return {}
        try:
            rows = await self._index.rows(sought.scope.whole, passages, within_s=_IN_A_TURN_S)
        except Unavailable:
            return {}
        if self._index.hides_terms:
            return {passage: ("", vector) for passage, (_, vector) in rows.items()}
        return rows

    def _ranked(
        self, sought: SearchRequest, stored: dict[str, StoredUnit], known: Mapping[PassageId, Found]
    ) -> SearchResult:
        def kept(unit: StoredUnit) -> Iterator[KeptUnit]:
            for number, content in enumerate(contents_of(unit, known)):
                _, vector = known.get((unit.unit_id, number), ("", None))
                yield KeptUnit(
                    unit_id=unit.unit_id,
                    episode_id=unit.episode_id,
                    conversation_id=unit.conversation_id,
                    episode_type=unit.episode_type,
                    said_at=unit.created_at,
                    waiting=vector is None,
                    text_hash=0,
                    content=content,
                    vector=vector,
                    passage=number,
                )

        units = WorkingSet(self._dimension)
        ordered = sorted(stored.values(), key=lambda unit: (unit.created_at, unit.unit_id))
        units.replace((), [each for unit in ordered for each in kept(unit)])
        scored, wanted = best_of(units, sought)
        return ranked(scored, wanted, stored, sought)


def _note(degraded: list[str], source: str) -> None:
    if source not in degraded:
        degraded.append(source)
