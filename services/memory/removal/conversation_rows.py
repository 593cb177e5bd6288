"""One conversation in PostgreSQL: what is removed with it, and what is made again without it."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from services.encryption.marks import WordsJson, words_json
from services.errors import Conflict, NotFound
from services.memory.core.provenance import Version, without
from services.memory.core.sql import SCRUB_SECTION
from services.memory.removal.purge_sql import (
    REWRITE_VERSION,
    SCRUB_COMMANDS_ABOUT,
    SCRUB_EPISODE_OPERATIONS,
    VERSIONS,
)
from services.memory.removal.stores import Left
from services.memory.removal.tables import LOCK_CORE_MEMORY, REMOVE_EPISODES, Rows
from services.platform.connections import Connection

_GOES_ON: LiteralString = """
SELECT FROM messages WHERE conversation_id = %(conversation_id)s AND created_at >= %(silent_since)s
UNION ALL SELECT FROM turns WHERE conversation_id = %(conversation_id)s AND finished_at IS NULL
LIMIT 1
"""

_LOCK: LiteralString = """
SELECT id FROM conversations WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s FOR UPDATE
"""

_SAID: LiteralString = "SELECT id FROM messages WHERE conversation_id = %(conversation_id)s"

# Episodes that come from the conversation, each with whether it also comes from elsewhere.
_EPISODES: LiteralString = """
SELECT e.id, e.content IS NOT NULL AND EXISTS (
    SELECT FROM messages m WHERE m.id = ANY(e.source_message_ids) AND m.conversation_id <> %(conversation_id)s
) AS is_mixed, e.content IS NOT NULL AS is_written
FROM episodes e
WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND (
    e.conversation_id = %(conversation_id)s OR e.source_message_ids && %(message_ids)s::uuid[]
)
ORDER BY e.id FOR UPDATE OF e
"""

_BRING_BACK: LiteralString = """
UPDATE episodes SET superseded_by = NULL, indexed_at = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND superseded_by = ANY(%(gone)s)
  AND NOT (id = ANY(%(gone)s))
"""

_DETACH: LiteralString = """
UPDATE episodes e SET
    conversation_id = CASE WHEN e.conversation_id <> %(conversation_id)s THEN e.conversation_id END,
    source_message_ids = ARRAY(
        SELECT s.id FROM unnest(e.source_message_ids) WITH ORDINALITY AS s (id, place)
        WHERE s.id <> ALL(%(message_ids)s) ORDER BY s.place),
    made_by = e.made_by || '{"kept_from_removed": true}', indexed_at = NULL
WHERE e.id = ANY(%(ids)s) AND e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.content IS NOT NULL
"""

# Core memory that is kept names no message that goes.
_DETACH_CORE_MEMORY: LiteralString = """
UPDATE core_memory_history SET trigger_message_id = NULL, made_by = made_by || '{"kept_from_removed": true}'
WHERE trigger_message_id = ANY(%(message_ids)s) AND tenant_id = %(tenant_id)s
"""

# Why something was remembered is kept with what is kept; what was searched for goes with the conversation.
_DETACH_OPERATIONS: LiteralString = """
UPDATE memory_operations SET conversation_id = NULL, turn_id = NULL
WHERE conversation_id = %(conversation_id)s AND tenant_id = %(tenant_id)s
  AND (type LIKE 'core\\_memory\\_%%' OR type LIKE 'episode\\_%%' OR type = 'promise')
"""

# What is promised is kept in another conversation then.
_DETACH_PROMISES: LiteralString = """
UPDATE promises SET conversation_id = NULL, source_message_id = NULL
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
  AND (conversation_id = %(conversation_id)s OR source_message_id = ANY(%(message_ids)s))
"""

# A day whose summary told of the conversation, with a visit to another one on the same day.
_REMOVE_DAYS: LiteralString = """
WITH here AS (
    SELECT array_agg(id) AS ids FROM visits WHERE conversation_id = %(conversation_id)s
), gone AS (
    DELETE FROM daily_summaries d USING here
    WHERE d.tenant_id = %(tenant_id)s AND d.user_id = %(user_id)s AND d.visit_ids && here.ids
    RETURNING d.date, d.visit_ids
)
SELECT gone.date, (
    SELECT v.id FROM visits v
    WHERE v.id = ANY(gone.visit_ids) AND v.conversation_id <> %(conversation_id)s
    ORDER BY v.started_at LIMIT 1
) AS visit_id FROM gone
"""

# Sections of core memory that the conversation changed, with their whole history.
_CHANGED_SECTIONS: LiteralString = """
SELECT b.id AS block_id, b.expert_id, b.space_id, b.section, b.version, h.version AS number, h.old, h.new, h.at,
       h.trigger_message_id = ANY(%(message_ids)s) AS is_dropped
