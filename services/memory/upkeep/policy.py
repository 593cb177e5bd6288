"""A tenant's policy of upkeep, the preview of a run, and the report of a run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row
from pydantic import ConfigDict, Field

from services.memory.episodes.episode import EpisodeType
from services.platform.postgres import Database

Fading = Literal["never", "archive"]

_READ: LiteralString = """
SELECT fading, fading_days, fading_importance FROM upkeep_policies WHERE tenant_id = %(tenant_id)s
"""

_WRITE: LiteralString = """
INSERT INTO upkeep_policies (tenant_id, fading, fading_days, fading_importance)
VALUES (%(tenant_id)s, %(fading)s, %(fading_days)s, %(fading_importance)s)
ON CONFLICT (tenant_id) DO UPDATE SET fading = excluded.fading, fading_days = excluded.fading_days,
    fading_importance = excluded.fading_importance, updated_at = clock_timestamp()
"""


@dataclass(frozen=True)
class UpkeepPolicy:
    """Policy of upkeep for the memory of a tenant's users."""

    __pydantic_config__ = ConfigDict(
        extra="forbid",
        use_attribute_docstrings=True,
        json_schema_extra={"examples": [{"fading": "archive", "fading_days": 180, "fading_importance": 0.3}]},
    )

    fading: Fading = "never"
    """Fate of memories that are unimportant and unused."""
    fading_days: Annotated[int, Field(ge=1, le=36_500)] = 90
    """Days since a memory was last recalled, or learned if it never was."""
    fading_importance: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Importance below which a memory is unimportant, from 0 (none is) to 1."""


async def policy_of(database: Database, tenant_id: UUID) -> UpkeepPolicy:
    """Return a tenant's policy; the default one unless it was set."""
    rows = await database.fetch(tenant_id, _READ, {"tenant_id": tenant_id}, class_row(UpkeepPolicy))
    return rows[0] if rows else UpkeepPolicy()


async def change_policy(database: Database, tenant_id: UUID, policy: UpkeepPolicy) -> None:
    """Set a tenant's policy, which applies from the next run on."""
    async with database.tenant(tenant_id) as connection:
        await connection.execute(_WRITE, {"tenant_id": tenant_id, **vars(policy)})


Reason = Literal["night", "request", "import"]


@dataclass(frozen=True)
class FadingMemory:
    """A memory that would fade, and why."""

    id: UUID
    expert: str
    space: str | None
    """Name of its space; None if all spaces share it."""
    episode_type: EpisodeType
    content: str
    """Text of a written memory; for a turn, what was said, with the speakers."""
    importance: float
    learned_at: datetime
    last_recalled_at: datetime | None
    unused_days: int
    """Whole days since it was last recalled, or learned if it never was."""
    why: str
    """The reason in words."""


@dataclass(frozen=True)
class Merge:
    """A memory that is dropped because another one says the same."""

    id: UUID
    """The memory that goes."""
    kept_id: UUID
    """The memory, or section of core memory, that stays."""
    content: str
    kept_content: str
    kept_in_core: bool


@dataclass(frozen=True)
class UpkeepPreview:
    """Changes that a run would make now."""

    policy: UpkeepPolicy
    merges: list[Merge]
    total: int
    """Number of memories that would fade."""
    fading: list[FadingMemory]
    """The first 1000 of them, longest unused first."""


@dataclass(frozen=True)
class UpkeepRun:
    """The report of a run."""

    id: UUID
    reason: Reason
    days: int | None
    """Days in the policy that it followed; None if nothing was to fade."""
    importance: float | None
    """Importance of that policy."""
    merged_ids: list[UUID]
    """Memories that were dropped because another one says the same."""
    faded_ids: list[UUID]
    """Memories that were archived."""
    created_at: datetime
    undone_at: datetime | None
    can_be_undone: bool
