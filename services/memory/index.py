"""The index of episodes in Milvus: what finds them by words and by meaning.

It can be wiped and made again from PostgreSQL, and nothing is ever shown from it: it answers with ids. A row
is a *unit*: one message of a turn's episode, or an episode that was written as a memory.

A user's units are in one of `SHARDS` collections: each holds few users, so that a search looks at little.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from uuid_utils.compat import uuid7

from services.errors import ConfigurationError
from services.memory.collection import make_collection
from services.platform.milvus import CollectionMissing, Milvus

if TYPE_CHECKING:
    from pymilvus import AsyncMilvusClient

SHARDS = 64

_NAME = "conversation_episodes_{shard:02d}"
_OURS = re.compile(r"conversation_episodes_\d\d_[0-9a-f]{32}")
_MODEL, _DIMENSION = "anamnesis.model", "anamnesis.dimension"
_MOST_TERMS_BYTES = 8000
_FLUSH_AFTER_ROWS = 64
"""Rows that are not flushed are looked through one by one in every search."""
_DELETED_AT_ONCE = 200


@dataclass(frozen=True)
class IndexRow:
    """A unit as it is indexed."""

    unit_id: UUID
    """Of the message, or of the episode that was written."""
    episode_id: UUID
    tenant_id: UUID
    user_id: UUID
    expert_id: UUID
    conversation_id: UUID | None
    episode_type: str
    importance: float
    created_at: datetime
    terms: Sequence[str]
    embedding: Sequence[float]


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

    async def check(self) -> None:
        """See that what is there was made with this embedding model.

        Raises:
            ConfigurationError: it was made with another; says what to do.
            Unavailable: Milvus does not answer.
        """
        async with self._milvus.use() as client:
            for name in await client.list_collections():
                if _OURS.fullmatch(name):
                    properties = (await client.describe_collection(name)).get("properties") or {}
                    self._compare(properties)

    def _compare(self, properties: dict[str, Any]) -> None:
        found = properties.get(_MODEL), properties.get(_DIMENSION)
        if None not in found and found != (self._model, str(self._dimension)):
            raise ConfigurationError(
                f"The index of episodes was made with the embedding model {found[0]} ({found[1]} dimensions), and "
                f"{self._model} ({self._dimension}) is configured. Set that model again, or run: anamnesis reindex"
            )

    async def search(
        self,
        scope: Scope,
        terms: Sequence[Sequence[str]],
        vectors: Sequence[Sequence[float]],
        limit: int,
        dense_limit: int | None = None,
    ) -> tuple[list[list[UnitHit]], list[list[UnitHit]]]:
        """Search for each query by words and by meaning, at the same time.

        Args:
            scope: whose units.
            terms: for each query its terms; one without any finds nothing.
            vectors: for each query its embedding; may be empty, then nothing is searched by meaning.
            limit: units for each query.
            dense_limit: units for each query that are found by meaning, if another.

        Returns:
            For each query the units found by words, and for each query those found by meaning.

        Raises:
            CollectionMissing: the user's shard is not there.
            Unavailable: Milvus does not answer.
        """
        chosen = _filter(scope)
        name = _NAME.format(shard=shard_of(scope.user_id))
        asked = [" ".join(words) for words in terms]
        full = [text for text in asked if text]
        async with self._milvus.use() as client:

            async def find(field: str, data: list[Any], most: int, params: dict[str, Any]) -> list[list[UnitHit]]:
                if not data:
                    return []
                found = await _loaded(
                    client,
                    name,
                    lambda: client.search(
                        name, data=data, anns_field=field, limit=most, filter=chosen, search_params=params,
                        output_fields=["episode_id", "terms"],
                    ),
                )  # fmt: skip
                return [[_hit(each) for each in hits] for hits in found]

            nearest = dense_limit or limit
            cosine = {"metric_type": "COSINE", "params": {"ef": 2 * nearest}}
            by_words, by_meaning = await asyncio.gather(
                find("sparse", full, limit, {"metric_type": "BM25"}),
                find("embedding", [list(each) for each in vectors], nearest, cosine),
            )
        lists = iter(by_words)
        return [next(lists) if text else [] for text in asked], by_meaning

    async def upsert(self, rows: Sequence[IndexRow]) -> list[int]:
        """Add units, or write them anew; return the shards that had to be made, which hold nothing else.

        Raises:
            ConfigurationError: the index was made with another embedding model.
            Unavailable: Milvus does not answer.
        """
        made = []
        for shard in sorted({shard_of(row.user_id) for row in rows}):
            name = _NAME.format(shard=shard)
            mine = [_as_entity(row) for row in rows if shard_of(row.user_id) == shard]
            try:
                await self._write(name, mine)
            except CollectionMissing:
                await self._make(shard)
                made.append(shard)
                await self._write(name, mine)
            self._unflushed[shard] = self._unflushed.get(shard, 0) + len(mine)
            if self._unflushed[shard] >= _FLUSH_AFTER_ROWS:
                await self.flush(shard)
        return made

    async def flush(self, shard: int) -> None:
        """Make a shard's newest rows part of its indexes.

        Raises:
            Unavailable: Milvus does not answer.
        """
        async with self._milvus.use() as client:
            await client.flush(_NAME.format(shard=shard))
        self._unflushed[shard] = 0

    async def forget(self, user_id: UUID, episode_ids: Iterable[UUID] | None = None) -> int:
        """Remove a user's units: those of the episodes given, or all; return how many.

        Raises:
            Unavailable: Milvus does not answer.
        """
        name = _NAME.format(shard=shard_of(user_id))
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
                    removed = await _loaded(client, name, partial(client.delete, name, filter=chosen))
                    count += removed.get("delete_count", 0) if isinstance(removed, dict) else len(removed)
        except CollectionMissing:
            return 0
        return count

    async def begin_again(self, shard: int) -> "NewShard":
        """Make an empty collection beside a shard's present one, to be filled and then put in its place.

        Raises:
            Unavailable: Milvus does not answer.
        """
        return NewShard(self._milvus, shard, await self._make_collection(shard))

    async def remove_shard(self, shard: int) -> None:
        """Remove a shard in which no user has anything.

        Raises:
            Unavailable: Milvus does not answer.
        """
        name = _NAME.format(shard=shard)
        async with self._milvus.use() as client:
            for physical in await _of_shard(client, name):
                if (await client.describe_collection(physical)).get("aliases") != []:
                    await client.drop_alias(name)
                await client.drop_collection(physical)

    async def _write(self, name: str, entities: list[dict[str, Any]]) -> None:
        async with self._milvus.use() as client:
            await client.upsert(name, entities)

    async def _make(self, shard: int) -> None:
        physical = await self._make_collection(shard)
        async with self._milvus.use() as client:
            await client.create_alias(physical, _NAME.format(shard=shard))

    async def _make_collection(self, shard: int) -> str:
        physical = f"{_NAME.format(shard=shard)}_{uuid7().hex}"
        properties = {_MODEL: self._model, _DIMENSION: str(self._dimension)}
        await self._milvus.in_thread(lambda client: make_collection(client, physical, self._dimension, properties))
        return physical


class NewShard:
    """A collection that is being filled and is searched by nobody yet."""

    def __init__(self, milvus: Milvus, shard: int, physical: str) -> None:
        self._milvus = milvus
        self._name = _NAME.format(shard=shard)
        self._physical = physical

    async def add(self, rows: Sequence[IndexRow]) -> None:
        """Add units.

        Raises:
            Unavailable: Milvus does not answer.
        """
        async with self._milvus.use() as client:
            await client.upsert(self._physical, [_as_entity(row) for row in rows])

    async def put_in_place(self) -> None:
        """Let it be searched instead of the one before, and remove that and whatever was left of a broken try.

        Raises:
            Unavailable: Milvus does not answer.
        """
        async with self._milvus.use() as client:
            await client.flush(self._physical)
            await client.load_collection(self._physical)
            try:
                await client.describe_collection(self._name)
            except Exception:  # there was none before
                await client.create_alias(self._physical, self._name)
            else:
                await client.alter_alias(self._physical, self._name)
            for old in await _of_shard(client, self._name):
                if old != self._physical:
                    await client.drop_collection(old)


async def _of_shard(client: "AsyncMilvusClient", name: str) -> list[str]:
    return [each for each in await client.list_collections() if _OURS.fullmatch(each) and each.startswith(name)]


async def _loaded(client: "AsyncMilvusClient", name: str, ask: Callable[[], Any]) -> Any:
    """Ask; a collection that its server has opened anew is loaded first."""
    from pymilvus import MilvusException  # noqa: PLC0415 — imported by now

    try:
        return await ask()
    except MilvusException as error:
        if "load" not in str(error.message).lower():
            raise
    await client.load_collection(name)
    return await ask()


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
        parts.append(f"created_at >= {_milliseconds(scope.since)}")
    if scope.until:
        parts.append(f"created_at < {_milliseconds(scope.until)}")
    return " and ".join(parts)


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _hit(found: Any) -> UnitHit:
    entity = found["entity"]
    return UnitHit(
        UUID(found["id"]), UUID(entity["episode_id"]), float(found["distance"]), tuple(entity["terms"].split())
    )


def _as_entity(row: IndexRow) -> dict[str, Any]:
    return {
        "id": str(row.unit_id),
        "episode_id": str(row.episode_id),
        "tenant_id": str(row.tenant_id),
        "user_id": str(row.user_id),
        "expert_id": str(row.expert_id),
        "conversation_id": str(row.conversation_id or ""),
        "episode_type": row.episode_type,
        "importance": row.importance,
        "created_at": _milliseconds(row.created_at),
        "terms": _that_fit(row.terms),
        "embedding": [float(value) for value in row.embedding],
    }


def _that_fit(terms: Sequence[str]) -> str:
    """As many terms as a field holds; the beginning of a long text says what it is about."""
    text = " ".join(terms).encode()
    if len(text) <= _MOST_TERMS_BYTES:
        return text.decode()
    cut = text[:_MOST_TERMS_BYTES]
    return cut[: cut.rfind(b" ")].decode(errors="ignore")
