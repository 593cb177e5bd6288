"""Removing a space of a user: its conversations, and all that was remembered in it. What all spaces share stays.

PostgreSQL in one transaction, which also defers the jobs that remove what other stores hold.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import structlog
from psycopg.rows import tuple_row

from services.conversations.signals import TELL_FORGOTTEN
from services.erasure.conversations import ERASE_CONVERSATION_TRACES
from services.erasure.stores import ErasureStores
from services.erasure.traces import remove_jobs
from services.errors import NotFound, Unavailable
from services.memory.episodes.store import FORGET
from services.memory.operations import Operation, Trigger
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

_TURNS: LiteralString = """
SELECT t.id, t.finished_at IS NULL AS unfinished
FROM turns t JOIN conversations c ON c.id = t.conversation_id
WHERE c.space_id = %(space_id)s AND t.tenant_id = %(tenant_id)s
  AND (t.finished_at IS NULL OR t.finished_at > now() - make_interval(secs => %(recent_s)s))
"""

_COUNTED = (
    "spaces",
    "conversations",
    "messages",
    "turns",
    "core_memory_blocks",
    "episodes",
    "memory_operations",
    "visits",
    "daily_summaries",
)
_COUNT: LiteralString = """
SELECT 1, (SELECT count(*) FROM conversations WHERE space_id = %(space_id)s),
       (SELECT count(*) FROM messages m JOIN conversations c ON c.id = m.conversation_id
        WHERE c.space_id = %(space_id)s),
       (SELECT count(*) FROM turns t JOIN conversations c ON c.id = t.conversation_id
        WHERE c.space_id = %(space_id)s),
       (SELECT count(*) FROM core_memory_blocks WHERE space_id = %(space_id)s),
       (SELECT count(*) FROM episodes WHERE space_id = %(space_id)s),
       (SELECT count(*) FROM memory_operations WHERE space_id = %(space_id)s),
       (SELECT count(*) FROM visits WHERE space_id = %(space_id)s),
       (SELECT count(*) FROM daily_summaries WHERE space_id = %(space_id)s)
"""

_IDS: LiteralString = """
SELECT id::text FROM conversations WHERE space_id = %(space_id)s
UNION SELECT t.id::text FROM turns t JOIN conversations c ON c.id = t.conversation_id
      WHERE c.space_id = %(space_id)s
UNION SELECT m.id::text FROM messages m JOIN conversations c ON c.id = m.conversation_id
      WHERE c.space_id = %(space_id)s
UNION SELECT id::text FROM visits WHERE space_id = %(space_id)s
"""

_EPISODES: LiteralString = "SELECT id FROM episodes WHERE space_id = %(space_id)s AND tenant_id = %(tenant_id)s"

# Texts that a run of compression has staged, or merged, from what goes.
_REMOVE_DRAFTS: LiteralString = """
DELETE FROM compression_drafts d USING compression_sources s
WHERE s.draft_id = d.id AND d.tenant_id = %(tenant_id)s AND d.user_id = %(user_id)s
  AND s.episode_id = ANY(%(episode_ids)s)
"""

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

    def __init__(self, stores: ErasureStores, *, on_erased: Callable[[UUID], None] = lambda _: None) -> None:
        """Take the stores; `on_erased` is called with the user's id once the rows are gone."""
        self._stores = stores
        self._on_erased = on_erased

    @again_if_contended
    async def erase(self, tenant_id: UUID, user: str, space: str) -> ErasedSpace:
        """Remove a space of a user from every store; its turns that are under way are cancelled first.

        Raises:
            NotFound: the user has no such space.
            DatabaseUnavailable: the database does not answer; nothing was removed, unless the connection broke in
                the moment of the commit.
        """
        values: dict[str, Any] = {"tenant_id": tenant_id, "user": user, "space": space, "recent_s": 0}
        found = await self._stores.database.fetch(tenant_id, _FIND, values, tuple_row)
        if not found:
            raise NotFound(f"The user {user!r} has no space {space!r}.")
        values["space_id"], values["user_id"] = found[0]
        turns = await self._stores.database.fetch(tenant_id, _TURNS, values, tuple_row)
        if await self._stores.leases.stop_all(tenant_id, [turn_id for turn_id, unfinished in turns if unfinished]):
            log.warning("turns of a removed space do not end", space_id=str(values["space_id"]))
        values["recent_s"] = self._stores.recent_s
        async with self._stores.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            experts = [row[0] for row in await _all(connection, _LOCK_CORE_MEMORY, values)]
            await connection.execute(_LOCK_CONVERSATIONS, values)
            if not await _all(connection, _LOCK, values):
                raise NotFound(f"The user {user!r} has no space {space!r}.")
            turns = await _all(connection, _TURNS, values)
            [counts] = await _all(connection, _COUNT, values)
            episodes = [row[0] for row in await _all(connection, _EPISODES, values)]
            jobs = await remove_jobs(connection, _IDS, values)
            await connection.execute(_REMOVE_DRAFTS, {**values, "episode_ids": episodes})
            await connection.execute(_REMOVE, values)
            await connection.execute(_CHANGED, values)
            removed = {
                "postgresql": dict(zip(_COUNTED, counts, strict=True)),
                "queue": {"jobs": jobs},
            }
            await self._stores.operations.append(
                connection,
                tenant_id=tenant_id,
                user_id=values["user_id"],
                operation=Operation("space_delete", results={"removed": removed["postgresql"]}),
                trigger=Trigger("user"),
            )
            await self._defer(connection, values, turns, experts, episodes)
            await connection.execute(TELL_FORGOTTEN, values)
        self._on_erased(values["user_id"])
        pending = []
        try:
            removed["redis"] = await self._stores.traces.remove(
                values["user_id"], [row[0] for row in turns], experts
            )
        except Unavailable:
            pending.append("redis")
        try:
            units = await self._stores.index.forget(values["user_id"], episodes) if episodes else 0
            removed["milvus"] = {"units": units}
        except Unavailable:
            pending.append("milvus")
        log.info("space erased", tenant_id=str(tenant_id), space_id=str(values["space_id"]), pending=pending)
        return ErasedSpace(user, space, removed, pending)

    async def _defer(
        self,
        connection: Connection,
        values: dict[str, Any],
        turns: list[Any],
        experts: list[UUID],
        episodes: list[UUID],
    ) -> None:
        tenant_id, user_id = values["tenant_id"], values["user_id"]
        if episodes:
            await self._stores.jobs.defer(
                connection, FORGET, tenant_id=tenant_id, user_id=user_id, episode_ids=episodes
            )
        # The process of an unfinished turn may write events until it learns that the turn is gone.
        unfinished = [turn_id for turn_id, runs in turns if runs]
        for turn_ids, delay_s in (([turn_id for turn_id, _ in turns], 0.0), (unfinished, self._stores.recent_s)):
            if turn_ids:
                await self._stores.jobs.defer(
                    connection,
                    ERASE_CONVERSATION_TRACES,
                    tenant_id=tenant_id,
                    delay_s=delay_s,
                    user_id=user_id,
                    turn_ids=turn_ids,
                    expert_ids=experts,
                )


async def _all(connection: Connection, statement: LiteralString, values: dict[str, Any]) -> list[Any]:
    return await (await connection.execute(statement, values)).fetchall()