FROM core_memory_blocks b JOIN core_memory_history h ON h.block_id = b.id
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s AND EXISTS (
    SELECT FROM core_memory_history c WHERE c.block_id = b.id AND c.trigger_message_id = ANY(%(message_ids)s)
)
ORDER BY b.expert_id, b.section, b.id, h.version
"""

_REMOVE_VERSIONS: LiteralString = """
DELETE FROM core_memory_history
WHERE block_id = %(block_id)s AND version = ANY(%(numbers)s) AND tenant_id = %(tenant_id)s
"""

# It counts as rewritten by the user, so that running conversations begin a new epoch.
_REWRITE_SECTION: LiteralString = """
WITH block AS (
    UPDATE core_memory_blocks SET content = %(content)s, version = %(version)s, rewritten_version = %(version)s,
        updated_at = clock_timestamp()
    WHERE id = %(block_id)s AND tenant_id = %(tenant_id)s
)
INSERT INTO core_memory_history (block_id, version, tenant_id, old, new, actor)
VALUES (%(block_id)s, %(version)s, %(tenant_id)s, %(content)s, %(content)s, 'user')
"""

_REMOVE_SECTION: LiteralString = """
DELETE FROM core_memory_blocks WHERE id = %(block_id)s AND tenant_id = %(tenant_id)s
"""

_REMOVE: LiteralString = """
DELETE FROM conversations WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s
"""


class ConversationRows(Rows):
    """The rows of one conversation, to be removed in the transaction of the caller."""

    def __init__(self, connection: Connection, values: dict[str, Any]) -> None:
        """Take `tenant_id`, `user_id` and `conversation_id`."""
        super().__init__(connection, values)
        self._connection = connection

    async def remove(
        self, recent_s: float, *, keep_memories: bool, silent_since: datetime | None = None
    ) -> tuple[dict[str, int], Left, list[UUID]]:
        """Remove all of it; return the counts, the traces in other stores, and one visit of each day whose summary
        must be made again.

        Turns that ended within `recent_s` seconds may have events in other stores.

        Raises:
            NotFound: It has been removed meanwhile.
            Conflict: Something was said in it since `silent_since`.
        """
        conversation_id = self.values["conversation_id"]
        await self.all(LOCK_CORE_MEMORY)
        if not await self.all(_LOCK):
            raise NotFound(f"There is no conversation {conversation_id}.")
        if silent_since is not None and await self.all(_GOES_ON, silent_since=silent_since):
            raise Conflict(f"The conversation {conversation_id} goes on.")
        turns = await self.recent_turns("conversation", recent_s=recent_s)
        counts = await self.counted("conversation")
        said = await self.firsts(_SAID)
        self.values |= {"message_ids": said, "whole_ids": said, "conversation_ids": [conversation_id]}
        gone, written = await self._episodes(keep_memories=keep_memories)
        counts |= {"turn_episodes": len(gone) - written, "memories": written}
        sections = 0 if keep_memories else await self._core_memory()
        if keep_memories:
            await self.run(_DETACH_OPERATIONS)
            await self.run(_DETACH_CORE_MEMORY)
            await self.run(_DETACH_PROMISES)
        counts["core_memory_sections"] = sections
        await self.run(SCRUB_COMMANDS_ABOUT)
        days = await self.all(_REMOVE_DAYS)
        counts["daily_summaries"] = len(days)
        await self.run(VERSIONS)
        counts["jobs"] = await self.remove_jobs("conversation")
        bases = await self.remove_documents("conversation")
        await self.run(_REMOVE)
        left = Left(self.values["user_id"], turns, gone, bases)
        return counts, left, [visit_id for _, visit_id in days if visit_id]

    async def _episodes(self, *, keep_memories: bool) -> tuple[list[UUID], int]:
        """Remove the conversation's episodes; return their ids, and how many of them were written memories."""
        rows = await self.all(_EPISODES)
        if keep_memories:
            await self.run(_DETACH, ids=[row[0] for row in rows])
            return [row[0] for row in rows if not row[2]], 0
        gone = sorted(row[0] for row in rows if not row[1])
        written = [row[0] for row in rows if row[2] and not row[1]]
        await self.run(_DETACH, ids=[row[0] for row in rows if row[1]])
        await self.run(_BRING_BACK, gone=gone)
        await self.run(REMOVE_EPISODES, gone=gone)
        await self.run(SCRUB_EPISODE_OPERATIONS, episode_ids=gone)
        return gone, len(written)

    async def _core_memory(self) -> int:
        """Remove from core memory what the conversation brought in; return the number of changed sections."""
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            rows = await (await cursor.execute(_CHANGED_SECTIONS, self.values)).fetchall()
        sections = [list(versions) for _, versions in groupby(rows, key=itemgetter("block_id"))]
        for history in sections:
            await self._section(history)
        return len(sections)

    async def _section(self, history: Sequence[dict[str, Any]]) -> None:
        first, dropped = history[0], [each["number"] for each in history if each["is_dropped"]]
        kept = without([Version(each["number"], each["old"], each["new"]) for each in history], dropped)
        values: dict[str, Any] = {name: first[name] for name in ("block_id", "section", "expert_id", "space_id")}
        content = kept[-1].new if kept else None
        if content:
            for each in kept:
                rewritten = {"old": words_json(each.old), "new": words_json(each.new)}
                await self.run(REWRITE_VERSION, **values, version=each.number, **rewritten)
            await self.run(_REMOVE_VERSIONS, **values, numbers=dropped)
            await self.run(_REWRITE_SECTION, **values, version=first["version"] + 1, content=WordsJson(content))
        else:
            await self.run(_REMOVE_SECTION, **values)
        await self.run(
            SCRUB_SECTION,
            **values,
            content=WordsJson(content) if content else None,
            since=min(each["at"] for each in history if each["is_dropped"]),
        )
