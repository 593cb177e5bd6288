"""Spaces of users: projects or folders, each with separate conversations and memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from services.errors import Conflict, NotFound
from services.identity.tenants import user_id_of
from services.platform.postgres import Database

_LIST: LiteralString = """
SELECT s.name, s.created_at,
       (SELECT count(*) FROM conversations c WHERE c.space_id = s.id) AS conversations,
       (SELECT count(*) FROM remembered_episodes e WHERE e.space_id = s.id) AS memories,
       (SELECT max(v.last_active_at) FROM visits v WHERE v.space_id = s.id) AS last_active_at
FROM spaces s WHERE s.tenant_id = %(tenant_id)s AND s.user_id = %(user_id)s ORDER BY s.name
"""

_RENAME: LiteralString = """
UPDATE spaces s SET name = %(new)s FROM users u
WHERE s.tenant_id = %(tenant_id)s AND u.tenant_id = %(tenant_id)s AND u.id = s.user_id
  AND u.external_id = %(user)s AND s.name = %(name)s
"""


@dataclass(frozen=True)
class ListedSpace:
    """A space, with the size of its content."""

    name: str
    created_at: datetime
    conversations: int
    memories: int
    """Episodes that hold."""
    last_active_at: datetime | None
    """When something was said in it last; null = never."""


class Spaces:
    """Lists and renames spaces, which are created with their first conversation or memory."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_user(self, tenant_id: UUID, user: str) -> Sequence[ListedSpace]:
        """The spaces of a user, by the caller's name for them, in the order of their names.

        Raises:
            NotFound: the tenant has no such user.
        """
        values = {"tenant_id": tenant_id, "user_id": await user_id_of(self._database, tenant_id, user)}
        return await self._database.fetch(tenant_id, _LIST, values, class_row(ListedSpace))

    async def rename(self, tenant_id: UUID, user: str, name: str, new: str) -> None:
        """Give a user's space another name; all that belongs to it stays there.

        Raises:
            NotFound: the user has no space of this name.
            Conflict: the user has a space of the new name already; two are not made one.
        """
        values = {"tenant_id": tenant_id, "user": user, "name": name, "new": new}
        try:
            async with self._database.tenant(tenant_id) as connection:
                renamed = await connection.execute(_RENAME, values)
        except psycopg.errors.UniqueViolation:
            raise Conflict(f"There is a space {new!r} already; spaces are not merged.") from None
        if not renamed.rowcount:
            raise NotFound(f"The user {user!r} has no space {name!r}.")
