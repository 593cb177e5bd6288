"""A search of the store by a query, or by a filter that PostgreSQL cannot compare: which items, in which order."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from psycopg.rows import args_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import Unavailable
from services.llm.embeddings import Embedder
from services.platform.patience import beside_the_loop
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.store import sql
from services.store.indexing import VectorIndexing
from services.store.matching import Candidate, Held, HeldVectors, fits, shared_terms, texts_of
from services.store.model import Search, StoreOwner

MOST_SEARCHED = 20_000
"""Items that a search looks at: the newest."""
_LONG = 1_000
"""Candidates from which they are ranked in a thread."""
_LONG_HELD = 10_000
"""Candidates whose vectors are held from which they are ranked in a thread."""
_LOOKS = 5
"""Times that a search looks at items which others go on writing."""
_LONG_TEXT = 100_000
"""Characters of values from which a thread reads them."""

Page = Sequence[tuple[UUID, float | None]]
"""Ids of items, with how near each is to what is sought; None = nothing is sought, or it is not indexed."""

log = structlog.get_logger(__name__)


class ItemSearch:
    """Finds items, and holds the vectors of what was searched last."""

    def __init__(
        self, database: Database, embedder: Embedder, indexing: VectorIndexing, *, most_bytes: int
    ) -> None:
        """Take the bytes of values that a search reads at most."""
        self._database = database
        self._embedder = embedder
        self._indexing = indexing
        self._most_bytes = most_bytes
        self._held = HeldVectors()

    def forget(self, user_id: UUID) -> None:
        """Drop what is held of a user."""
        self._held.forget(user_id)

    async def ranked(self, owner: StoreOwner, wanted: Search, query: str, values: Mapping[str, Any]) -> Page:
        """Return a page of items, best first; without a query newest first.

        Args:
            owner: whose items they are.
            wanted: the search.
            query: what is sought; may be empty.
            values: of the statements, with the part of the filter that they compare.
        """
        if not wanted.filter:
            held = await self._current(owner, values)
            if held is None and not await self._stamp(owner, values):
                return []
            if (page := await self._nearest(held, query, wanted)) is not None:
                return page
            return await self._by_words(owner, await self._candidates(owner, values), query, wanted)
        found = await self._filtered(owner, wanted, values)
        if not query or not found:
            return [(each.id, None) for each in found[wanted.offset : wanted.offset + wanted.limit]]
        answers = not self._embedder.by_words_alone
        if answers and any(each.vector is None and each.index_paths != [] for each in found):
            answers = await self._indexed(owner)
            found = await self._filtered(owner, wanted, values)
        if answers and found:
            make = partial(Held.of, uuid7(), found, self._embedder.dimension)
            held = await beside_the_loop(make, characters=len(found), most=_LONG)
            if (page := await self._nearest(held, query, wanted)) is not None:
                return page
        return await self._by_words(owner, found, query, wanted)

    async def _current(self, owner: StoreOwner, values: Mapping[str, Any]) -> Held | None:
        """Return the vectors of all items below a prefix, as they are now; None = no items, or no encoder."""
        key = (owner, values["prefix"], self._embedder.model)
        for _ in range(_LOOKS):
            stamps = await self._stamp(owner, values)
            if not stamps or self._embedder.by_words_alone:
                return None
            user_id, *stamp, lacks = stamps[0]
            if lacks:
                if not await self._indexed(owner):
                    return None
                continue
            held = self._held.get(key)
            if held is not None and held.stamp != tuple(stamp):
                newer = await self._candidates(owner, values, since=held.newest)
                held = held.changed_by(Held.of(user_id, newer, self._embedder.dimension)) if newer else None
            if held is not None and held.stamp == tuple(stamp):
                self._held.put(key, held)
                return held
            found = await self._candidates(owner, values)
            if not found:
                return None
            make = partial(Held.of, user_id, found, self._embedder.dimension)
            held = await beside_the_loop(make, characters=len(found), most=_LONG)
            self._held.put(key, held)
            if held.stamp == tuple(stamp) or len(found) >= MOST_SEARCHED:
                return held
        return self._held.get(key)  # others go on writing

    async def _stamp(self, owner: StoreOwner, values: Mapping[str, Any]) -> Sequence[Any]:
        asked = {**values, "embedded_by": self._embedder.model}
        return await self._database.read(owner.tenant_id, Query(sql.STAMP, asked, tuple_row))

    async def _candidates(
        self,
        owner: StoreOwner,
        values: Mapping[str, Any],
        *,
        filtered: bool = False,
        plain: bool = False,
        since: datetime | None = None,
    ) -> list[Candidate]:
        asked = {
            **values,
            "embedded_by": self._embedder.model,
            "filtered": filtered,
            "plain": plain,
            "since": since,
        }
        asked |= {"most": MOST_SEARCHED, "most_bytes": self._most_bytes}
        return await self._database.fetch(owner.tenant_id, sql.CANDIDATES, asked, args_row(Candidate))

    async def _filtered(self, owner: StoreOwner, wanted: Search, values: Mapping[str, Any]) -> list[Candidate]:
        found = await self._candidates(owner, values, filtered=True, plain=not wanted.query)
        filtered = partial(_filtered, found, wanted.filter or {})
        size = sum(len(each.value or "") for each in found)
        return await beside_the_loop(filtered, characters=size, most=_LONG_TEXT)

    async def _indexed(self, owner: StoreOwner) -> bool:
        """Wait until the owner's items have their vectors; False = no encoder answers. Who gives up does not
        stop what others wait for as well."""
        if self._embedder.by_words_alone:
            return False
        return await asyncio.shield(self._indexing.begin(owner))

    async def _nearest(self, held: Held | None, query: str, wanted: Search) -> Page | None:
        """Return a page of ids, the nearest first; None = no encoder answers."""
        if held is None:
            return None
        try:
            sought = await self._embedder.embed_query(query)
        except Unavailable as error:
            log.warning("the store is searched by words", reason=type(error).__name__)
            return None
        rank = partial(held.ranked, sought, wanted.offset, wanted.limit)
        return await beside_the_loop(rank, characters=len(held.ids), most=_LONG_HELD)

    async def _by_words(self, owner: StoreOwner, found: Sequence[Candidate], query: str, wanted: Search) -> Page:
        """Return a page of ids by the words that are shared with a query."""
        ids = [each.id for each in found if each.value is None]
        asked = {"tenant_id": owner.tenant_id, "ids": ids}
        rows: dict[UUID, str] = {}
        if ids:
            rows = dict(await self._database.fetch(owner.tenant_id, sql.VALUES, asked, tuple_row))
        ranked: list[tuple[UUID, float | None]] = []
        for each in found:
            value = each.value or rows.get(each.id, "{}")
            texts = texts_of(json.loads(value), each.index_paths)
            ranked.append((each.id, shared_terms(" ".join(texts), query) if texts else None))
        ranked.sort(key=lambda each: -2.0 if each[1] is None else each[1], reverse=True)
        return ranked[wanted.offset : wanted.offset + wanted.limit]


def _filtered(found: Sequence[Candidate], wanted: Mapping[str, Any]) -> list[Candidate]:
    return [each for each in found if fits(json.loads(each.value or "{}"), wanted)]
