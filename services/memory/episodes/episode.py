"""Episodes: units of long-term memory, the part of them that is searched, and their store in PostgreSQL.

A completed turn is an episode, whose text is that of its messages; the others were written as memories. Search
works on *units*: one message of a turn, or a written episode. A long one is searched by its passages.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString, Self
from uuid import UUID

from psycopg.rows import args_row, class_row, tuple_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.encryption.marks import Words
from services.errors import InvalidInput
from services.jobs.queue import JobQueue
from services.memory.as_of import as_of
from services.memory.core.blocks import Owner
from services.memory.episodes import statements as sql
from services.memory.operations import Trigger
from services.platform.authorship import made_by
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.text.secrets import Secrets

EpisodeType = Literal["turn", "preference", "decision", "context", "outcome"]
WrittenType = Literal["preference", "decision", "context", "outcome"]
"""Types of episodes that filing, a model or a caller may write."""
Origin = Literal["user_said", "assistant_said", "tool", "document", "derived"]

IMPORTANCE: dict[WrittenType, float] = {"preference": 0.8, "decision": 0.9, "context": 0.5, "outcome": 0.6}
"""Default importance of a written episode."""
MAX_CONTENT_CHARACTERS = 4000
_ASSISTANTS = frozenset(["assistant", "ai", "bot", "chatbot", "助手", "ai助手", "机器人", "智能助手"])
"""Names for assistants in imports; any other name is that of a person."""

FORGET = "forget_episodes"

PassageId = tuple[UUID, int]
"""A unit, and the number of one of its passages (`services/text/passages.py`); most have but the one, 0."""

_MOST_UNINDEXED = 100
"""Number of newest units of a user that are scanned in addition to the index."""


@dataclass
class StoredUnit:
    """One message of a turn's episode, or a written episode; in the order of the columns of `statements.UNIT`.
    Nobody changes one; frozen, it takes eight times as long to make, and a recall makes twenty."""

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
    question_speaker: str | None = None
    """For an answer: another participant who asked; None = the user."""
    valid_until: datetime | None = None
    """When all that the episode says was replaced; None = something of it may hold."""
    filed: Sequence[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]] | None = None
    """Contents of core memory before and after each change that was made from the message."""


@dataclass(kw_only=True)
class IndexedUnit(StoredUnit):
    """A unit with its owner, as it is indexed."""

    tenant_id: UUID
    user_id: UUID
    expert_id: UUID
    space_id: UUID | None
    episode_at: datetime
    source_count: int
    """Number of messages that it comes from."""
    content_hash: str | None
    """Hash of what was written; None for a turn."""
    is_living: bool
    """Whether it is still valid; if not, it must be removed from the index."""
    indexed_passages: int = 1
    """Largest number of passages that a unit of its episode ever had in the index."""
    passage: int = 0
    """Number of the passage that is indexed."""
    terms: Sequence[str] = ()
    embedding: Sequence[float] = ()
    """Embedding; an array where there are many, because the garbage collector looks at each number of a list."""


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
    """Return whether the assistant said it, and not a person whom an import names as the speaker."""
    return role == "assistant" and (speaker or "assistant").lower() in _ASSISTANTS


@dataclass(frozen=True)
class Scope(Owner):
    """The units to search: an owner's, with those that all spaces share, narrowed by the other fields."""

    conversation_id: UUID | None = None
    episode_type: str | None = None
    """Type of the episodes, which must be checked against the known types before."""
    since: datetime | None = None
    until: datetime | None = None
    """Not included."""
    without: frozenset[str] = frozenset()
    """Ids of memories and messages to exclude."""
    as_of: datetime | None = None
    """The moment whose memory is searched; None = now."""

    @classmethod
    def of(cls, owner: Owner, **narrowed: Any) -> Self:
        """Return the scope of an owner's memory, or the part of it to which the other fields narrow it."""
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
"""Join that adds to a turn's episode `e` the text of its complete messages, as `said.text`."""


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
    """Return those of the messages that are remembered, oldest first; with `at`, as they were at that moment."""
    ids = list(message_ids)
    if not ids:
        return {}
    values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "message_ids": ids, "as_of": at}
    rows = await database.fetch(tenant_id, as_of(_MESSAGES) if at else _MESSAGES, values, class_row(Source))
    return {each.message_id: each for each in rows}


