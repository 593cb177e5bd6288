"""The index of episodes in Milvus, for search by words and by meaning.

It returns ids alone and is never shown itself, and it can be rebuilt from PostgreSQL at any time. A row is a
passage of a *unit*: of one message of a turn's episode, or of a written memory.

In Milvus Lite a user's units are in one of `SHARDS` collections, so that a search scans few users. A Milvus server
has one collection and partitions it by user itself.
"""

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID, uuid5

from services.memory.episodes.episode import IndexedUnit, PassageId, Scope
from services.platform.milvus import CollectionMissing, Milvus
from services.platform.patience import beside_the_loop
from services.search.collection import terms_that_fit
from services.search.shard import NewCollection, loaded, remove, remove_leftovers, rewrite
from services.search.vector_index import Hits, VectorIndex, any_of

if TYPE_CHECKING:
    from pymilvus import MilvusClient

    from services.encryption.data_key import DataKey

PREFIX = "conversation_episodes"
NAME = PREFIX + "_{shard:02d}"
SHARDS = 64

_MOST_ROWS = 16_000
"""Maximum number of rows that Milvus returns at once."""
_MANY_ROWS = 200
"""Number of rows from which they are decoded in a thread."""
_MANY_TERMS = 5_000
"""Terms of units from which their rows are made in a thread."""
_BEGINNING = 8
"""Number of characters of an id before its first dash."""
_READ_AT_ONCE = 1_000
"""Rows in one answer from which on all of a user's rows are read in a thread."""


def shard_of(user_id: UUID) -> int:
    """Return the shard that holds a user's units."""
    return user_id.int % SHARDS


def collection_name(shard: int, shards: int) -> str:
    """Return the name of a shard's collection, out of `shards` collections."""
    return PREFIX if shards == 1 else NAME.format(shard=shard % shards)


class KeyOfUser(Protocol):
    """Returns the key of a user; None = there is no encryption."""

    async def __call__(self, tenant_id: UUID, *, user_id: UUID) -> "DataKey | None": ...


VERSION = "4"
"""Version of what is indexed of a unit."""


@dataclass(frozen=True)
class UnitHit:
    """A unit that was found, by one of its passages."""

    unit_id: UUID
    episode_id: UUID


