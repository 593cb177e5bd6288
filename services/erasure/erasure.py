"""Remove a user from every store, and report what was removed from each.

PostgreSQL in one transaction, which also defers the job that removes what is elsewhere: a store that is
down at this moment does not keep an erasure from being completed. The same is tried at once, too.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import structlog

from services.conversations.signals import TELL_FORGOTTEN
from services.erasure.stores import ErasureStores
from services.erasure.traces import remove_jobs
from services.errors import NotFound, Unavailable
from services.jobs.tasks import RunningJob
from services.platform.connections import Connection
from services.platform.database_errors import again_if_contended
from services.platform.postgres import UNHURRIED_S
from services.search.vector_index import WRITING

ERASE_TRACES = "erase_traces"

TABLES = (
    "users",
    "conversations",
    "messages",
    "turns",
    "conversation_summaries",
    "summary_parts",
    "topics",
    "context_epochs",
    "core_memory_blocks",
    "core_memory_history",
    "core_memory_generations",
    "memory_generations",
    "episodes",
    "memory_operations",
    "visits",
    "daily_summaries",
    "tone_states",
    "compression_runs",
    "compression_drafts",
    "compression_sources",
    "fading_runs",
    "maintained_users",
    "core_memory_pins",
    "feedback",
    "conversation_branches",
    "usage",
    "spaces",
    "recall_exclusions",
    "forget_receipts",
    "forgotten_words",
    "memory_versions",
)
"""Tables with rows of a user: each falls with the row in `users`."""

_USER = "SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s"

# A conversation that begins meanwhile waits for this lock, and then finds no user.
_LOCK = "SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND id = %(user_id)s FOR UPDATE"

_TURNS = """
SELECT t.id, t.finished_at IS NULL AS unfinished
FROM turns t JOIN conversations c ON c.id = t.conversation_id
WHERE c.user_id = %(user_id)s AND t.tenant_id = %(tenant_id)s
  AND (t.finished_at IS NULL OR t.finished_at > now() - make_interval(secs => %(recent_s)s))
"""

_COUNT = """
WITH his AS (SELECT id FROM conversations WHERE user_id = %(user_id)s)
SELECT 1, (SELECT count(*) FROM his),
       (SELECT count(*) FROM messages JOIN his ON his.id = conversation_id),
       (SELECT count(*) FROM turns JOIN his ON his.id = conversation_id),
       (SELECT count(*) FROM conversation_summaries JOIN his ON his.id = conversation_id),
       (SELECT count(*) FROM summary_parts JOIN his ON his.id = conversation_id),
       (SELECT count(*) FROM topics WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM context_epochs JOIN his ON his.id = conversation_id),
       (SELECT count(*) FROM core_memory_blocks WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM core_memory_history h JOIN core_memory_blocks b ON b.id = h.block_id
        WHERE b.user_id = %(user_id)s),
       (SELECT count(*) FROM core_memory_generations WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM memory_generations WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM episodes WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM memory_operations WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM visits WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM daily_summaries WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM tone_states WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM compression_runs WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM compression_drafts WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM compression_sources WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM fading_runs WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM maintained_users WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM core_memory_pins p JOIN core_memory_blocks b ON b.id = p.block_id
        WHERE b.user_id = %(user_id)s),
       (SELECT count(*) FROM feedback f JOIN messages m ON m.id = f.message_id
        JOIN his ON his.id = m.conversation_id),
       (SELECT count(*) FROM conversation_branches JOIN his ON his.id = conversation_id),
       (SELECT count(*) FROM usage WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM spaces WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM recall_exclusions JOIN his ON his.id = conversation_id),
       (SELECT count(*) FROM forget_receipts WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM forgotten_words WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM memory_versions WHERE user_id = %(user_id)s)
"""

_INDEXED = "SELECT 1 FROM episodes WHERE user_id = %(user_id)s AND indexed_at IS NOT NULL LIMIT 1"

_EXPERTS = """
SELECT expert_id FROM core_memory_generations WHERE user_id = %(user_id)s
UNION SELECT expert_id FROM conversations WHERE user_id = %(user_id)s
"""

_IDS: LiteralString = """
SELECT %(user_id)s::text AS id
UNION SELECT id::text FROM conversations WHERE user_id = %(user_id)s
UNION SELECT t.id::text FROM turns t JOIN conversations c ON c.id = t.conversation_id
      WHERE c.user_id = %(user_id)s
UNION SELECT m.id::text FROM messages m JOIN conversations c ON c.id = m.conversation_id
      WHERE c.user_id = %(user_id)s
