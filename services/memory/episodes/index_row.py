"""Units as rows of the index, the collections that hold them, and the filter by which they are searched."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from services.memory.episodes.episode import Scope
from services.platform.milvus import Milvus
from services.search.collection import terms_that_fit
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


@dataclass(frozen=True)
class IndexRow:
    """A unit as it is indexed."""

    unit_id: UUID
    """Id of the message, or of the written episode."""
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
    """An array where there are many rows: the garbage collector does not look at each of its numbers."""
    space_id: UUID | None = None


def milliseconds(at: datetime) -> int:
    """Return a time in milliseconds since the epoch, as the index stores it."""
    return int(at.timestamp() * 1000)


def held_by(expert_id: UUID, space_id: UUID | None) -> UUID:
    """Return the value of the field `expert_id` of a collection: the expert, or one made of it and a space."""
    return expert_id if space_id is None else uuid5(expert_id, str(space_id))


def as_entity(row: IndexRow) -> dict[str, Any]:
    """The row's fields by their names in the collection."""
    return {
        "id": str(row.unit_id),
        "episode_id": str(row.episode_id),
        "tenant_id": str(row.tenant_id),
        "user_id": str(row.user_id),
        "expert_id": str(held_by(row.expert_id, row.space_id)),
        "conversation_id": str(row.conversation_id or ""),
        "episode_type": row.episode_type,
        "importance": row.importance,
        "created_at": milliseconds(row.created_at),
        "terms": terms_that_fit(row.terms),
        "embedding": row.embedding,
    }


def filter_of(scope: Scope) -> str:
    """Build the filter of Milvus, only from our own ids, numbers and names: callers' text never gets here."""
    spaces = dict.fromkeys((None, scope.space_id))
    holders = ", ".join(f'"{held_by(scope.expert_id, space_id)}"' for space_id in spaces)
    parts = [f'tenant_id == "{scope.tenant_id}"', f'user_id == "{scope.user_id}"', f"expert_id in [{holders}]"]
    if scope.conversation_id:
        parts.append(f'conversation_id == "{scope.conversation_id}"')
    if scope.episode_type:
        parts.append(f'episode_type == "{scope.episode_type}"')
    if scope.since:
        parts.append(f"created_at >= {milliseconds(scope.since)}")
    if scope.until:
        parts.append(f"created_at < {milliseconds(scope.until)}")
    return " and ".join(parts)
