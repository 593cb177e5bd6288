"""Removing one conversation, with or without the memories that come from it.

PostgreSQL in one transaction, which also defers the jobs that remove what other stores hold. What was made of the
conversation together with others is made again without it: daily summaries, merged episodes, core memory.
"""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import structlog
from psycopg.rows import class_row

from services.errors import NotFound
from services.memory.operations import Operation, Trigger
from services.memory.removal import conversation_sql as sql
from services.memory.removal.conversation_rows import ConversationRows, ErasableConversation, Removal
from services.memory.removal.stores import RemovalStores
from services.memory.removal.tables import recent_turns
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S
from services.visits.schedule import defer_days

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
    """Removes conversations."""

    def __init__(self, stores: RemovalStores, *, shares_human: bool = False) -> None:
        """Take the stores; with `shares_human`, experts share what core memory says of the user."""
        self._stores = stores
        self._shares_human = shares_human

    async def erase(
        self, tenant_id: UUID, conversation_id: UUID, *, user: str | None = None, keep_memories: bool = False
    ) -> ErasedConversation:
        """Remove a conversation, of any user or only when it is this one's; a running turn is cancelled first.

        Args:
            user: the caller's own name for the user that it must belong to.
            keep_memories: keep core memory, and the memories that were written down. The words that were said go
                in any case.

        Raises:
            NotFound: the tenant, or the user, has no such conversation.
        """
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id, "user": user, "recent_s": 0}
        found = await self._stores.database.fetch(tenant_id, sql.FIND, values, class_row(ErasableConversation))
        if not found:
            raise NotFound(f"There is no conversation {conversation_id}.")
        async with self._stores.database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            turns = await recent_turns(connection, "conversation", values)
        await self._stores.stop(tenant_id, turns)
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
        _, pending = await self._stores.clean(removal.left)
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
            if removal.days_left:
                await defer_days(self._stores.jobs, connection, tenant_id, removal.days_left)
            await self._stores.defer(connection, tenant_id, removal.left)
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
            tenant_id,
            conversation.user_id,
            Operation("conversation_delete", field=str(conversation.id), results=results),
            Trigger("user", expert_id=conversation.expert_id),
        )
