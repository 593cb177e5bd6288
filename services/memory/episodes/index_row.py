"""Units as rows of the index."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from services.search.collection import terms_that_fit
from services.text.tokenizer import indexed_text

_OF_AN_ANSWER = 240
"""Bytes of an assistant's answer that are embedded, as many English or a third as many Chinese characters: its
subject stands there, and the encoder's time grows with the text."""


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


def embedded_text(role: str, speaker: str | None, text: str) -> str:
    """Return what of a unit is embedded: of an answer whose author has no name, the beginning."""
    if role == "assistant" and not speaker:
        return text[:_OF_AN_ANSWER].encode()[:_OF_AN_ANSWER].decode(errors="ignore")
    return indexed_text(speaker or "", text)


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
