"""Removal of a whole user, space or conversation from every store, with everything made from it.

PostgreSQL is changed in one transaction, which also queues the jobs for the other stores. What was made from the
conversation and from others together is made again without it: daily summaries, merged episodes, core memory.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import structlog
from psycopg.rows import dict_row

from services.errors import NotFound
from services.memory.operations import Operation, Trigger
from services.memory.removal.conversation_rows import ConversationRows
from services.memory.removal.stores import Counts, Left, RemovalStores
from services.memory.removal.tables import LOCK_CORE_MEMORY, LOCK_USER, Rows, Whole
from services.platform.connections import Connection
from services.search.vector_index import WRITING
from services.visits.visit import defer_days

_FIND: dict[Whole, LiteralString] = {
    "user": "SELECT id AS user_id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s",
    "space": """
        SELECT s.id AS space_id, s.user_id FROM spaces s JOIN users u ON u.id = s.user_id
        WHERE s.tenant_id = %(tenant_id)s AND u.external_id = %(user)s AND s.name = %(space)s""",
    "conversation": """
        SELECT c.id AS conversation_id, c.user_id, c.expert_id
        FROM conversations c JOIN users u ON u.id = c.user_id
        WHERE c.id = %(conversation_id)s AND c.tenant_id = %(tenant_id)s
          AND (%(user)s::text IS NULL OR u.external_id = %(user)s)""",
}

_INDEXED = "SELECT 1 FROM episodes WHERE user_id = %(user_id)s AND indexed_at IS NOT NULL LIMIT 1"

_DOCUMENTS = "SELECT id FROM knowledge_bases WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s"

_REMOVE_USER: LiteralString = "DELETE FROM users WHERE tenant_id = %(tenant_id)s AND id = %(user_id)s"

# A conversation that begins in the space waits for the lock of the space, and then finds none.
_LOCK_CONVERSATIONS: LiteralString = """
SELECT id FROM conversations WHERE space_id = %(space_id)s AND tenant_id = %(tenant_id)s ORDER BY id FOR UPDATE
"""

_LOCK: LiteralString = "SELECT id FROM spaces WHERE id = %(space_id)s AND tenant_id = %(tenant_id)s FOR UPDATE"

_EPISODES: LiteralString = "SELECT id FROM episodes WHERE space_id = %(space_id)s AND tenant_id = %(tenant_id)s"

_REMOVE_SPACE: LiteralString = "DELETE FROM spaces WHERE id = %(space_id)s AND tenant_id = %(tenant_id)s"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Erased:
    """Everything that was removed."""

    removed: Counts
    pending: list[str] = field(default_factory=list)
    """Stores that did not answer; jobs try them again."""


class WholeErasure:
    """Erases users, spaces and conversations, after cancelling their running turns. Each method raises `NotFound`
    if there is no such thing, or it is not that user's."""

    def __init__(self, stores: RemovalStores) -> None:
        self._stores = stores

    async def user(self, tenant_id: UUID, user: str) -> Erased:
        """Remove a user, given the caller's name for them."""
        values = await self._found(tenant_id, "user", f"There is no user {user!r}.", user=user)

        async def removed(connection: Connection) -> tuple[Counts, Left]:
            rows = Rows(connection, values)
            if not await rows.all(LOCK_USER):
                raise NotFound(f"There is no user {user!r}.")
            left = Left(
                values["user_id"],
                await rows.recent_turns("user", recent_s=self._stores.recent_s),
                base_ids=await rows.firsts(_DOCUMENTS),
                whole_user=True,
                is_indexed=bool(await rows.all(_INDEXED)),
            )
            counts, jobs = await rows.counted("user"), await rows.remove_jobs("user")
            await rows.run(_REMOVE_USER)
            # Before the commit: a concurrent writer for the user finds no row, and comes back with a new key.
            if (vault := self._stores.database.vault) is not None:
                await asyncio.to_thread(vault.keys.destroy, tenant_id, user)
            return {"postgresql": counts, "queue": {"jobs": jobs}}, left

        return await self._erase(values, removed)

    async def space(self, tenant_id: UUID, user: str, space: str) -> Erased:
        """Remove a space of a user, with everything remembered in it; what all spaces share stays."""
        missing = f"The user {user!r} has no space {space!r}."
        values = await self._found(tenant_id, "space", missing, user=user, space=space)

        async def removed(connection: Connection) -> tuple[Counts, Left]:
            rows = Rows(connection, values)
            await rows.all(LOCK_CORE_MEMORY)
            await rows.all(_LOCK_CONVERSATIONS)
            if not await rows.all(_LOCK):
                raise NotFound(missing)
            turns = await rows.recent_turns("space", recent_s=self._stores.recent_s)
            counts, episodes = await rows.counted("space"), await rows.firsts(_EPISODES)
            jobs, bases = await rows.remove_jobs("space"), await rows.remove_documents("space")
            await rows.run(_REMOVE_SPACE)
            operation = Operation("space_delete", results={"removed": counts})
            await self._stores.operations.append(
                connection, tenant_id, values["user_id"], operation, Trigger("user")
            )
            left = Left(values["user_id"], turns, episodes, bases)
            return {"postgresql": counts, "queue": {"jobs": jobs}}, left

        return await self._erase(values, removed)

    async def conversation(
        self, tenant_id: UUID, conversation_id: UUID, *, user: str | None = None, keep_memories: bool = False
    ) -> Erased:
        """Remove a conversation; with `user`, only if it is theirs. With `keep_memories`, core memory and written
        memories stay; messages always go."""
        missing = f"There is no conversation {conversation_id}."
        asked = {"conversation_id": conversation_id, "user": user}
        values = await self._found(tenant_id, "conversation", missing, **asked)
        return await self._remove(values, keep_memories=keep_memories)

    async def expire(self, tenant_id: UUID, found: Mapping[str, Any], *, silent_since: datetime) -> Erased:
        """Remove a conversation in which nothing was said since a time; written memories stay.

        `found` holds `conversation_id`, `user_id` and `expert_id`.

        Raises:
            Conflict: something was said in it meanwhile.
        """
        return await self._remove({"tenant_id": tenant_id, **found}, keep_memories=True, silent_since=silent_since)

    async def scrub_index(self) -> int:
        """Rewrite the index with the rows that were not removed, so that no file contains the others; return the
        number of rows. Raises `Unavailable` if Milvus or the database does not answer."""
        async with self._stores.database.only_one(WRITING, wait=True):
            return await self._stores.index.rewrite()

    async def _remove(
        self, values: dict[str, Any], *, keep_memories: bool, silent_since: datetime | None = None
    ) -> Erased:
        async def removed(connection: Connection) -> tuple[Counts, Left]:
            rows = ConversationRows(connection, values)
            counts, left, days_left = await rows.remove(
                self._stores.recent_s, keep_memories=keep_memories, silent_since=silent_since
            )
            if silent_since is None:
                results = {"removed": counts, "keep_memories": keep_memories}
                operation = Operation("conversation_delete", field=str(values["conversation_id"]), results=results)
                trigger = Trigger("user", expert_id=values["expert_id"])
                await self._stores.operations.append(
                    connection, values["tenant_id"], values["user_id"], operation, trigger
                )
            if days_left:
                await defer_days(self._stores.jobs, connection, values["tenant_id"], days_left)
            return {"postgresql": counts}, left

        return await self._erase(values, removed)

    async def _found(self, tenant_id: UUID, whole: Whole, missing: str, **named: Any) -> dict[str, Any]:
        """Stop the running turns of what is removed, and return its ids as values of statements."""
        found = await self._stores.database.fetch(
            tenant_id, _FIND[whole], {"tenant_id": tenant_id, **named}, dict_row
        )
        if not found:
            raise NotFound(missing)
        values = {"tenant_id": tenant_id, **found[0]}
        await self._stores.stop(values, whole)
        return values

    async def _erase(
        self, values: Mapping[str, Any], removed: Callable[[Connection], Awaitable[tuple[Counts, Left]]]
    ) -> Erased:
        tenant_id = values["tenant_id"]
        counts, elsewhere, pending = await self._stores.erase(tenant_id, removed)
        log.info("erased", tenant_id=str(tenant_id), user_id=str(values["user_id"]), pending=pending, **counts)
        return Erased({**counts, **elsewhere}, pending)
