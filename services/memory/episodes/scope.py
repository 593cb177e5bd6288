"""The part of memory that is searched."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from services.memory.blocks import Owner
from services.memory.episodes.index_row import held_by, milliseconds


@dataclass(frozen=True)
class Scope:
    """The units to search: those of a user with an expert, narrowed by the other fields."""

    tenant_id: UUID
    user_id: UUID
    expert_id: UUID
    conversation_id: UUID | None = None
    episode_type: str | None = None
    """Validated against the known types before."""
    since: datetime | None = None
    until: datetime | None = None
    """Not included."""
    space_id: UUID | None = None
    """The space whose units are searched in addition to the shared ones; None = only the shared ones."""
    without: frozenset[str] = frozenset()
    """Ids of memories and messages to exclude."""
    as_of: datetime | None = None
    """The moment whose memory is searched; None = now."""

    @classmethod
    def of(
        cls,
        owner: Owner,
        *,
        conversation_id: UUID | None = None,
        episode_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        without: Iterable[str] = (),
        as_of: datetime | None = None,
    ) -> "Scope":
        """Return the scope of an owner's memory, or a part of it."""
        return cls(
            owner.tenant_id,
            owner.user_id,
            owner.expert_id,
            conversation_id,
            episode_type,
            since,
            until,
            owner.space_id,
            frozenset(without),
            as_of,
        )

    @property
    def whole(self) -> "Scope":
        """The whole memory of its owner."""
        return Scope(self.tenant_id, self.user_id, self.expert_id, space_id=self.space_id, as_of=self.as_of)


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
