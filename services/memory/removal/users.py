"""Removing a user, with all that is stored for them, from every store."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import structlog

from services.errors import NotFound
from services.memory.removal.stores import Left, RemovalStores
from services.memory.removal.tables import counted, recent_turns, remove_jobs
from services.platform.database_errors import again_if_contended
from services.platform.postgres import UNHURRIED_S
from services.search.vector_index import WRITING

_USER = "SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s"

# A conversation that begins meanwhile waits for this lock, and then finds no user.
_LOCK = "SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND id = %(user_id)s FOR UPDATE"

_INDEXED = "SELECT 1 FROM episodes WHERE user_id = %(user_id)s AND indexed_at IS NOT NULL LIMIT 1"

_EXPERTS: LiteralString = """
SELECT expert_id FROM core_memory_generations WHERE user_id = %(user_id)s
UNION SELECT expert_id FROM conversations WHERE user_id = %(user_id)s
"""

_REMOVE = "DELETE FROM users WHERE tenant_id = %(tenant_id)s AND id = %(user_id)s"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Erased:
    """Counts of what was removed of a user."""

    user_id: str
    """The caller's own name for the user."""
    removed: dict[str, dict[str, int]]
    """How many of each kind, by store."""
    pending: list[str] = field(default_factory=list)
    """Stores that did not answer; the job goes on trying."""


class UserErasure:
    """Erases users."""

    def __init__(self, stores: RemovalStores) -> None:
        self._stores = stores

    @again_if_contended
    async def erase(self, tenant_id: UUID, user: str) -> Erased:
        """Remove a user, with all that is stored for them, from every store; running turns are cancelled first.

        Raises:
            NotFound: the tenant has no such user.
        """
        values: dict[str, Any] = {"tenant_id": tenant_id, "user": user, "recent_s": 0}
        async with self._stores.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            row = await (await connection.execute(_USER, values)).fetchone()
            if row is None:
                raise NotFound(f"There is no user {user!r}.")
            values["user_id"] = row[0]
            turns = await recent_turns(connection, "user", values)
        await self._stores.stop(tenant_id, turns)
        values["recent_s"] = self._stores.recent_s
        async with self._stores.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            if await (await connection.execute(_LOCK, values)).fetchone() is None:
                raise NotFound(f"There is no user {user!r}.")
            left = Left(
                values["user_id"],
                await recent_turns(connection, "user", values),
                [row[0] for row in await (await connection.execute(_EXPERTS, values)).fetchall()],
                whole_user=True,
                is_indexed=await (await connection.execute(_INDEXED, values)).fetchone() is not None,
            )
            counts = await counted(connection, "user", values)
            jobs = await remove_jobs(connection, "user", values)
            await connection.execute(_REMOVE, values)
            await self._stores.defer(connection, tenant_id, left)
            # Before the commit: a concurrent writer for the user finds no row, and comes back with a new key.
            if (vault := self._stores.database.vault) is not None:
                await asyncio.to_thread(vault.keys.destroy, tenant_id, user)
        elsewhere, pending = await self._stores.clean(left)
        removed = {"postgresql": counts, "queue": {"jobs": jobs}, **elsewhere}
        log.info("user erased", tenant_id=str(tenant_id), user_id=str(left.user_id), pending=pending)
        return Erased(user, removed, pending)

    async def scrub_index(self) -> int:
        """Rewrite the index with the rows that are not removed, so that no file holds the others; return how many.

        Raises:
            Unavailable: Milvus or the database does not answer.
        """
        async with self._stores.database.only_one(WRITING, wait=True):
            return await self._stores.index.rewrite()
