"""Episodes: units of long-term memory.

A completed turn is an episode, whose text is that of its messages; the others were written as memories. Search
works on *units*: one message of a turn, or a written episode.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

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
class WrittenEpisode:
    """A written memory, verbatim."""

    id: UUID
    episode_type: EpisodeType
    content: str
    said_at: datetime
    """Time of its first source message; without one, when it was written."""
    message_ids: list[UUID]
    """Messages that it comes from."""


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
