"""The collections that hold the index of episodes, and which of them has a user's units."""

import re
from uuid import UUID

from services.platform.milvus import Milvus
from services.search.shard import has_collection
from services.search.vector_index import VectorIndex

PREFIX = "conversation_episodes"
NAME = PREFIX + "_{shard:02d}"
SHARDS = 64
_OF_SHARD = re.compile(rf"{PREFIX}_\d\d_[0-9a-f]{{32}}")


def shard_of(user_id: UUID) -> int:
    """Return the shard that holds a user's units."""
    return user_id.int % SHARDS


def name_of(user_id: UUID, shards: int) -> str:
    """Return the name of the collection that holds a user's units, out of `shards` collections."""
    return collection_name(shard_of(user_id), shards)


async def shards_in(milvus: Milvus) -> int:
    """Number of collections that hold the units of a Milvus, or will hold them when there are any.

    Raises:
        Unavailable: Milvus does not answer.
    """
    if await milvus.is_lite():
        return SHARDS
    if await has_collection(milvus, PREFIX):
        return 1
    async with milvus.use() as client:
        return SHARDS if any(map(_OF_SHARD.fullmatch, await client.list_collections())) else 1


def names(shards: int) -> list[str]:
    """Return the names of the `shards` collections of episodes."""
    return [collection_name(shard, shards) for shard in range(shards)]


def vector_index(milvus: Milvus, *, model: str, dimension: int) -> VectorIndex:
    """Return the collections of episodes, for an embedding model and its dimensions."""
    return VectorIndex(milvus, model=model, dimension=dimension, of="episodes", prefix=PREFIX)


def collection_name(shard: int, shards: int) -> str:
    """Return the name of a shard's collection, out of `shards` collections."""
    return PREFIX if shards == 1 else NAME.format(shard=shard % shards)
