"""The collections that hold the index of episodes, and which of them has a user's units."""

from uuid import UUID

from services.platform.milvus import Milvus
from services.search.vector_index import VectorIndex

PREFIX = "conversation_episodes"
NAME = PREFIX + "_{shard:02d}"
SHARDS = 64


def shard_of(user_id: UUID) -> int:
    """Return the shard that holds a user's units."""
    return user_id.int % SHARDS


async def shards_in(milvus: Milvus) -> int:
    """Return the number of collections that hold the units of a Milvus."""
    return SHARDS if await milvus.is_lite() else 1


def vector_index(milvus: Milvus, *, model: str, dimension: int) -> VectorIndex:
    """Return the collections of episodes, for an embedding model and its dimensions."""
    return VectorIndex(milvus, model=model, dimension=dimension, of="episodes", prefix=PREFIX)


def collection_name(shard: int, shards: int) -> str:
    """Return the name of a shard's collection, out of `shards` collections."""
    return PREFIX if shards == 1 else NAME.format(shard=shard % shards)