UNION SELECT id::text FROM visits WHERE user_id = %(user_id)s
UNION SELECT id::text FROM compression_runs WHERE user_id = %(user_id)s
UNION SELECT id::text FROM fading_runs WHERE user_id = %(user_id)s
"""

_REMOVE_USER = "DELETE FROM users WHERE tenant_id = %(tenant_id)s AND id = %(user_id)s"

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


class Erasure:
    """Erases users. Every process with a worker has one: it also registers the job that completes an erasure."""

    def __init__(self, stores: ErasureStores, *, on_erased: Callable[[UUID], None] = lambda _: None) -> None:
        """Take the stores; `on_erased` is called with the user's id once the rows are gone."""
        self._stores = stores
        self._on_erased = on_erased
        stores.jobs.task(ERASE_TRACES)(self._erase_traces)

    @again_if_contended
    async def erase(self, tenant_id: UUID, user: str) -> Erased:
        """Remove a user, with all that is stored for them, from every store.

        Raises:
            NotFound: the tenant has no such user.
            DatabaseUnavailable: the database does not answer; nothing was removed, unless the connection
                broke in the moment of the commit.
        """
        user_id, unfinished = await self._find(tenant_id, user)
        if await self._stores.leases.stop_all(tenant_id, unfinished):  # what they still write is erased too
            log.warning("turns of a user who is erased do not end", tenant_id=str(tenant_id))
        values = {"tenant_id": tenant_id, "user_id": user_id, "recent_s": self._stores.recent_s}
        async with self._stores.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            if await (await connection.execute(_LOCK, values)).fetchone() is None:
                raise NotFound(f"There is no user {user!r}.")
            turns = await (await connection.execute(_TURNS, values)).fetchall()
            experts = [row[0] for row in await (await connection.execute(_EXPERTS, values)).fetchall()]
            indexed = await (await connection.execute(_INDEXED, values)).fetchone() is not None
            counts = await (await connection.execute(_COUNT, values)).fetchone()
            jobs = await remove_jobs(connection, _IDS, values)
            await connection.execute(_REMOVE_USER, values)
            await self._defer(connection, tenant_id, user_id, turns, experts)
            await connection.execute(TELL_FORGOTTEN, values)
            # Before the commit: a concurrent writer for the user finds no row, and comes back with a new key.
            if (vault := self._stores.database.vault) is not None:
                await asyncio.to_thread(vault.keys.destroy, tenant_id, user)
        self._on_erased(user_id)
        assert counts is not None  # noqa: S101 — a SELECT without FROM has one row
        removed = {"postgresql": dict(zip(TABLES, counts, strict=True)), "queue": {"jobs": jobs}}
        pending = []
        try:
            removed["redis"] = await self._stores.traces.remove(user_id, [row[0] for row in turns], experts)
        except Unavailable:
            pending.append("redis")
        try:
            removed["milvus"] = {"units": await self._stores.index.forget(user_id) if indexed else 0}
        except Unavailable:
            pending.append("milvus")
        log.info("user erased", tenant_id=str(tenant_id), user_id=str(user_id), removed=removed, pending=pending)
        return Erased(user, removed, pending)

    async def scrub_index(self) -> int:
        """Rewrite the index with the rows that are not removed, so that no file holds the others; return how many.

        Raises:
            Unavailable: Milvus or the database does not answer.
        """
        async with self._stores.database.only_one(WRITING, wait=True):
            return await self._stores.index.rewrite()

    async def _find(self, tenant_id: UUID, user: str) -> tuple[UUID, list[UUID]]:
        values = {"tenant_id": tenant_id, "user": user, "recent_s": 0}
        async with self._stores.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            row = await (await connection.execute(_USER, values)).fetchone()
            if row is None:
                raise NotFound(f"There is no user {user!r}.")
            turns = await (await connection.execute(_TURNS, {**values, "user_id": row[0]})).fetchall()
        return row[0], [turn_id for turn_id, unfinished in turns if unfinished]

    async def _defer(
        self,
        connection: Connection,
        tenant_id: UUID,
        user_id: UUID,
        turns: Sequence[tuple[UUID, bool]],
        experts: list[UUID],
    ) -> None:
        turn_ids = [turn_id for turn_id, _ in turns]
        await self._stores.jobs.defer(
            connection,
            ERASE_TRACES,
            tenant_id=tenant_id,
            user_id=user_id,
            turn_ids=turn_ids,
            expert_ids=experts,
        )
        if unfinished := [turn_id for turn_id, runs in turns if runs]:
            # Whatever its process still writes before it learns that the turn is gone.
            await self._stores.jobs.defer(
                connection,
                ERASE_TRACES,
                tenant_id=tenant_id,
                delay_s=self._stores.recent_s,
                user_id=user_id,
                turn_ids=unfinished,
                expert_ids=experts,
            )

    async def _erase_traces(
        self, job: RunningJob, *, user_id: UUID, turn_ids: list[UUID], expert_ids: Sequence[UUID] = ()
    ) -> None:
        ids: dict[str, Any] = {"user_id": user_id, "turn_ids": list(turn_ids), "expert_ids": list(expert_ids)}
        async with self._stores.jobs.until_done(job, ERASE_TRACES, "traces of an erased user are left", **ids):
            removed = await self._stores.traces.remove(user_id, turn_ids, expert_ids)
            # Who writes into the index now may have read episodes that are gone: it ends first.
            async with self._stores.database.only_one(WRITING, wait=True):
                units = await self._stores.index.forget(user_id)
                await self._stores.index.remove_leftovers(user_id)
            log.info("traces erased", tenant_id=str(job.tenant_id), user_id=str(user_id), units=units, **removed)