class EpisodeIndex:
    """Adds, finds and removes passages of units; `Unavailable` where Milvus does not answer."""

    def __init__(self, milvus: Milvus, *, model: str, dimension: int, key_of: KeyOfUser | None = None) -> None:
        """Take the embedding model and its dimensions, and the keys that hide terms; None = terms are stored."""
        self._key_of = key_of
        self._milvus = milvus
        self.vectors = VectorIndex(
            milvus, model=model, dimension=dimension, of="episodes", prefix=PREFIX, version=VERSION
        )
        """Its collections."""
        self._shards: int | None = None

    @property
    def is_ready(self) -> bool:
        """Return whether it may answer without waiting."""
        return self._milvus.is_ready

    @property
    def hides_terms(self) -> bool:
        """Return whether terms are stored as digests."""
        return self._key_of is not None

    async def search(
        self,
        scope: Scope,
        terms: Sequence[Sequence[str]],
        vectors: Sequence[Sequence[float]],
        limit: int,
        *,
        within_s: float | None = None,
    ) -> tuple[list[list[UnitHit]], list[list[UnitHit]]]:
        """Search for each query by words and by meaning, at the same time.

        Args:
            terms: for each query its terms; one without any finds nothing.
            vectors: for each query its embedding; may be empty, then nothing is searched by meaning.
            limit: maximum passages for each query.
            within_s: seconds to wait, after which Milvus is not asked for a while; None = five seconds.

        Returns:
            For each query the units found by words, and for each query those found by meaning, each once.

        Raises:
            CollectionMissing: the user's shard is not there.
            Unavailable: Milvus does not answer in time.
        """
        key = await self._key(scope.tenant_id, scope.user_id)
        stored = [" ".join(_stored(each, key)) for each in terms]
        limits = (limit, limit)
        name = await self._name_within(scope.user_id, within_s)
        words, meaning = await self.vectors.search(
            name, _filter_of(scope), stored, vectors, limits, ("episode_id",), within_s=within_s
        )
        return _hits(words), _hits(meaning)

    async def shards(self) -> int:
        """Return the number of collections."""
        if self._shards is None:
            self._shards = SHARDS if await self._milvus.is_lite() else 1
        return self._shards

    async def _name(self, user_id: UUID) -> str:
        """Return the collection of a user's units."""
        return collection_name(shard_of(user_id), await self.shards())

    async def _name_within(self, user_id: UUID, within_s: float | None) -> str:
        """Return the collection of a user's units; ask Milvus at most once, for at most `within_s` seconds."""
        if self._shards is not None or within_s is None:
            return await self._name(user_id)
        return await self.vectors.in_time(partial(self._name, user_id), within_s)

    async def rows(
        self, scope: Scope, passages: Sequence[PassageId], *, between: bool = False, within_s: float
    ) -> dict[PassageId, tuple[str, Sequence[float] | None]]:
        """Return the terms, joined by spaces, and the embeddings of some passages of a user's units.

        Args:
            passages: of which; the client decodes an answer in one step of the event loop, which takes 15 ms for a
                thousand.
            between: whether those between the first and the last id are read as well, which is twice as fast.
            within_s: seconds to wait; as of `search`.

        Raises:
            CollectionMissing: the user's shard is not there.
        """
        name = await self._name_within(scope.user_id, within_s)
        if between:
            # A later passage has an id without dashes, behind all that begin alike (`_row_id`).
            first, last = str(passages[0][0]), str(passages[-1][0])[:_BEGINNING]
            chosen = f'{_filter_of(scope)} and id >= "{first}" and id < "{last}g"'
        else:
            ids = ", ".join(f'"{_row_id(*each)}"' for each in passages)
            chosen = f"{_filter_of(scope)} and id in [{ids}]"

        async def query() -> Any:
            readable = ["id", "terms", *(["embedding"] if await self.vectors.is_of_model(name) else [])]
            async with self._milvus.use() as client:
                ask = partial(client.query, name, filter=chosen, output_fields=readable, limit=_MOST_ROWS)
                return await loaded(client, name, ask)

        found = await self.vectors.in_time(query, within_s)

        def read() -> dict[PassageId, tuple[str, Sequence[float] | None]]:
            # The client decodes a row when it is looked at.
            return {
                _passage_id(row["id"]): (
                    row["terms"],
                    array("f", row["embedding"]) if "embedding" in row else None,
                )
                for row in found
            }

        return await asyncio.to_thread(read) if len(found) > _MANY_ROWS else read()

    async def terms_of(self, user_id: UUID) -> list[tuple[UUID, str]]:
        """The terms of a user's units, joined by spaces, each with the id of its episode; none without a shard."""
        name = await self._name(user_id)

        def read(client: "MilvusClient") -> list[tuple[UUID, str]]:
            client.load_collection(name)
            mine = f'user_id == "{user_id}"'
            found = client.query_iterator(
                name, batch_size=_READ_AT_ONCE, filter=mine, output_fields=["episode_id", "terms"]
            )
            terms = []
            while batch := found.next():
                terms += [(UUID(row["episode_id"]), row["terms"]) for row in batch]
            found.close()
            return terms

        try:
            return await self._milvus.in_thread(read)
        except CollectionMissing:
            return []

    async def upsert(
        self, rows: Sequence[IndexedUnit], *, lost: Callable[[int, int], Awaitable[None]] | None = None
    ) -> None:
        """Add or replace units.

        Args:
            lost: called with a missing shard, and the number of shards, before it is created: what it may have
                held is lost.
        """
        shards = await self.shards()
        for shard in sorted({shard_of(row.user_id) % shards for row in rows}):
            mine = await self.entities([row for row in rows if shard_of(row.user_id) % shards == shard])
            of_shard = partial(lost, shard, shards) if lost is not None else None
            await self.vectors.upsert(collection_name(shard, shards), mine, lost=of_shard)

    async def entities(self, rows: Sequence[IndexedUnit]) -> list[dict[str, Any]]:
        """Return units in the form in which the index stores them."""
        owners = {(row.tenant_id, row.user_id) for row in rows}
        keys = {owner: await self._key(*owner) for owner in owners}

        def made() -> list[dict[str, Any]]:
            return [
                as_entity(replace(row, terms=_stored(row.terms, keys[row.tenant_id, row.user_id]))) for row in rows
            ]

        return await beside_the_loop(made, characters=sum(len(row.terms) for row in rows), most=_MANY_TERMS)

    async def _key(self, tenant_id: UUID, user_id: UUID) -> "DataKey | None":
        return await self._key_of(tenant_id, user_id=user_id) if self._key_of else None

    async def forget(self, user_id: UUID, episode_ids: Iterable[UUID] | None = None) -> int:
        """Remove a user's units: those of the episodes given, or all; return how many."""
        mine = f'user_id == "{user_id}"'
        filters = (
            [mine]
            if episode_ids is None
            else [f"{mine} and {chosen}" for chosen in any_of("episode_id", episode_ids)]
        )
        return await self.vectors.delete(await self._name(user_id), filters)

    async def forget_passages(self, user_id: UUID, written: Mapping[UUID, Collection[PassageId]]) -> None:
        """Remove passages that episodes no longer have, given the number of passages that each has now."""
        filters = []
        for episode_id, passages in written.items():
            ids = ", ".join(f'"{_row_id(*each)}"' for each in passages)
            filters.append(f'user_id == "{user_id}" and episode_id == "{episode_id}" and id not in [{ids}]')
        await self.vectors.delete(await self._name(user_id), filters)

    async def begin_again(self, shard: int) -> NewCollection:
        """Create an empty collection beside a shard's current one, to be filled and then to replace it."""
        return await self.vectors.begin_again(collection_name(shard, await self.shards()))

    async def remove_shard(self, shard: int) -> None:
        await remove(self._milvus, collection_name(shard, await self.shards()))

    async def rewrite(self) -> int:
        """Rewrite every shard with its live rows, since its files also hold removed ones; return the number of
        rows.

        Only for the holder of the lock `WRITING`. If Milvus stops answering, the remaining shards stay unchanged.
        """
        shards = await self.shards()
        return sum([await rewrite(self._milvus, collection_name(shard, shards)) for shard in range(shards)])

    async def remove_leftovers(self, user_id: UUID) -> None:
        """Remove what an interrupted rebuild of the user's shard left behind, which no search reads. Only for the
        holder of the lock `WRITING`."""
        await remove_leftovers(self._milvus, await self._name(user_id))


