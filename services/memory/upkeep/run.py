"""A run of upkeep: what it would do, and what it did."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from services.memory.episodes.episode import EpisodeType
from services.memory.upkeep.pairs import Pair
from services.memory.upkeep.policy import Action, UpkeepPolicy

Reason = Literal["night", "request", "import"]


@dataclass(frozen=True)
class FadingMemory:
    """A memory that would fade, and why."""

    id: UUID
    expert: str
    space: str | None
    """Name of its space; None = all spaces share it."""
    episode_type: EpisodeType
    content: str
    """The memory as it was written; of a turn what was said, with who said it."""
    importance: float
    learned_at: datetime
    last_recalled_at: datetime | None
    unused_days: int
    """Whole days since it was last recalled, or learned if it never was."""
    why: str
    """The reason in words."""


@dataclass(frozen=True)
class UpkeepPreview:
    """What a run would do at this moment."""

    policy: UpkeepPolicy
    merges: list[Pair]
    """Memories that another one says as well."""
    total: int
    """Memories that would fade."""
    fading: list[FadingMemory]
    """The first 1000 of them, longest unused first."""


@dataclass(frozen=True)
class UpkeepRun:
    """A run as it is reported."""

    id: UUID
    reason: Reason
    action: Action | None
    """What became of memories that faded, if by the policy any did."""
    days: int | None
    """The figures of the policy that it followed, unless nothing was to fade."""
    importance: float | None
    """Importance of that policy."""
    merged_ids: list[UUID]
    """Memories that another one says as well."""
    faded_ids: list[UUID]
    """Memories that it archived or removed."""
    created_at: datetime
    undone_at: datetime | None
    forgotten_at: datetime | None
    """When what it removed was deleted for good."""
    can_be_undone: bool
