"""The part of memory that is searched."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from services.memory.blocks import Owner
from services.memory.episodes.index_row import held_by, milliseconds


@dataclass(frozen=True)
class Scope(Owner):
    """The units to search: an owner's, with those that all spaces share, narrowed by the other fields."""

    conversation_id: UUID | None = None
    episode_type: str | None = None
    """Validated against the known types before."""
    since: datetime | None = None
    until: datetime | None = None
    """Not included."""
    without: frozenset[str] = frozenset()
    """Ids of memories and messages to exclude."""
    as_of: datetime | None = None
    """The moment whose memory is searched; None = now."""

    @classmethod
    def of(cls, owner: Owner, **narrowed: Any) -> Self:
        """Return the scope of an owner's memory, or the part of it that other fields narrow it to."""
        return cls(**vars(owner), **narrowed)

    @property
    def whole(self) -> "Scope":
        """The whole memory of its owner."""
        return Scope(self.tenant_id, self.user_id, self.expert_id, self.space_id, as_of=self.as_of)


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
