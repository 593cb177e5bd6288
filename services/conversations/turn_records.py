"""Stored turns, as they are read."""

from dataclasses import replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.conversations import turn_sql
from services.conversations.feedback import feedback_of
from services.conversations.transcript import LONGEST_TITLE
from services.conversations.turn import ListedTurn, StoredTurn, TurnOfAny, TurnState, TurnStatus
from services.conversations.values import title_of
from services.errors import NotFound
from services.platform.postgres import Database
from services.platform.shared_reads import page_after

Turn = TypeVar("Turn", bound=TurnState)


class TurnRecords:
    """Reads turns."""

    def __init__(self, database: Database) -> None:
        """Take the source of the turns."""
        self._database = database

    async def get(self, tenant_id: UUID, turn_id: UUID, *, user_id: str | None = None) -> StoredTurn:
        """Read a turn, of any user or only when it is this one's. Raises `NotFound` if the tenant, or the user,
        has no such turn."""
        values = {"turn_id": turn_id, "tenant_id": tenant_id, "user_id": user_id}
        found = await self._database.fetch(tenant_id, turn_sql.GET, values, class_row(StoredTurn))
        if not found:
            raise NotFound(f"There is no turn {turn_id}; a temporary turn is not stored.")
        return _read(found[0])

    async def under_way(self, tenant_id: UUID, user: str, session: str) -> UUID | None:
        """Return the newest unfinished turn of a conversation, by the caller's names; None = all have ended."""
        values = {"tenant_id": tenant_id, "user": user, "session": session}
        rows = await self._database.fetch(tenant_id, turn_sql.UNDER_WAY, values, tuple_row)
        return rows[0][0] if rows else None

    async def all(
        self,
        tenant_id: UUID,
        *,
        user: str | None,
        status: TurnStatus | None,
        after: tuple[datetime, UUID] | None,
        limit: int,
    ) -> list[TurnOfAny]:
        """Return turns of the tenant, or of one of its users, newest first; with `status`, only those with it."""
        values = {"tenant_id": tenant_id, "user": user, "status": status, **page_after(after, limit)}
        found = await self._database.fetch(tenant_id, turn_sql.ALL, values, class_row(TurnOfAny))
        return [replace(_read(one), title=title_of(one.title, LONGEST_TITLE)) for one in found]

    async def page(
        self, tenant_id: UUID, conversation_id: UUID, *, after: tuple[datetime, UUID] | None, limit: int
    ) -> list[ListedTurn]:
        """Return turns of a conversation, oldest first, including waiting ones."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, **page_after(after, limit)}
        return [
            _read(one)
            for one in await self._database.fetch(tenant_id, turn_sql.PAGE, values, class_row(ListedTurn))
        ]


def _read(turn: Turn) -> Turn:
    return replace(turn, feedback=feedback_of(turn.feedback))
