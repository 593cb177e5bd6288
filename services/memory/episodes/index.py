"""The index of episodes in Milvus: what finds them by words and by meaning.

It can be wiped and made again from PostgreSQL, and nothing is ever shown from it: it answers with ids. A row
is a *unit*: one message of a turn's episode, or an episode that was written as a memory.

A user's units are in one of `SHARDS` collections: each holds few users, so that a search looks at little.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from services.errors import Unavailable
from services.memory.episodes.index_row import IndexRow, as_entity, milliseconds
from services.platform.breaker import CircuitBreaker
from services.platform.milvus import CollectionMissing, Milvus
from services.search.collection import compare_model, make_collection
from services.search.shard import (
    COLLECTION,
    NAME,
    NewCollection,
    loaded,
    new_name,
    remove,
    remove_leftovers,
    write_anew,
)

Result = TypeVar("Result")

SHARDS = 64
WRITING = "index_episodes"
"""Lock of writers into the index, and of what removes something for good."""

_FLUSH_AFTER_ROWS = 64
"""Rows that are not flushed are looked through one by one in every search."""
_DELETED_AT_ONCE = 200
_SEARCH_S = 5.0
_MOST_ROWS = 16_000
"""Milvus answers with no more rows at once."""
_CHECK_S = 5.0


@dataclass(frozen=True)
class Scope:
    """Which units are searched: those of a user with an expert, and fewer where more is given."""

    tenant_id: UUID
    user_id: UUID
    expert_id: UUID
    conversation_id: UUID | None = None
    episode_type: str | None = None
    """One of our own names; what a caller sends is compared with them before."""
    since: datetime | None = None
    until: datetime | None = None
    """Not included."""


@dataclass(frozen=True)
class UnitHit:
    """A unit that was found."""

    unit_id: UUID
    episode_id: UUID
    score: float
    """Higher is closer; of cosine similarity, or of BM25 within the collection."""
    terms: tuple[str, ...]


def shard_of(user_id: UUID) -> int:
    """The shard that holds a user's units."""
    return user_id.int % SHARDS


