"""One conversation in PostgreSQL: what is removed with it, and what is made again without it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from services.encryption.marks import WordsJson, words_json
from services.errors import Conflict, NotFound
from services.memory.core import SHARED_SECTION
from services.memory.provenance import Version, without
from services.memory.removal import conversation_sql as sql
from services.memory.removal.purge_sql import REWRITE_VERSION, SCRUB_EPISODE_OPERATIONS
from services.memory.removal.stores import Left
from services.memory.removal.tables import LOCK_CORE_MEMORY, counted, recent_turns, remove_jobs
from services.platform.connections import Connection


@dataclass(frozen=True)
class ErasableConversation:
    """A conversation that is to be removed."""

    id: UUID
    user_id: UUID
    expert_id: UUID


class ConversationRows:
    """The rows of one conversation, to be removed in the transaction of the caller."""

    def __init__(
        self, connection: Connection, tenant_id: UUID, conversation: ErasableConversation, *, shares_human: bool
    ) -> None:
        self._connection = connection
        self._shares_human = shares_human
        self._values: dict[str, Any] = {
            "tenant_id": tenant_id,
            "conversation_id": conversation.id,
            "user_id": conversation.user_id,
        }
        self._conversation = conversation

    async def remove(
        self, recent_s: float, *, keep_memories: bool, silent_since: datetime | None = None
    ) -> tuple[dict[str, int], Left, list[UUID]]:
        """Remove all of it; return the counts, what is elsewhere, and a visit of each day to summarise again.

        Turns that ended within `recent_s` seconds may have events elsewhere.

        Raises:
            NotFound: it has been removed meanwhile.
            Conflict: something was said in it since `silent_since`.
        """
        await self._all(LOCK_CORE_MEMORY)
        if not await self._all(sql.LOCK):
            raise NotFound(f"There is no conversation {self._conversation.id}.")
        if silent_since is not None and await self._all(sql.GOES_ON, silent_since=silent_since):
            raise Conflict(f"The conversation {self._conversation.id} goes on.")
        turns = await recent_turns(self._connection, "conversation", {**self._values, "recent_s": recent_s})
        counts = await counted(self._connection, "conversation", self._values)
        gone, written = await self._episodes(keep_memories=keep_memories)
        counts |= {"turn_episodes": len(gone) - written, "memories": written}
        experts = [] if keep_memories else await self._core_memory()
        if keep_memories:
            await self._run(sql.DETACH_OPERATIONS)
            await self._run(sql.DETACH_CORE_MEMORY)
        counts["core_memory_sections"] = len(experts)
        await self._run(sql.SCRUB_COMMANDS)
        days = await self._all(sql.REMOVE_DAYS)
        counts["daily_summaries"] = len(days)
        await self._run(sql.REMOVE_MEMORY_VERSIONS)
        counts["jobs"] = await remove_jobs(self._connection, "conversation", self._values)
        bases = [row[0] for row in await self._all(sql.REMOVE_DOCUMENTS)]
        await self._run(sql.REMOVE)
        left = Left(self._conversation.user_id, turns, sorted(set(experts)), gone, bases)
        return counts, left, [visit_id for _, visit_id in days if visit_id]

    async def _episodes(self, *, keep_memories: bool) -> tuple[list[UUID], int]:
        """Remove the conversation's episodes; return their ids, and how many of them were written memories."""
        rows = await self._all(sql.EPISODES)
        if keep_memories:
            await self._run(sql.DETACH, ids=[row[0] for row in rows])
            return [row[0] for row in rows if not row[2]], 0
        gone = sorted(row[0] for row in rows if not row[1])
        written = [row[0] for row in rows if row[2] and not row[1]]
        await self._run(sql.DETACH, ids=[row[0] for row in rows if row[1]])
        await self._run(sql.BRING_BACK, gone=gone)
        await self._run(sql.REMOVE_EPISODES, gone=gone)
        await self._run(SCRUB_EPISODE_OPERATIONS, episode_ids=gone)
        return gone, len(written)

    async def _core_memory(self) -> list[UUID]:
        """Take out of core memory what the conversation brought in; return the expert of each section changed."""
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            rows = await (await cursor.execute(sql.CHANGED_SECTIONS, self._values)).fetchall()
        experts = []
        for _, versions in groupby(rows, key=itemgetter("block_id")):
            history = list(versions)
            await self._section(history)
            experts.append(history[0]["expert_id"])
        return experts

    async def _section(self, history: Sequence[dict[str, Any]]) -> None:
        first, dropped = history[0], [each["number"] for each in history if each["is_dropped"]]
        kept = without([Version(each["number"], each["old"], each["new"]) for each in history], dropped)
        values: dict[str, Any] = {"block_id": first["block_id"], "section": first["section"]}
        content = kept[-1].new if kept else None
        if content:
            for each in kept:
                rewritten = {"old": words_json(each.old), "new": words_json(each.new)}
                await self._run(REWRITE_VERSION, **values, version=each.number, **rewritten)
            await self._run(sql.REMOVE_VERSIONS, **values, numbers=dropped)
            await self._run(
                sql.REWRITE_SECTION, **values, version=first["version"] + 1, content=WordsJson(content)
            )
        else:
            await self._run(sql.REMOVE_SECTION, **values)
        await self._run(
            sql.SCRUB_SECTION,
            **values,
            expert_id=first["expert_id"],
            space_id=first["space_id"],
            everywhere=self._shares_human and first["section"] == SHARED_SECTION,
            content=WordsJson(content) if content else None,
            since=min(each["at"] for each in history if each["is_dropped"]),
        )

    async def _all(self, statement: Any, **more: Any) -> list[Any]:
        return await (await self._connection.execute(statement, {**self._values, **more})).fetchall()

    async def _run(self, statement: Any, **more: Any) -> None:
        await self._connection.execute(statement, {**self._values, **more})