def _stored(terms: Sequence[str], key: "DataKey | None") -> Sequence[str]:
    """Return terms as the index stores them: with encryption each is hidden by a keyed digest."""
    return terms if key is None else [key.hidden_term(term) for term in terms]


def _hits(found: Hits) -> list[list[UnitHit]]:
    each_once = ({_passage_id(each["id"])[0]: each["entity"]["episode_id"] for each in hits} for hits in found)
    return [[UnitHit(unit_id, UUID(episode_id)) for unit_id, episode_id in units.items()] for units in each_once]


def _row_id(unit_id: UUID, passage: int) -> str:
    """Return the id of a passage in a collection, of at most 36 characters: the first has that of its unit."""
    return f"{unit_id.hex}.{passage}" if passage else str(unit_id)


def _passage_id(row_id: str) -> PassageId:
    unit_id, _, passage = row_id.partition(".")
    return UUID(unit_id), int(passage or 0)


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _holder(expert_id: UUID, space_id: UUID | None) -> UUID:
    """Return the value of a collection's field `expert_id`: the expert's id, or a value made from the expert and a
    space."""
    return expert_id if space_id is None else uuid5(expert_id, str(space_id))


def as_entity(unit: IndexedUnit) -> dict[str, Any]:
    """Return the unit's fields under their names in the collection."""
    return {
        "id": _row_id(unit.unit_id, unit.passage),
        "episode_id": str(unit.episode_id),
        "tenant_id": str(unit.tenant_id),
        "user_id": str(unit.user_id),
        "expert_id": str(_holder(unit.expert_id, unit.space_id)),
        "conversation_id": str(unit.conversation_id or ""),
        "episode_type": unit.episode_type,
        "importance": unit.importance,
        "created_at": _milliseconds(unit.created_at),
        "terms": terms_that_fit(unit.terms),
        "embedding": unit.embedding,
    }


def _filter_of(scope: Scope) -> str:
    """Build the filter for Milvus from the service's own ids, numbers and names; no text of a caller gets into
    it."""
    spaces = dict.fromkeys((None, scope.space_id))
    holders = ", ".join(f'"{_holder(scope.expert_id, space_id)}"' for space_id in spaces)
    parts = [f'tenant_id == "{scope.tenant_id}"', f'user_id == "{scope.user_id}"', f"expert_id in [{holders}]"]
    if scope.conversation_id:
        parts.append(f'conversation_id == "{scope.conversation_id}"')
    if scope.episode_type:
        parts.append(f'episode_type == "{scope.episode_type}"')
    if scope.since:
        parts.append(f"created_at >= {_milliseconds(scope.since)}")
    if scope.until:
        parts.append(f"created_at < {_milliseconds(scope.until)}")
    return " and ".join(parts)
