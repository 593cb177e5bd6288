"""A collection of an index, seen from beneath: what names it, and how one takes the place of another.

What is searched is an alias; behind it is a collection with its own name, so that a new one can be filled
beside it.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from uuid_utils.compat import uuid7

from services.platform.milvus import NO_SUCH_COLLECTION, CollectionMissing, Milvus, pymilvus
from services.search.collection import copy_collection

if TYPE_CHECKING:
    from pymilvus import AsyncMilvusClient

Result = TypeVar("Result")

_BEHIND = re.compile(r"_[0-9a-f]{32}")
_ROWS_AT_ONCE = 50
"""Rows of a request. The client makes it in one step of the event loop, at up to 0.3 ms for a row."""


class NewCollection:
    """A collection that is being filled and is searched by nobody yet."""

    def __init__(self, milvus: Milvus, name: str, physical: str) -> None:
        self._milvus = milvus
        self._name = name
        self._physical = physical

    async def add(self, entities: Sequence[dict[str, Any]]) -> None:
        """Add rows. Raises `Unavailable` if Milvus does not answer."""
        await upsert(self._milvus, self._physical, entities)

    async def put_in_place(self) -> None:
        """Let it be searched instead of the one before, and remove that and whatever was left of a broken try.
        Raises `Unavailable` if Milvus does not answer."""
        async with self._milvus.use() as client:
            await client.flush(self._physical)
            await client.load_collection(self._physical)
            if await _exists(client, self._name):
                await client.alter_alias(self._physical, self._name)
            else:
                await client.create_alias(self._physical, self._name)
            await _drop_all_but(client, self._name, self._physical)


async def upsert(milvus: Milvus, name: str, entities: Sequence[dict[str, Any]]) -> None:
    """Add or replace rows of a collection, in parts; the event loop goes on between them. Raises
    `CollectionMissing` if there is no such collection, and `Unavailable` if Milvus does not answer."""
    for begin in range(0, len(entities), _ROWS_AT_ONCE):
        async with milvus.use() as client:
            await client.upsert(name, list(entities[begin : begin + _ROWS_AT_ONCE]))


def new_name(name: str) -> str:
    """Name of a new collection behind a name that is searched."""
    return f"{name}_{uuid7().hex}"


async def rewrite(milvus: Milvus, name: str) -> int:
    """Copy a shard's living rows into a new collection, and drop the old one with its files; return the rows.
    Raises `Unavailable` if Milvus does not answer; then the old one is still in use."""
    try:
        async with milvus.use() as client:
            await client.load_collection(name)
    except CollectionMissing:
        await remove_leftovers(milvus, name)
        return 0
    physical = new_name(name)
    count = await milvus.in_thread(partial(copy_collection, name=name, into=physical))
    await NewCollection(milvus, name, physical).put_in_place()
    return count


async def remove_leftovers(milvus: Milvus, name: str) -> None:
    """Remove the collections behind a name that are not in use: what was left of a try that was broken off.
    Raises `Unavailable` if Milvus does not answer."""
    async with milvus.use() as client:
        in_use = (await client.describe_collection(name))["collection_name"] if await _exists(client, name) else ""
        await _drop_all_but(client, name, in_use)


async def remove(milvus: Milvus, name: str) -> None:
    """Remove what a name stands for and whatever was left of a try that was broken off. Raises `Unavailable` if
    Milvus does not answer."""
    async with milvus.use() as client:
        if await _exists(client, name):
            await client.drop_alias(name)
        await _drop_all_but(client, name, "")


async def loaded(client: "AsyncMilvusClient", name: str, ask: Callable[[], Awaitable[Result]]) -> Result:
    """Ask; a collection that its server has reopened is loaded first."""
    try:
        return await ask()
    except pymilvus().MilvusException as error:
        if "load" not in str(error.message).lower():
            raise
    await client.load_collection(name)
    return await ask()


async def _exists(client: "AsyncMilvusClient", name: str) -> bool:
    try:
        await client.describe_collection(name)
    except pymilvus().MilvusException as error:
        if error.code != NO_SUCH_COLLECTION:
            raise
        return False
    return True


async def _drop_all_but(client: "AsyncMilvusClient", name: str, kept: str) -> None:
    for each in await client.list_collections():
        if each.startswith(name) and _BEHIND.fullmatch(each[len(name) :]) and each != kept:
            await client.drop_collection(each)