class EpisodeIndex:
    """Adds, finds and removes units."""

    def __init__(self, milvus: Milvus, *, model: str, dimension: int) -> None:
        """Take whose embeddings are indexed, and how many dimensions they have."""
        self._milvus = milvus
        self._model = model
        self._dimension = dimension
        self._unflushed: dict[int, int] = {}
        self._hurried = CircuitBreaker(
            "Milvus in time", counts=lambda error: not isinstance(error, CollectionMissing)
        )

    async def check(self) -> None:
        """See that what is there was made with this embedding model.

        Raises:
            ConfigurationError: it was made with another; says what to do.
            Unavailable: Milvus does not answer.
        """
        async with self._milvus.use() as client, asyncio.timeout(_CHECK_S):
            for name in await client.list_collections():
                if COLLECTION.fullmatch(name):
                    self._compare((await client.describe_collection(name)).get("properties") or {})

    def _compare(self, properties: dict[str, Any]) -> None:
        compare_model(properties, self._model, self._dimension, of="episodes")

    async def search(
        self,
        scope: Scope,
        terms: Sequence[Sequence[str]],
        vectors: Sequence[Sequence[float]],
        limit: int,
        *,
        dense_limit: int | None = None,
        within_s: float | None = None,
    ) -> tuple[list[list[UnitHit]], list[list[UnitHit]]]:
        """Search for each query by words and by meaning, at the same time.

        Args:
            scope: whose units.
            terms: for each query its terms; one without any finds nothing.
            vectors: for each query its embedding; may be empty, then nothing is searched by meaning.
            limit: units for each query.
            dense_limit: units for each query that are found by meaning, if another.
            within_s: seconds, if there is a hurry: an answer that comes too late several times in a row is not
                asked for any more for a while, in a hurry. Else five seconds.

        Returns:
            For each query the units found by words, and for each query those found by meaning.

        Raises:
            CollectionMissing: the user's shard is not there.
            Unavailable: Milvus does not answer, or not in time.
        """
        asked = [" ".join(words) for words in terms]
        full = [text for text in asked if text]

        nearest = dense_limit or limit
        cosine = {"metric_type": "COSINE", "params": {"ef": 2 * nearest}}

        async def both() -> tuple[list[list[UnitHit]], list[list[UnitHit]]]:
            return await asyncio.gather(
                self._find(scope, "sparse", full, {"metric_type": "BM25"}, limit),
                self._find(scope, "embedding", vectors, cosine, nearest),
            )

        async def search() -> tuple[list[list[UnitHit]], list[list[UnitHit]]]:
            try:
                return await both()
            except CollectionMissing:  # another may just have taken its place
                return await both()

        by_words, by_meaning = await (search() if within_s is None else self._in_time(search, within_s))
        lists = iter(by_words)
        return [next(lists) if text else [] for text in asked], by_meaning

    async def _in_time(self, search: Callable[[], Awaitable[Result]], within_s: float) -> Result:
        async with self._hurried.use():
            try:
                return await asyncio.wait_for(search(), within_s)
            except TimeoutError:
                raise Unavailable("Milvus does not answer in time.") from None

    async def _find(
        self, scope: Scope, field: str, data: Sequence[Any], params: dict[str, Any], limit: int
    ) -> list[list[UnitHit]]:
        if not data:
            return []
        name = NAME.format(shard=shard_of(scope.user_id))
        fields = ["episode_id", "terms"]
        async with self._milvus.use() as client, asyncio.timeout(_SEARCH_S):
            ask = partial(client.search, name, list(data), _filter(scope), limit, fields, params, anns_field=field)
            found = await loaded(client, name, ask)
        return [[_hit(each) for each in hits] for hits in found]

    async def rows(
        self, scope: Scope, unit_ids: Sequence[UUID] | None = None, *, vectors: bool, within_s: float
    ) -> dict[UUID, tuple[str, list[float] | None]]:
        """The terms, joined by spaces, and the embeddings of a user's units, or of those given.

        Args:
            scope: whose units; `since` and `until` bound how many are read at once.
            unit_ids: fewer of them.
            vectors: whether embeddings are read.
            within_s: seconds; as of `search`.

        Raises:
            CollectionMissing: the user's shard is not there.
            Unavailable: Milvus does not answer.
        """
        name = NAME.format(shard=shard_of(scope.user_id))
        fields = ["id", "terms", *(["embedding"] if vectors else [])]
        chosen = _filter(scope)
        if unit_ids is not None:
            ids = ", ".join(f'"{unit_id}"' for unit_id in unit_ids)
            chosen = f"{chosen} and id in [{ids}]"

        async def query() -> Any:
            async with self._milvus.use() as client:
                ask = partial(client.query, name, filter=chosen, output_fields=fields, limit=_MOST_ROWS)
                return await loaded(client, name, ask)

        found = await self._in_time(query, within_s)
        return {UUID(row["id"]): (row["terms"], row.get("embedding")) for row in found}

    async def upsert(
        self, rows: Sequence[IndexRow], *, lost: Callable[[int], Awaitable[None]] | None = None
    ) -> None:
        """Add or replace units.

        Args:
            rows: the units.
            lost: called with a shard that is not there, before it is made: what it may have held is lost.

        Raises:
            ConfigurationError: the index was made with another embedding model.
            Unavailable: Milvus does not answer.
        """
        for shard in sorted({shard_of(row.user_id) for row in rows}):
            mine = [as_entity(row) for row in rows if shard_of(row.user_id) == shard]
            try:
                await self._write(shard, mine)
            except CollectionMissing:
                if lost is not None:
                    await lost(shard)
                await self._make(shard)
                await self._write(shard, mine)
            self._unflushed[shard] = self._unflushed.get(shard, 0) + len(mine)
            if self._unflushed[shard] >= _FLUSH_AFTER_ROWS:
                await self.flush(shard)

    async def flush(self, shard: int) -> None:
        """Make a shard's newest rows part of its indexes.

        Raises:
            Unavailable: Milvus does not answer.
        """
        async with self._milvus.use() as client:
            await client.flush(NAME.format(shard=shard))
        self._unflushed[shard] = 0

    async def forget(self, user_id: UUID, episode_ids: Iterable[UUID] | None = None) -> int:
        """Remove a user's units: those of the episodes given, or all; return how many.

        Raises:
            Unavailable: Milvus does not answer.
        """
        name = NAME.format(shard=shard_of(user_id))
        mine = f'user_id == "{user_id}"'
        filters = [mine]
        if episode_ids is not None:
            ids = [f'"{episode_id}"' for episode_id in episode_ids]
            groups = (ids[start : start + _DELETED_AT_ONCE] for start in range(0, len(ids), _DELETED_AT_ONCE))
            filters = [f"{mine} and episode_id in [{', '.join(group)}]" for group in groups]
        count = 0
        try:
            async with self._milvus.use() as client:
                for chosen in filters:
                    removed = await loaded(client, name, partial(client.delete, name, filter=chosen))
                    count += removed.get("delete_count", 0) if isinstance(removed, dict) else len(removed)
        except CollectionMissing:
            return 0
        return count

    async def begin_again(self, shard: int) -> NewCollection:
        """Make an empty collection beside a shard's present one, to be filled and then put in its place.

        Raises:
            Unavailable: Milvus does not answer.
        """
        return NewCollection(self._milvus, NAME.format(shard=shard), await self._make_collection(shard))

    async def remove_shard(self, shard: int) -> None:
        """Remove a shard in which no user has anything; raises as `begin_again`."""
        await remove(self._milvus, NAME.format(shard=shard))

    async def write_anew(self) -> int:
        """Rewrite every shard with the rows that were not removed: its files hold the others too.

        Only for who is alone under the name `WRITING`. Returns the rows.

        Raises:
            Unavailable: Milvus does not answer; what was not rewritten is as it was.
        """
        return sum([await write_anew(self._milvus, NAME.format(shard=shard)) for shard in range(SHARDS)])

    async def remove_leftovers(self, user_id: UUID) -> None:
        """Remove what a rebuild of the user's shard left that was broken off; nobody searches it.

        Only for who is alone under the name `WRITING`.

        Raises:
            Unavailable: Milvus does not answer.
        """
        await remove_leftovers(self._milvus, NAME.format(shard=shard_of(user_id)))

    async def _write(self, shard: int, entities: list[dict[str, Any]]) -> None:
        name = NAME.format(shard=shard)
        async with self._milvus.use() as client:
            found = await client.describe_collection(name)
        self._compare(found.get("properties") or {})
        async with self._milvus.use() as client:
            await client.upsert(name, entities)

    async def _make(self, shard: int) -> None:
        physical = await self._make_collection(shard)
        async with self._milvus.use() as client:
            await client.create_alias(physical, NAME.format(shard=shard))

    async def _make_collection(self, shard: int) -> str:
        physical = new_name(NAME.format(shard=shard))
        make = partial(make_collection, name=physical, model=self._model, dimension=self._dimension)
        await self._milvus.in_thread(make)
        return physical


def _filter(scope: Scope) -> str:
    """Only ids that we minted, numbers and names of ours: text of a caller never gets here."""
    parts = [
        f'tenant_id == "{scope.tenant_id}"',
        f'user_id == "{scope.user_id}"',
        f'expert_id == "{scope.expert_id}"',
    ]
    if scope.conversation_id:
        parts.append(f'conversation_id == "{scope.conversation_id}"')
    if scope.episode_type:
        parts.append(f'episode_type == "{scope.episode_type}"')
    if scope.since:
        parts.append(f"created_at >= {milliseconds(scope.since)}")
    if scope.until:
        parts.append(f"created_at < {milliseconds(scope.until)}")
    return " and ".join(parts)


def _hit(found: Any) -> UnitHit:
    entity = found["entity"]
    return UnitHit(
        UUID(found["id"]), UUID(entity["episode_id"]), float(found["distance"]), tuple(entity["terms"].split())
    )
