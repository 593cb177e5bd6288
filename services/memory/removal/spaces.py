"""Removing a space of a user: its conversations, and all that was remembered in it. What all spaces share stays.

PostgreSQL in one transaction, which also defers the jobs that remove what other stores hold.
"""

from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import structlog
from psycopg.rows import tuple_row

from services.errors import NotFound
from services.memory.operations import Operation, Trigger
from services.memory.removal.stores import Left, RemovalStores
from services.memory.removal.tables import counted, recent_turns, remove_jobs
from services.platform.connections import Connection
from services.platform.database_errors import again_if_contended
from services.platform.postgres import UNHURRIED_S

_FIND: LiteralString = """
SELECT s.id, s.user_id FROM spaces s JOIN users u ON u.id = s.user_id
WHERE s.tenant_id = %(tenant_id)s AND u.external_id = %(user)s AND s.name = %(space)s
"""

# Changes of core memory lock these rows first. A conversation that begins in the space waits for the last lock,
# and then finds no space.
_LOCK_CORE_MEMORY: LiteralString = """
SELECT expert_id FROM core_memory_generations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s ORDER BY expert_id FOR UPDATE
"""
_LOCK_CONVERSATIONS: LiteralString = """
SELECT id FROM conversations WHERE space_id = %(space_id)s AND tenant_id = %(tenant_id)s ORDER BY id FOR UPDATE
"""
_LOCK: LiteralString = "SELECT id FROM spaces WHERE id = %(space_id)s AND tenant_id = %(tenant_id)s FOR UPDATE"

_EPISODES: LiteralString = "SELECT id FROM episodes WHERE space_id = %(space_id)s AND tenant_id = %(tenant_id)s"

_REMOVE: LiteralString = "DELETE FROM spaces WHERE id = %(space_id)s AND tenant_id = %(tenant_id)s"

_CHANGED: LiteralString = """
UPDATE core_memory_generations SET generation = generation + 1
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ErasedSpace:
    """What was removed with a space."""

    user_id: str
    """The caller's own name for the user."""
    space: str
    removed: dict[str, dict[str, int]]
    """How many of each kind, by store."""
    pending: list[str] = field(default_factory=list)
    """Stores that did not answer; jobs go on trying."""


class SpaceErasure:
    """Removes spaces."""

    def __init__(self, stores: RemovalStores) -> None:
        self._stores = stores

    @again_if_contended
    async def erase(self, tenant_id: UUID, user: str, space: str) -> ErasedSpace:
        """Remove a space of a user from every store; its turns that are under way are cancelled first.

        Raises:
            NotFound: the user has no such space.
        """
        values: dict[str, Any] = {"tenant_id": tenant_id, "user": user, "space": space, "recent_s": 0}
        found = await self._stores.database.fetch(tenant_id, _FIND, values, tuple_row)
        if not found:
            raise NotFound(f"The user {user!r} has no space {space!r}.")
        values["space_id"], values["user_id"] = found[0]
        async with self._stores.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            turns = await recent_turns(connection, "space", values)
        await self._stores.stop(tenant_id, turns)
        values["recent_s"] = self._stores.recent_s
        async with self._stores.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            experts = [row[0] for row in await _all(connection, _LOCK_CORE_MEMORY, values)]
            await connection.execute(_LOCK_CONVERSATIONS, values)
            if not await _all(connection, _LOCK, values):
                raise NotFound(f"The user {user!r} has no space {space!r}.")
            turns = await recent_turns(connection, "space", values)
            counts = await counted(connection, "space", values)
            episodes = [row[0] for row in await _all(connection, _EPISODES, values)]
            jobs = await remove_jobs(connection, "space", values)
            await connection.execute(_REMOVE, values)
            await connection.execute(_CHANGED, values)
            await self._stores.operations.append(
                connection,
                tenant_id,
                values["user_id"],
                Operation("space_delete", results={"removed": counts}),
                Trigger("user"),
            )
            left = Left(values["user_id"], turns, experts, episodes)
            await self._stores.defer(connection, tenant_id, left)
        elsewhere, pending = await self._stores.clean(left)
        log.info("space erased", tenant_id=str(tenant_id), space_id=str(values["space_id"]), pending=pending)
        return ErasedSpace(user, space, {"postgresql": counts, "queue": {"jobs": jobs}, **elsewhere}, pending)


async def _all(connection: Connection, statement: LiteralString, values: dict[str, Any]) -> list[Any]:
    return await (await connection.execute(statement, values)).fetchall()
