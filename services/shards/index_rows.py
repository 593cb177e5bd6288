"""A tenant's rows in Milvus: copied with their embeddings, which would cost a model's time to make again."""

import asyncio
import hashlib
from array import array
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from services.errors import ConfigurationError
from services.knowledge import index as knowledge
from services.memory.episodes import shards as episodes
from services.platform.milvus import CollectionMissing, Milvus

if TYPE_CHECKING:
    from pymilvus import MilvusClient

Take = Callable[[Sequence[dict[str, Any]]], Coroutine[Any, Any, None]]

_AT_ONCE = 500
_MADE = "sparse"
"""The field that a collection makes itself."""


class TenantIndex:
    """The rows of one tenant in one shard's Milvus."""

    def __init__(self, milvus: Milvus, tenant_id: UUID, *, model: str, dimension: int) -> None:
        """Take the Milvus of a shard, and the embedding model of the service."""
        self._milvus = milvus
        self._chosen = f'tenant_id == "{tenant_id}"'
        self._episodes = episodes.vector_index(milvus, model=model, dimension=dimension)
        self._passages = knowledge.vector_index(milvus, model=model, dimension=dimension)

    async def remove(self) -> None:
        """Remove the rows.

        Raises:
            Unavailable: Milvus does not answer.
        """
        for name in await self._names():
            await self._episodes.delete(name, [self._chosen])
        await self._passages.delete(knowledge.NAME, [self._chosen])

    async def copy_into(self, target: "TenantIndex") -> None:
        """Copy the rows, in place of those that an earlier try or move left.

        Raises:
            Unavailable: a Milvus does not answer.
            ConfigurationError: the target's index was made with another embedding model, or both are the same.
        """
        if await self._collections() & await target._collections():  # their names are unique
            raise ConfigurationError("The two shards have the same Milvus; each needs one, or a database in it.")
        await target.remove()
        shards = await episodes.shards_in(target._milvus)

        async def add_units(rows: Sequence[dict[str, Any]]) -> None:
            of_name: dict[str, list[dict[str, Any]]] = {}
            for row in rows:
                of_name.setdefault(episodes.name_of(UUID(row["user_id"]), shards), []).append(row)
            for name, mine in of_name.items():
                await target._episodes.upsert(name, mine)

        for name in await self._names():
            await self._each(name, add_units)
        await self._each(knowledge.NAME, partial(target._passages.upsert, knowledge.NAME))

    async def digests(self) -> dict[str, tuple[int, str]]:
        """Number and SHA-256 of the rows of each index, however it is divided into collections."""
        found = {}
        indexes = {"indexed_episodes": await self._names(), "indexed_passages": [knowledge.NAME]}
        for index, names in indexes.items():
            lines: list[bytes] = []

            async def add(rows: Sequence[dict[str, Any]], lines: list[bytes] = lines) -> None:
                lines.extend(_digest(row) for row in rows)

            for name in names:
                await self._each(name, add)
            found[index] = (len(lines), hashlib.sha256(b"".join(sorted(lines))).hexdigest())
        return found

    async def _names(self) -> list[str]:
        return episodes.names(await episodes.shards_in(self._milvus))

    async def _collections(self) -> set[str]:
        async with self._milvus.use() as client:
            return set(await client.list_collections())

    async def _each(self, name: str, take: Take) -> None:
        """Hand over the rows of a collection in parts; none where it is not there."""
        loop = asyncio.get_running_loop()

        def read(client: "MilvusClient") -> None:
            stored = client.describe_collection(name)["fields"]
            fields = [field["name"] for field in stored if field["name"] != _MADE]
            client.load_collection(name)
            found = client.query_iterator(name, batch_size=_AT_ONCE, filter=self._chosen, output_fields=fields)
            while batch := found.next():
                rows = [{field: row[field] for field in fields} for row in batch]
                asyncio.run_coroutine_threadsafe(take(rows), loop).result()
            found.close()

        with suppress(CollectionMissing):
            await self._milvus.in_thread(read)


def _digest(row: dict[str, Any]) -> bytes:
    digest = hashlib.sha256()
    for field in sorted(row):
        value = row[field]
        digest.update(array("f", value).tobytes() if field == "embedding" else repr(value).encode())
    return digest.digest()