class EpisodeStore:
    """Reads, writes and removes episodes."""

    def __init__(self, database: Database, jobs: JobQueue, secrets: Secrets | None = None) -> None:
        self._database = database
        self._secrets = secrets or Secrets()
        self._jobs = jobs

    async def unindexed(self, scope: Scope) -> list[StoredUnit]:
        """Return units that are not indexed yet, among the newest 100 episodes, oldest first."""
        values = {**vars(scope), "most": _MOST_UNINDEXED}
        return await self._database.fetch(scope.tenant_id, sql.UNINDEXED, values, args_row(StoredUnit))

    async def found(self, scope: Scope, units: Iterable[tuple[str, str]]) -> dict[str, StoredUnit]:
        """Return units in their current state, given their ids and those of their episodes. Units that were
        removed or are out of scope are left out."""
        pairs = list(units)
        if not pairs:
            return {}
        values = {
            **vars(scope),
            # As text: the driver takes five times as long for a list of ids.
            "unit_ids": f"{{{','.join([unit_id for unit_id, _ in pairs])}}}",
            "episode_ids": f"{{{','.join([episode_id for _, episode_id in pairs])}}}",
        }
        statement = as_of(sql.FOUND) if scope.as_of else sql.FOUND
        rows = await self._database.fetch(
            scope.tenant_id, statement, values, args_row(StoredUnit), generic=not scope.as_of
        )
        return {str(row.unit_id): row for row in rows}

    async def timezone(self, tenant_id: UUID, user_id: UUID) -> str | None:
        """Return the user's time zone; None if the user no longer exists."""
        values = {"tenant_id": tenant_id, "user_id": user_id}
        rows = await self._database.fetch(tenant_id, sql.TIMEZONE, values, tuple_row)
        return rows[0][0] if rows else None

    async def add(self, connection: Connection, owner: Owner, new: NewEpisode, trigger: Trigger) -> UUID:
        """Write a memory, in the caller's transaction; return its id. `trigger` names the writer. Raises
        `InvalidInput` if its content is empty or too long."""
        episode_id = uuid7()
        values = {
            **vars(owner),
            "id": episode_id,
            "conversation_id": new.conversation_id,
            "episode_type": new.episode_type,
            "content": Words(checked_content(self._secrets.without(new.content))),
            "importance": new.importance,
            "origin": new.origin,
            "source_message_ids": list(new.source_message_ids),
            "made_by": Jsonb(made_by(actor=trigger.actor, turn_id=trigger.turn_id, by=trigger.by)),
        }
        await connection.execute(sql.ADD, values)
        return episode_id

    async def supersede(self, connection: Connection, owner: Owner, episode_id: UUID, by: UUID) -> str | None:
        """Mark a written memory as superseded, in the caller's transaction; return its text. None if the owner
        has no valid memory with this id, or it is pinned."""
        values = {**vars(owner), "id": episode_id, "by": by}
        row = await (await connection.execute(sql.SUPERSEDE, values)).fetchone()
        return row[0] if row else None

    async def leave_index(
        self, connection: Connection, tenant_id: UUID, user_id: UUID, episode_ids: Sequence[UUID]
    ) -> None:
        """Queue in the caller's transaction the removal of episodes from the index."""
        ids = list(episode_ids)
        await self._jobs.defer(connection, FORGET, tenant_id=tenant_id, user_id=user_id, episode_ids=ids)

    async def index_again(self, tenant_id: UUID, user_id: UUID) -> bool:
        """Have all episodes of a user whose part of the index is missing indexed again.

        Returns:
            Whether anything was lost, or is waiting that is not scanned in addition to the index.
        """
        values = {"tenant_id": tenant_id, "user_ids": [user_id]}
        async with self._database.tenant(tenant_id) as connection:
            lost = await connection.execute(sql.NOT_INDEXED, values)
            row = await (await connection.execute(sql.WAITING, {"user_id": user_id, **values})).fetchone()
        return lost.rowcount > 0 or (row is not None and row[0] > _MOST_UNINDEXED)


def checked_content(content: str) -> str:
    """Return a memory's content as stored. Raises `InvalidInput` if it is empty or too long."""
    text = content.replace("\x00", "").strip()
    if not text:
        raise InvalidInput("content", "must not be empty")
    if len(text) > MAX_CONTENT_CHARACTERS:
        raise InvalidInput("content", f"has {len(text)} characters; at most {MAX_CONTENT_CHARACTERS} are kept")
    return text
