"""Removing a user from everywhere, and telling what was removed from where.

PostgreSQL in one transaction, which also defers the job that removes what is elsewhere: a store that is
away at this moment does not keep an erasure from being completed. The same is tried at once, too.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from services.conversations.event_log import EventLog
from services.conversations.leases import TurnLeases
from services.errors import DatabaseUnavailable, NotFound, Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.memory.cache import CoreMemoryCache
from services.memory.index import WRITING, EpisodeIndex
from services.platform.postgres import Connection, Database

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
    "episodes",
    "memory_operations",
    "visits",
    "daily_summaries",
    "tone_states",
    "compression_runs",
    "compression_drafts",
    "compression_sources",
)
"""Tables with rows of a user: each falls with the row in `users`."""

_LONGEST_TURN_S = 600 + 60
_KEYS_AT_ONCE = 500
_STOP_WITHIN_S = 2.0
_LOOK_S = 0.05
_AGAIN_S = 15.0

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
       (SELECT count(*) FROM episodes WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM memory_operations WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM visits WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM daily_summaries WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM tone_states WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM compression_runs WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM compression_drafts WHERE user_id = %(user_id)s),
       (SELECT count(*) FROM compression_sources WHERE user_id = %(user_id)s)
"""

_INDEXED = "SELECT 1 FROM episodes WHERE user_id = %(user_id)s AND indexed_at IS NOT NULL LIMIT 1"

_EXPERTS = """
SELECT expert_id FROM core_memory_generations WHERE user_id = %(user_id)s
UNION SELECT expert_id FROM conversations WHERE user_id = %(user_id)s
"""

_JOBS = """
WITH his AS (
    SELECT %(user_id)s::text AS id
    UNION SELECT id::text FROM conversations WHERE user_id = %(user_id)s
    UNION SELECT t.id::text FROM turns t JOIN conversations c ON c.id = t.conversation_id
          WHERE c.user_id = %(user_id)s
    UNION SELECT m.id::text FROM messages m JOIN conversations c ON c.id = m.conversation_id
          WHERE c.user_id = %(user_id)s
    UNION SELECT id::text FROM visits WHERE user_id = %(user_id)s
    UNION SELECT id::text FROM compression_runs WHERE user_id = %(user_id)s
)
SELECT j.id FROM procrastinate_jobs j
WHERE coalesce(j.args->>'tenant_id', '00000000-0000-7000-8000-000000000001') = %(tenant_id)s::text
  AND EXISTS (
      SELECT FROM jsonb_each(j.args) AS argument(name, value)
      CROSS JOIN LATERAL jsonb_array_elements_text(
          CASE jsonb_typeof(value) WHEN 'array' THEN value ELSE jsonb_build_array(value) END
      ) AS each(id) JOIN his ON his.id = each.id
  )
ORDER BY j.id FOR UPDATE OF j
"""

# Its worker hears of it at the commit and stops the job; the row may be gone by then.
_STOP_JOBS = "UPDATE procrastinate_jobs SET abort_requested = true WHERE id = ANY(%s) AND status = 'doing'"

_REMOVE_JOBS = "DELETE FROM procrastinate_jobs WHERE id = ANY(%s)"

_REMOVE_USER = "DELETE FROM users WHERE tenant_id = %(tenant_id)s AND id = %(user_id)s"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Erased:
    """What was removed of a user."""

    user_id: str
    """The caller's own name for the user."""
    removed: dict[str, dict[str, int]]
    """How many of each kind, by store."""
    pending: list[str] = field(default_factory=list)
    """Stores that did not answer; the job goes on trying."""


