"""Removing one conversation, with or without the memories that come from it.

PostgreSQL in one transaction, which also defers the jobs that remove what other stores hold. What was made of the
conversation together with others is made again without it: daily summaries, merged episodes, core memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from psycopg.rows import class_row

from services.conversations.signals import TELL_FORGOTTEN
from services.erasure import conversation_sql as sql
from services.erasure.conversation_rows import ConversationRows, ErasableConversation, Removal
from services.erasure.stores import ErasureStores
from services.errors import NotFound, Unavailable
from services.jobs.tasks import RunningJob
from services.memory.episodes.store import FORGET
from services.memory.operations import Operation, Trigger
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S
from services.visits.schedule import defer_days

ERASE_CONVERSATION_TRACES = "erase_conversation_traces"


log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ErasedConversation:
    """Counts of what was removed with a conversation."""

    conversation_id: UUID
    keep_memories: bool
    removed: dict[str, int]
    """How many of each kind."""
    pending: list[str] = field(default_factory=list)
    """Stores that did not answer; a job goes on trying."""


class ConversationErasure:
    """Removes conversations. Every process with a worker has one: it registers a job that completes removals."""

    def __init__(self, stores: ErasureStores, *, shares_human: bool = False) -> None:
        """Take the stores; with `shares_human`, all experts share what core memory says of the user."""
        self._stores = stores
        self._shares_human = shares_human
        stores.jobs.task(ERASE_CONVERSATION_TRACES)(self._erase_traces)

    async def erase(
        self, tenant_id: UUID, conversation_id: UUID, *, user: str | None = None, keep_memories: bool = False
    ) -> ErasedConversation:
        """Remove a conversation, of any user or only when it is this one's; a running turn is cancelled first.

        Args:
            tenant_id: whose conversation it is.
            conversation_id: of the conversation.
            user: the caller's own name for the user that it must belong to.
            keep_memories: keep core memory, and the memories that were written down. The words that were said go
                in any case.

        Raises:
            NotFound: the tenant, or the user, has no such conversation.
            DatabaseUnavailable: the database does not answer; nothing was removed, unless the connection broke in
                the moment of the commit.
        """
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "user": user, "recent_s": 0}
        found = await self._stores.database.fetch(tenant_id, sql.FIND, values, class_row(ErasableConversation))
        if not found:
            raise NotFound(f"There is no conversation {conversation_id}.")
        async with self._stores.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            turns = await (await connection.execute(sql.TURNS, values)).fetchall()
        if await self._stores.leases.stop_all(tenant_id, [turn_id for turn_id, unfinished in turns if unfinished]):
            log.warning("turns of a removed conversation do not end", conversation_id=str(conversation_id))
        removal = await self._remove_in_database(tenant_id, found[0], keep_memories=keep_memories)
        return await self._removed(found[0], removal, keep_memories=keep_memories)

    async def expire(
        self, tenant_id: UUID, conversation: ErasableConversation, *, silent_since: datetime
    ) -> ErasedConversation:
        """Remove a conversation in which nothing was said since; memories that were written down stay.

        Raises:
            NotFound: it has been removed meanwhile.
            Conflict: something was said in it meanwhile.
            DatabaseUnavailable: as `erase`.
        """
        removal = await self._remove_in_database(
            tenant_id, conversation, keep_memories=True, silent_since=silent_since
        )
        return await self._removed(conversation, removal, keep_memories=True)

    async def _removed(
        self, conversation: ErasableConversation, removal: Removal, *, keep_memories: bool
    ) -> ErasedConversation:
        """Clean the other stores of what was removed from the database."""
        pending = []
        try:
            await self._stores.traces.remove(conversation.user_id, removal.turn_ids, removal.expert_ids)
        except Unavailable:
            pending.append("redis")
        try:
            await self._stores.index.forget(conversation.user_id, removal.episode_ids)
        except Unavailable:
            pending.append("milvus")
        log.info("conversation erased", conversation_id=str(conversation.id), **removal.counts)
        return ErasedConversation(conversation.id, keep_memories, removal.counts, pending)

    async def _remove_in_database(
        self,
        tenant_id: UUID,
        conversation: ErasableConversation,
        *,
        keep_memories: bool,
        silent_since: datetime | None = None,
    ) -> Removal:
        async def removed(connection: Connection) -> Removal:
            rows = ConversationRows(connection, tenant_id, conversation, shares_human=self._shares_human)
            removal = await rows.remove(
                self._stores.recent_s, keep_memories=keep_memories, silent_since=silent_since
            )
            if silent_since is None:
                await self._note(connection, tenant_id, conversation, removal, keep_memories=keep_memories)
            await self._defer(connection, tenant_id, conversation, removal)
            await connection.execute(TELL_FORGOTTEN, {"user_id": conversation.user_id})
            return removal

        # A turn elsewhere may recall the same episodes at this moment.
        return await self._stores.database.transact(tenant_id, removed, statement_s=UNHURRIED_S)

    async def _note(
        self,
        connection: Connection,
        tenant_id: UUID,
        conversation: ErasableConversation,
        removal: Removal,
        *,
        keep_memories: bool,
    ) -> None:
        results = {"removed": removal.counts, "keep_memories": keep_memories}
        await self._stores.operations.append(
            connection,
            tenant_id=tenant_id,
            user_id=conversation.user_id,
            operation=Operation("conversation_delete", field=str(conversation.id), results=results),
            trigger=Trigger("user", expert_id=conversation.expert_id),
        )

    async def _defer(
        self, connection: Connection, tenant_id: UUID, conversation: ErasableConversation, removal: Removal
    ) -> None:
        user_id = conversation.user_id
        if removal.episode_ids:
            await self._stores.jobs.defer(
                connection, FORGET, tenant_id=tenant_id, user_id=user_id, episode_ids=removal.episode_ids
            )
        if removal.days_left:
            await defer_days(self._stores.jobs, connection, tenant_id, removal.days_left)
        # The process of an unfinished turn may write events until it learns that the turn is gone.
        for turn_ids, delay_s in ((removal.turn_ids, 0.0), (removal.unfinished, self._stores.recent_s)):
            if turn_ids or removal.expert_ids:
                await self._stores.jobs.defer(
                    connection,
                    ERASE_CONVERSATION_TRACES,
                    tenant_id=tenant_id,
                    delay_s=delay_s,
                    user_id=user_id,
                    turn_ids=turn_ids,
                    expert_ids=removal.expert_ids,
                )

    async def _erase_traces(
        self, job: RunningJob, *, user_id: UUID, turn_ids: list[UUID], expert_ids: Sequence[UUID] = ()
    ) -> None:
        ids: dict[str, Any] = {"user_id": user_id, "turn_ids": list(turn_ids), "expert_ids": list(expert_ids)}
        left = "traces of a removed conversation are left"
        async with self._stores.jobs.until_done(job, ERASE_CONVERSATION_TRACES, left, **ids):
            await self._stores.traces.remove(user_id, turn_ids, expert_ids)
