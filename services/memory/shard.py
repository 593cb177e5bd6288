"""One of the index's collections, seen from beneath: what names it, and how one takes the place of another.

What is searched is an alias; behind it is a collection with a name of its own, so that a new one can be filled
beside it.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from uuid_utils.compat import uuid7

from services.memory.collection import copy_collection
from services.memory.index_row import IndexRow, as_entity
from services.platform.milvus import NO_SUCH_COLLECTION, CollectionMissing, Milvus

if TYPE_CHECKING:
    from pymilvus import AsyncMilvusClient

Result = TypeVar("Result")

NAME = "conversation_episodes_{shard:02d}"
COLLECTION = re.compile(r"conversation_episodes_\d\d_[0-9a-f]{32}")


class NewShard:
    """A collection that is being filled and is searched by nobody yet."""

    def __init__(self, milvus: Milvus, shard: int, physical: str) -> None:
        self._milvus = milvus
        self._name = NAME.format(shard=shard)
        self._physical = physical

    async def add(self, rows: Sequence[IndexRow]) -> None:
        """Add units.

        Raises:
            Unavailable: Milvus does not answer.
        """
        if rows:
            async with self._milvus.use() as client:
                await client.upsert(self._physical, [as_entity(row) for row in rows])

    async def put_in_place(self) -> None:
        """Let it be searched instead of the one before, and remove that and whatever was left of a broken try.

        Raises:
            Unavailable: Milvus does not answer.
        """
        async with self._milvus.use() as client:
            await client.flush(self._physical)
            await client.load_collection(self._physical)
            if await _exists(client, self._name):
                await client.alter_alias(self._physical, self._name)
            else:
                await client.create_alias(self._physical, self._name)
            await _drop_all_but(client, self._name, self._physical)


async def write_anew(milvus: Milvus, shard: int) -> int:
    """Copy a shard's living rows into a new collection, and drop the old one with its files; return the rows.

    Raises:
        Unavailable: Milvus does not answer; then the old one is still in use.
    """
    name = NAME.format(shard=shard)
    try:
        async with milvus.use() as client:
            await client.load_collection(name)
    except CollectionMissing:
        await remove_leftovers(milvus, shard)
        return 0
    physical = f"{name}_{uuid7().hex}"
    count = await milvus.in_thread(partial(copy_collection, name=name, into=physical))
    await NewShard(milvus, shard, physical).put_in_place()
    return count


async def remove_leftovers(milvus: Milvus, shard: int) -> None:
    """Remove a shard's collections that are not in use: what was left of a try that was broken off.

    Raises:
        Unavailable: Milvus does not answer.
    """
    name = NAME.format(shard=shard)
    async with milvus.use() as client:
        in_use = (await client.describe_collection(name))["collection_name"] if await _exists(client, name) else ""
        await _drop_all_but(client, name, in_use)


async def remove(milvus: Milvus, shard: int) -> None:
    """Remove a shard and whatever was left of a try that was broken off.

    Raises:
        Unavailable: Milvus does not answer.
    """
    name = NAME.format(shard=shard)
    async with milvus.use() as client:
        if await _exists(client, name):
            await client.drop_alias(name)
        await _drop_all_but(client, name, "")


async def loaded(client: "AsyncMilvusClient", name: str, ask: Callable[[], Awaitable[Result]]) -> Result:
    """Ask; a collection that its server has opened anew is loaded first."""
    from pymilvus import MilvusException  # noqa: PLC0415 — imported by now

    try:
        return await ask()
    except MilvusException as error:
        if "load" not in str(error.message).lower():
            raise
    await client.load_collection(name)
    return await ask()


async def _exists(client: "AsyncMilvusClient", name: str) -> bool:
    from pymilvus import MilvusException  # noqa: PLC0415 — imported by now

    try:
        await client.describe_collection(name)
    except MilvusException as error:
        if error.code != NO_SUCH_COLLECTION:
            raise
        return False
    return True


async def _drop_all_but(client: "AsyncMilvusClient", name: str, kept: str) -> None:
    for each in await client.list_collections():
        if COLLECTION.fullmatch(each) and each.startswith(name) and each != kept:
            await client.drop_collection(each)