class Erasure:
    """Erases users. Every process with a worker has one: it also registers the job that completes an erasure."""

    def __init__(
        self,
        database: Database,
        leases: TurnLeases,
        events: EventLog,
        core_memory: CoreMemoryCache,
        index: EpisodeIndex,
        jobs: JobQueue,
        *,
        events_keep_s: int,
    ) -> None:
        """Take the stores; events of turns stay `events_keep_s` seconds behind a turn's end."""
        self._database = database
        self._leases = leases
        self._events = events
        self._core_memory = core_memory
        self._index = index
        self._jobs = jobs
        self._recent_s = _LONGEST_TURN_S + events_keep_s
        jobs.task(ERASE_TRACES)(self._erase_traces)

    async def erase(self, tenant_id: UUID, user: str) -> Erased:
        """Remove a user, with all that is stored for them, from every store.

        Raises:
            NotFound: the tenant has no such user.
            DatabaseUnavailable: the database does not answer; nothing was removed, unless the connection
                broke in the moment of the commit.
        """
        user_id, unfinished = await self._find(tenant_id, user)
        await self._stop(tenant_id, unfinished)
        values = {"tenant_id": tenant_id, "user_id": user_id, "recent_s": self._recent_s}
        async with self._database.tenant(tenant_id) as connection:
            if await (await connection.execute(_LOCK, values)).fetchone() is None:
                raise NotFound(f"There is no user {user!r}.")
            turns = await (await connection.execute(_TURNS, values)).fetchall()
            experts = [row[0] for row in await (await connection.execute(_EXPERTS, values)).fetchall()]
            indexed = await (await connection.execute(_INDEXED, values)).fetchone() is not None
            counts = await (await connection.execute(_COUNT, values)).fetchone()
            jobs = [row[0] for row in await (await connection.execute(_JOBS, values)).fetchall()]
            await connection.execute(_STOP_JOBS, [jobs])
            await connection.execute(_REMOVE_JOBS, [jobs])
            await connection.execute(_REMOVE_USER, values)
            await self._defer(connection, tenant_id, user_id, turns, experts)
        assert counts is not None  # noqa: S101 — a SELECT without FROM has one row
        removed = {"postgresql": dict(zip(TABLES, counts, strict=True)), "queue": {"jobs": len(jobs)}}
        pending = []
        try:
            removed["redis"] = await self._remove_traces(user_id, [row[0] for row in turns], experts)
        except Unavailable:
            pending.append("redis")
        try:
            removed["milvus"] = {"units": await self._index.forget(user_id) if indexed else 0}
        except Unavailable:
            pending.append("milvus")
        log.info("user erased", tenant_id=str(tenant_id), user_id=str(user_id), removed=removed, pending=pending)
        return Erased(user, removed, pending)

    async def scrub_index(self) -> int:
        """Write the index anew with the rows that are not removed, so that no file holds the others; return them.

        Raises:
            Unavailable: Milvus or the database does not answer.
        """
        async with self._database.only_one(WRITING, wait=True):
            return await self._index.write_anew()

    async def _stop(self, tenant_id: UUID, turn_ids: Sequence[UUID]) -> None:
        """Cancel turns wherever they run, and give them a moment to end: what they still write is erased too."""
        for turn_id in turn_ids:
            await self._leases.request_stop(tenant_id, turn_id, "cancelled")
        try:
            async with asyncio.timeout(_STOP_WITHIN_S):
                while await self._leases.unfinished(tenant_id, turn_ids):  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            log.warning("turns of a user who is erased do not end", tenant_id=str(tenant_id))

    async def _find(self, tenant_id: UUID, user: str) -> tuple[UUID, list[UUID]]:
        values = {"tenant_id": tenant_id, "user": user, "recent_s": 0}
        async with self._database.tenant(tenant_id) as connection:
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
        await self._jobs.defer(
            connection,
            ERASE_TRACES,
            tenant_id=tenant_id,
            user_id=user_id,
            turn_ids=turn_ids,
            expert_ids=experts,
        )
        if unfinished := [turn_id for turn_id, runs in turns if runs]:
            # Whatever its process still writes before it learns that the turn is gone.
            await self._jobs.defer(
                connection,
                ERASE_TRACES,
                tenant_id=tenant_id,
                delay_s=self._recent_s,
                user_id=user_id,
                turn_ids=unfinished,
                expert_ids=experts,
            )

    async def _erase_traces(
        self, job: RunningJob, *, user_id: UUID, turn_ids: list[UUID], expert_ids: Sequence[UUID] = ()
    ) -> None:
        try:
            removed = await self._remove_traces(user_id, turn_ids, expert_ids)
            # Who writes into the index now may have read episodes that are gone: it ends first.
            async with self._database.only_one(WRITING, wait=True):
                units = await self._index.forget(user_id)
                await self._index.remove_leftovers(user_id)
        except DatabaseUnavailable:
            raise
        except Unavailable as error:
            # A store may be away for longer than a job is tried: an erasure does not end before it is complete.
            log.warning("traces of an erased user are left", user_id=str(user_id), reason=error.message)
            async with self._database.tenant(job.tenant_id) as connection:
                await self._jobs.defer(
                    connection,
                    ERASE_TRACES,
                    tenant_id=job.tenant_id,
                    delay_s=_AGAIN_S,
                    user_id=user_id,
                    turn_ids=list(turn_ids),
                    expert_ids=list(expert_ids),
                )
            return
        log.info("traces erased", tenant_id=str(job.tenant_id), user_id=str(user_id), units=units, **removed)

    async def _remove_traces(
        self, user_id: UUID, turn_ids: Sequence[UUID], expert_ids: Sequence[UUID]
    ) -> dict[str, int]:
        return {
            "turn_events": await self._remove_events(turn_ids),
            "core_memory": await self._core_memory.delete(user_id, expert_ids),
        }

    async def _remove_events(self, turn_ids: Sequence[UUID]) -> int:
        removed = 0
        for start in range(0, len(turn_ids), _KEYS_AT_ONCE):
            removed += await self._events.delete(turn_ids[start : start + _KEYS_AT_ONCE])
        return removed
