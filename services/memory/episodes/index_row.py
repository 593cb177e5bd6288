"""Units as rows of the index."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from services.search.collection import terms_that_fit


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
