"""The stores that hold data of users, and the removal of traces from those other than PostgreSQL.

A removal is one transaction in PostgreSQL, which also queues the jobs for the other stores; a store that is down
does not prevent it. The other stores are also tried at once.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, LiteralString, TypeVar
from uuid import UUID

import structlog

from services.errors import Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.memory.episodes.episode import FORGET
from services.memory.episodes.index import EpisodeIndex
from services.memory.operations import OperationLog
from services.memory.removal.tables import Rows, Whole
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S, Database
from services.search.vector_index import FORGET_PASSAGES, WRITING

ERASE_TRACES = "erase_traces"
_KEYS_AT_ONCE = 500
_LONGEST_TURN_S = 600 + 60
_TELL_FORGOTTEN: LiteralString = "SELECT pg_notify('anamnesis_turns', 'forgotten:' || %(user_id)s::text)"

Result = TypeVar("Result")
Counts = dict[str, dict[str, int]]
"""Number of removed things, by store and kind."""
Reason = Literal["cancelled", "forgotten"]
"""Reason for stopping a turn; of a `forgotten` one nothing is kept."""

log = structlog.get_logger(__name__)


StopTurns = Callable[[UUID, Sequence[UUID], Reason], Awaitable[list[UUID]]]
"""Stops turns of a tenant wherever they run; returns those that do not end soon."""
DeleteEvents = Callable[[Sequence[UUID]], Awaitable[int]]
"""Deletes the events of turns and returns the number of turns that had any; raises `Unavailable` if Redis does not
answer."""


@dataclass(frozen=True)
class Left:
    """Traces that a removal from PostgreSQL leaves in other stores."""

    user_id: UUID
    turns: Sequence[tuple[UUID, bool]] = ()
    """Turns that may have events, and whether each is still running. Its process writes until it learns of the
    removal."""
    episode_ids: Sequence[UUID] = ()
    base_ids: Sequence[UUID] = ()
    """Documents of conversations, whose passages are indexed."""
    whole_user: bool = False
    """Whether everything of the user goes, whatever its id."""
    is_indexed: bool = True
    """Whether anything of a whole user was in the index."""

    @property
    def turn_ids(self) -> list[UUID]:
        """Ids of the turns."""
        return [turn_id for turn_id, _ in self.turns]


class RemovalStores:
    """All stores that hold data of a user, and the queue that completes a removal."""

    def __init__(
        self,
        database: Database,
        stop_turns: StopTurns,
        delete_events: DeleteEvents,
        index: EpisodeIndex,
        operations: OperationLog,
        jobs: JobQueue,
        *,
        events_keep_s: int,
        on_removed: Callable[[UUID], None] = lambda _: None,
    ) -> None:
        """Take the stores.

        `events_keep_s` = seconds that the events of a turn stay after its end; `on_removed` is called with the
        user's id once rows are gone.
        """
        self.database = database
        self._stop_turns = stop_turns
        self.index = index
        self.operations = operations
        self._delete_events = delete_events
        self.jobs = jobs
        self._on_removed = on_removed
        self.recent_s = float(_LONGEST_TURN_S + events_keep_s)
        """Seconds after its beginning from which on a turn has no events any more, wherever it ran."""
        jobs.task(ERASE_TRACES)(self._erase)

    async def stop(self, values: Mapping[str, Any], whole: Whole, reason: Reason = "cancelled") -> list[UUID]:
        """Stop the running turns of what is removed, named by its ids and those of its user and tenant; return
        them."""
        tenant_id = values["tenant_id"]
        async with self.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            turns = await Rows(connection, values).recent_turns(whole, recent_s=0)
        unfinished = [turn_id for turn_id, goes_on in turns if goes_on]
        # What they still write is removed, too.
        if left := await self._stop_turns(tenant_id, unfinished, reason):
            log.warning("turns of what is removed do not end", turn_ids=[str(each) for each in left])
        return unfinished

    async def erase(
        self, tenant_id: UUID, removed: Callable[[Connection], Awaitable[tuple[Result, Left | None]]]
    ) -> tuple[Result, Counts, list[str]]:
        """Carry out `removed` in PostgreSQL, then remove the traces in the other stores.

        `removed` works in one transaction. It returns its result and the traces, or None if nothing was removed.

        Returns:
            The result, counts of the other stores, and the stores that did not answer.
        """

        async def done(connection: Connection) -> tuple[Result, Left | None]:
            result, left = await removed(connection)
            if left is not None:
                await self._defer(connection, tenant_id, left)
            return result, left

        # A turn elsewhere may recall the same episodes at this moment.
        result, left = await self.database.transact(tenant_id, done, statement_s=UNHURRIED_S)
        return (result, *(await self._clean(left) if left else ({}, [])))

    async def _defer(self, connection: Connection, tenant_id: UUID, left: Left) -> None:
        """Queue the rest of a removal in its transaction, and notify all processes when it commits."""
        if left.episode_ids:
            episode_ids = list(left.episode_ids)
            await self.jobs.defer(
                connection, FORGET, tenant_id=tenant_id, user_id=left.user_id, episode_ids=episode_ids
            )
        for base_id in left.base_ids:
            await self.jobs.defer(
                connection, FORGET_PASSAGES, tenant_id=tenant_id, base_id=base_id, document_ids=[]
            )
        unfinished = [turn_id for turn_id, goes_on in left.turns if goes_on]
        for turn_ids, delay_s in ((left.turn_ids, 0.0), (unfinished, self.recent_s)):
            if turn_ids or (left.whole_user and not delay_s):
                await self.jobs.defer(
                    connection,
                    ERASE_TRACES,
                    tenant_id=tenant_id,
                    delay_s=delay_s,
                    user_id=left.user_id,
                    turn_ids=turn_ids,
                    whole_ids=[left.user_id] if left.whole_user else [],
                )
        await connection.execute(_TELL_FORGOTTEN, {"user_id": left.user_id})

    async def _clean(self, left: Left) -> tuple[Counts, list[str]]:
        """Remove traces now; return the counts by store, and the stores that did not answer."""
        self._on_removed(left.user_id)
        removed: Counts = {}
        pending = []
        try:
            removed["redis"] = {"turn_events": await self._remove_events(left.turn_ids)}
        except Unavailable:
            pending.append("redis")
        units = None if left.whole_user else left.episode_ids
        is_indexed = left.is_indexed if left.whole_user else bool(units)
        try:
            removed["milvus"] = {"units": await self.index.forget(left.user_id, units) if is_indexed else 0}
        except Unavailable:
            pending.append("milvus")
        return removed, pending

    async def _remove_events(self, turn_ids: Sequence[UUID]) -> int:
        removed = 0
        for start in range(0, len(turn_ids), _KEYS_AT_ONCE):
            removed += await self._delete_events(turn_ids[start : start + _KEYS_AT_ONCE])
        return removed

    async def _erase(
        self,
        job: RunningJob,
        *,
        user_id: UUID,
        turn_ids: list[UUID],
        whole_ids: Sequence[UUID] = (),
        **_: list[UUID],
    ) -> None:
        """Remove traces; `whole_ids` holds the user if everything of theirs goes."""
        ids = {"turn_ids": list(turn_ids), "whole_ids": list(whole_ids)}
        left = "traces of what was removed are left"
        async with self.jobs.until_done(job, ERASE_TRACES, left, user_id=user_id, **ids):
            await self._remove_events(turn_ids)
            if whole_ids:
                # Who writes into the index now may have read episodes that are gone: it ends first.
                async with self.database.only_one(WRITING, wait=True):
                    await self.index.forget(user_id)
                    await self.index.remove_leftovers(user_id)
