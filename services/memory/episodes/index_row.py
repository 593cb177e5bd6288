"""Units as rows of the index, the collections that hold them, and the filter by which they are searched."""

from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from services.memory.episodes.episode import IndexedUnit, Scope
from services.search.collection import terms_that_fit

PREFIX = "conversation_episodes"
NAME = PREFIX + "_{shard:02d}"
SHARDS = 64


def shard_of(user_id: UUID) -> int:
    """Return the shard that holds a user's units."""
    return user_id.int % SHARDS


def collection_name(shard: int, shards: int) -> str:
    """Return the name of a shard's collection, out of `shards` collections."""
    return PREFIX if shards == 1 else NAME.format(shard=shard % shards)


def milliseconds(at: datetime) -> int:
    """Return a time in milliseconds since the epoch, as the index stores it."""
    return int(at.timestamp() * 1000)


def held_by(expert_id: UUID, space_id: UUID | None) -> UUID:
    """Return the value of the field `expert_id` of a collection: the expert, or one made of it and a space."""
    return expert_id if space_id is None else uuid5(expert_id, str(space_id))


def as_entity(unit: IndexedUnit) -> dict[str, Any]:
    """The unit's fields by their names in the collection."""
    return {
        "id": str(unit.unit_id),
        "episode_id": str(unit.episode_id),
        "tenant_id": str(unit.tenant_id),
        "user_id": str(unit.user_id),
        "expert_id": str(held_by(unit.expert_id, unit.space_id)),
        "conversation_id": str(unit.conversation_id or ""),
        "episode_type": unit.episode_type,
        "importance": unit.importance,
        "created_at": milliseconds(unit.created_at),
        "terms": terms_that_fit(unit.terms),
        "embedding": unit.embedding,
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
