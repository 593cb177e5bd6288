"""One conversation in PostgreSQL: what is removed with it, and what is made again without it."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from services.encryption.marks import WordsJson, words_json
from services.errors import Conflict, NotFound
from services.memory.core import SHARED_SECTION
from services.memory.core_sql import SCRUB_SECTION
from services.memory.provenance import Version, without
from services.memory.removal import conversation_sql as sql
from services.memory.removal.purge_sql import (
    REWRITE_VERSION,
    SCRUB_COMMANDS_ABOUT,
    SCRUB_EPISODE_OPERATIONS,
    VERSIONS,
)
from services.memory.removal.stores import Left
from services.memory.removal.tables import LOCK_CORE_MEMORY, REMOVE_EPISODES, Rows
from services.platform.connections import Connection


class ConversationRows(Rows):
    """The rows of one conversation, to be removed in the transaction of the caller."""

    def __init__(self, connection: Connection, values: dict[str, Any], *, shares_human: bool) -> None:
        """Take `tenant_id`, `user_id` and `conversation_id`."""
        super().__init__(connection, values)
        self._connection = connection
        self._shares_human = shares_human

    async def remove(
        self, recent_s: float, *, keep_memories: bool, silent_since: datetime | None = None
    ) -> tuple[dict[str, int], Left, list[UUID]]:
        """Remove all of it; return the counts, what is elsewhere, and a visit of each day to summarise again.

        Turns that ended within `recent_s` seconds may have events elsewhere.

        Raises:
            NotFound: it has been removed meanwhile.
            Conflict: something was said in it since `silent_since`.
        """
        conversation_id = self.values["conversation_id"]
        await self.all(LOCK_CORE_MEMORY)
        if not await self.all(sql.LOCK):
            raise NotFound(f"There is no conversation {conversation_id}.")
        if silent_since is not None and await self.all(sql.GOES_ON, silent_since=silent_since):
            raise Conflict(f"The conversation {conversation_id} goes on.")
        turns = await self.recent_turns("conversation", recent_s=recent_s)
        counts = await self.counted("conversation")
        said = await self.firsts(sql.SAID)
        self.values |= {"message_ids": said, "whole_ids": said, "conversation_ids": [conversation_id]}
        gone, written = await self._episodes(keep_memories=keep_memories)
        counts |= {"turn_episodes": len(gone) - written, "memories": written}
        experts = [] if keep_memories else await self._core_memory()
        if keep_memories:
            await self.run(sql.DETACH_OPERATIONS)
            await self.run(sql.DETACH_CORE_MEMORY)
        counts["core_memory_sections"] = len(experts)
        await self.run(SCRUB_COMMANDS_ABOUT)
        days = await self.all(sql.REMOVE_DAYS)
        counts["daily_summaries"] = len(days)
        await self.run(VERSIONS)
        counts["jobs"] = await self.remove_jobs("conversation")
        bases = await self.remove_documents("conversation")
        await self.run(sql.REMOVE)
        left = Left(self.values["user_id"], turns, sorted(set(experts)), gone, bases)
        return counts, left, [visit_id for _, visit_id in days if visit_id]

    async def _episodes(self, *, keep_memories: bool) -> tuple[list[UUID], int]:
        """Remove the conversation's episodes; return their ids, and how many of them were written memories."""
        rows = await self.all(sql.EPISODES)
        if keep_memories:
            await self.run(sql.DETACH, ids=[row[0] for row in rows])
            return [row[0] for row in rows if not row[2]], 0
        gone = sorted(row[0] for row in rows if not row[1])
        written = [row[0] for row in rows if row[2] and not row[1]]
        await self.run(sql.DETACH, ids=[row[0] for row in rows if row[1]])
        await self.run(sql.BRING_BACK, gone=gone)
        await self.run(REMOVE_EPISODES, gone=gone)
        await self.run(SCRUB_EPISODE_OPERATIONS, episode_ids=gone)
        return gone, len(written)

    async def _core_memory(self) -> list[UUID]:
        """Take out of core memory what the conversation brought in; return the expert of each section changed."""
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            rows = await (await cursor.execute(sql.CHANGED_SECTIONS, self.values)).fetchall()
        experts = []
        for _, versions in groupby(rows, key=itemgetter("block_id")):
            history = list(versions)
            await self._section(history)
            experts.append(history[0]["expert_id"])
        return experts

    async def _section(self, history: Sequence[dict[str, Any]]) -> None:
        first, dropped = history[0], [each["number"] for each in history if each["is_dropped"]]
        kept = without([Version(each["number"], each["old"], each["new"]) for each in history], dropped)
        values: dict[str, Any] = {name: first[name] for name in ("block_id", "section", "expert_id", "space_id")}
        content = kept[-1].new if kept else None
        if content:
            for each in kept:
                rewritten = {"old": words_json(each.old), "new": words_json(each.new)}
                await self.run(REWRITE_VERSION, **values, version=each.number, **rewritten)
            await self.run(sql.REMOVE_VERSIONS, **values, numbers=dropped)
            await self.run(sql.REWRITE_SECTION, **values, version=first["version"] + 1, content=WordsJson(content))
        else:
            await self.run(sql.REMOVE_SECTION, **values)
        await self.run(
            SCRUB_SECTION,
            **values,
            everywhere=self._shares_human and first["section"] == SHARED_SECTION,
            content=WordsJson(content) if content else None,
            since=min(each["at"] for each in history if each["is_dropped"]),
        )
