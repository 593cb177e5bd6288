"""Episodes in PostgreSQL, which is authoritative for them: read for recall, written and removed."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from psycopg.rows import args_row, tuple_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.encryption.marks import Words
from services.errors import InvalidInput
from services.jobs.queue import JobQueue
from services.memory.as_of import as_of
from services.memory.blocks import Owner
from services.memory.episodes import statements as sql
from services.memory.episodes.episode import (
    MAX_CONTENT_CHARACTERS,
    NewEpisode,
    Scope,
    Source,
    StoredUnit,
    sources_of,
)
from services.memory.operations import Trigger
from services.platform.authorship import made_by
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.text.secrets import Secrets

FORGET = "forget_episodes"

_MOST_UNINDEXED = 100
"""Number of newest units of a user that are scanned in addition to the index."""


class EpisodeStore:
    """Reads, writes and removes episodes."""

    def __init__(self, database: Database, jobs: JobQueue, secrets: Secrets | None = None) -> None:
        self._database = database
        self._secrets = secrets or Secrets()
        self._jobs = jobs

    async def unindexed(self, scope: Scope) -> list[StoredUnit]:
        """Return units not indexed yet, of the newest 100 episodes, oldest first."""
        values = {**vars(scope), "most": _MOST_UNINDEXED}
        return await self._database.fetch(scope.tenant_id, sql.UNINDEXED, values, args_row(StoredUnit))

    async def found(self, scope: Scope, units: Iterable[tuple[str, str]]) -> dict[str, StoredUnit]:
        """Return units by id, as they are now, from their ids and those of their episodes.

        Those removed, or out of scope, are left out.
        """
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

    async def sources(self, scope: Scope, message_ids: Sequence[UUID]) -> dict[UUID, Source]:
        """Messages by their ids."""
        at, user_id = scope.as_of, scope.user_id
        return await sources_of(self._database, scope.tenant_id, message_ids, user_id=user_id, at=at)

    async def timezone(self, tenant_id: UUID, user_id: UUID) -> str | None:
        """Return the user's time zone; None if the user no longer exists."""
        values = {"tenant_id": tenant_id, "user_id": user_id}
        rows = await self._database.fetch(tenant_id, sql.TIMEZONE, values, tuple_row)
        return rows[0][0] if rows else None

    async def add(self, connection: Connection, owner: Owner, new: NewEpisode, trigger: Trigger) -> UUID:
        """Write a memory, in the caller's transaction; return its id. `trigger` names the writer.

        Raises:
            InvalidInput: its content is empty or too long.
        """
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
            "made_by": Jsonb(made_by(actor=trigger.actor, turn_id=trigger.turn_id)),
        }
        await connection.execute(sql.ADD, values)
        return episode_id

    async def supersede(self, connection: Connection, owner: Owner, episode_id: UUID, by: UUID) -> str | None:
        """Mark a written memory as superseded, in the caller's transaction; return its text.

        None if the owner has no valid memory with this id, or it is pinned.
        """
        values = {**vars(owner), "id": episode_id, "by": by}
        row = await (await connection.execute(sql.SUPERSEDE, values)).fetchone()
        return row[0] if row else None

    async def leave_index(
        self, connection: Connection, tenant_id: UUID, user_id: UUID, episode_ids: Sequence[UUID]
    ) -> None:
        """Queue, with the caller's transaction, that episodes which are removed leave the index."""
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
    """Return a memory's content as stored.

    Raises:
        InvalidInput: it is empty or too long.
    """
    text = content.replace("\x00", "").strip()
    if not text:
        raise InvalidInput("content", "must not be empty")
    if len(text) > MAX_CONTENT_CHARACTERS:
        raise InvalidInput("content", f"has {len(text)} characters; at most {MAX_CONTENT_CHARACTERS} are kept")
    return text
