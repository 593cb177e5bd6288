"""Episodes: units of long-term memory, the part of them that is searched, and the messages that they come from.

A completed turn is an episode, whose text is that of its messages; the others were written as memories. Search
works on *units*: one message of a turn, or a written episode.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString, Self
from uuid import UUID

from psycopg.rows import class_row

from services.memory.as_of import as_of
from services.memory.blocks import Owner
from services.platform.postgres import Database

EpisodeType = Literal["turn", "preference", "decision", "context", "outcome"]
WrittenType = Literal["preference", "decision", "context", "outcome"]
"""Types of episodes that filing, a model or a caller may write."""
Origin = Literal["user_said", "assistant_said", "tool", "document", "derived"]

IMPORTANCE: dict[WrittenType, float] = {"preference": 0.8, "decision": 0.9, "context": 0.5, "outcome": 0.6}
"""Default importance of a written episode."""
MAX_CONTENT_CHARACTERS = 4000
_ASSISTANTS = frozenset(["assistant", "ai", "bot", "chatbot", "助手", "ai助手", "机器人", "智能助手"])
"""Names for assistants in imports; any other name is that of a person."""


@dataclass(frozen=True)
class StoredUnit:
    """One message of a turn's episode, or a written episode; in the order of the columns of `statements.UNIT`."""

    episode_id: UUID
    unit_id: UUID
    episode_type: EpisodeType
    importance: float
    origin: Origin
    conversation_id: UUID | None
    created_at: datetime
    role: Literal["user", "assistant"]
    speaker: str | None
    external_id: str | None
    source_message_ids: list[UUID]
    """Messages that the whole episode comes from."""
    message_id: UUID | None
    """None if the episode was written."""
    text: str
    question_id: UUID | None = None
    """For an answer: the message that it answers."""
    question: str | None = None
    """For an answer: the beginning of that message."""


@dataclass(frozen=True, kw_only=True)
class UnitToIndex(StoredUnit):
    """A unit with its owner."""

    user_id: UUID
    expert_id: UUID
    space_id: UUID | None
    episode_at: datetime
    source_count: int
    """Messages that it comes from."""
    content_hash: str | None
    """Hash of what was written; None for a turn."""
    is_living: bool
    """Whether it is still valid; otherwise it must be removed from the index."""


@dataclass(frozen=True)
class NewEpisode:
    """A memory to write."""

    content: str
    episode_type: WrittenType
    importance: float
    """0 to 1."""
    origin: Origin
    source_message_ids: Sequence[UUID] = ()
    conversation_id: UUID | None = None


@dataclass(frozen=True)
class Source:
    """A message that an episode comes from."""

    message_id: UUID
    external_id: str | None
    """The caller's id of an imported message."""
    role: Literal["user", "assistant"]
    content: str
    speaker: str | None
    created_at: datetime


def said_by_assistant(role: str, speaker: str | None) -> bool:
    """Whether the assistant said it, not a person whom an import names as the speaker."""
    return role == "assistant" and (speaker or "assistant").lower() in _ASSISTANTS


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


TEXT_OF_TURN: LiteralString = """
LEFT JOIN LATERAL (
    SELECT string_agg(coalesce(m.speaker, m.role) || ': ' || m.content, E'\\n' ORDER BY m.created_at, m.id) AS text
    FROM remembered_messages m WHERE m.id = ANY(e.source_message_ids) AND m.completed AND e.content IS NULL
) AS said ON true
"""
"""Joins to an episode `e` of a turn what its complete messages say, as `said.text`."""

_MESSAGES: LiteralString = """
SELECT id AS message_id, external_id, role, content, speaker, created_at FROM remembered_messages
WHERE tenant_id = %(tenant_id)s AND id = ANY(%(message_ids)s) AND completed
ORDER BY created_at, id
"""


async def sources_of(
    database: Database,
    tenant_id: UUID,
    message_ids: Iterable[UUID],
    *,
    user_id: UUID | None = None,
    at: datetime | None = None,
) -> dict[UUID, Source]:
    """Return those of some messages that are remembered, by id, oldest first; with `at`, as they were then."""
    ids = list(message_ids)
    if not ids:
        return {}
    values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "message_ids": ids, "as_of": at}
    rows = await database.fetch(tenant_id, as_of(_MESSAGES) if at else _MESSAGES, values, class_row(Source))
    return {each.message_id: each for each in rows}
