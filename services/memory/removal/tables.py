"""The tables that hold data of users: the only list of them, and which rows of each belong to whom."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Literal, LiteralString
from uuid import UUID

import psycopg
from psycopg import sql

from services.errors import DatabaseUnavailable
from services.memory.removal.hiding_sql import MERGED_INTO
from services.platform.connections import Connection

Whole = Literal["user", "space", "conversation"]
"""Kinds of things that are removed as a whole; statements take the id as `user_id`, `space_id` or
`conversation_id`."""

# The column by which a row hangs on its user; `block_id`, `base_id`, `event_id` and `message_id` lead
# there through another table.
_COLUMNS: Mapping[LiteralString, LiteralString] = {
    "users": "id",
    "conversations": "user_id",
    "messages": "conversation_id",
    "turns": "conversation_id",
    "conversation_summaries": "conversation_id",
    "summary_parts": "conversation_id",
    "topics": "user_id",
    "context_epochs": "conversation_id",
    "core_memory_blocks": "user_id",
    "core_memory_history": "block_id",
    "core_memory_generations": "user_id",
    "memory_generations": "user_id",
    "episodes": "user_id",
    "memory_operations": "user_id",
    "visits": "user_id",
    "daily_summaries": "user_id",
    "upkeep_runs": "user_id",
    "upkeep_changes": "user_id",
    "upkeep_nights": "user_id",
    "core_memory_pins": "block_id",
    "feedback": "message_id",
    "conversation_branches": "conversation_id",
    "usage": "user_id",
    "spaces": "user_id",
    "recall_exclusions": "conversation_id",
    "forget_receipts": "user_id",
    "forgotten_words": "user_id",
    "memory_versions": "user_id",
    "store_items": "user_id",
    "promises": "user_id",
    "user_events": "user_id",
    "webhook_deliveries": "event_id",
    "tool_accounts": "user_id",
    "knowledge_bases": "user_id",
    "kb_documents": "base_id",
    "kb_chunks": "base_id",
}
TABLES = tuple(_COLUMNS)
"""Tables whose rows PostgreSQL deletes with the user's row in `users`."""

OF_NOBODY: LiteralString = "true"
"""Selects all rows of a table that names no user."""
_BLOCKS: LiteralString = "t.block_id IN (SELECT id FROM core_memory_blocks WHERE user_id = %(user_id)s)"
_OF_USER: Mapping[LiteralString, LiteralString] = {
    "id": "t.id = %(user_id)s",
    "user_id": "t.user_id = %(user_id)s",
    "conversation_id": "t.conversation_id IN (SELECT id FROM conversations WHERE user_id = %(user_id)s)",
    "base_id": "t.base_id IN (SELECT id FROM knowledge_bases WHERE user_id = %(user_id)s)",
    "block_id": _BLOCKS,
    "event_id": "t.event_id IN (SELECT id FROM user_events WHERE user_id = %(user_id)s)",
    "message_id": "t.message_id IN (SELECT m.id FROM messages m JOIN conversations c ON c.id = m.conversation_id"
    " WHERE c.user_id = %(user_id)s)",
}
_IN_SPACE: LiteralString = "t.space_id = %(space_id)s"
_SAID_IN_SPACE: LiteralString = "t.conversation_id IN (SELECT id FROM conversations WHERE space_id = %(space_id)s)"
_OF_SPACE: Mapping[LiteralString, LiteralString] = {
    "spaces": "t.id = %(space_id)s",
    "conversations": _IN_SPACE,
    "messages": _SAID_IN_SPACE,
    "turns": _SAID_IN_SPACE,
    "core_memory_blocks": _IN_SPACE,
    "episodes": _IN_SPACE,
    "memory_operations": _IN_SPACE,
    "visits": _IN_SPACE,
    "daily_summaries": _IN_SPACE,
    "store_items": _IN_SPACE,
    "promises": _IN_SPACE,
}
_IN_CONVERSATION: LiteralString = "t.conversation_id = %(conversation_id)s"
_OF_CONVERSATION: Mapping[LiteralString, LiteralString] = {
    "conversations": "t.id = %(conversation_id)s",
    "messages": _IN_CONVERSATION,
    "promises": _IN_CONVERSATION,
    "turns": _IN_CONVERSATION,
    "conversation_summaries": _IN_CONVERSATION,
    "topics": _IN_CONVERSATION,
    "visits": _IN_CONVERSATION,
    "feedback": "t.message_id IN (SELECT id FROM messages WHERE conversation_id = %(conversation_id)s)",
}
_ROWS: Mapping[Whole, Mapping[LiteralString, LiteralString]] = {
    "user": {table: _OF_USER[column] for table, column in _COLUMNS.items()},
    "space": _OF_SPACE,
    "conversation": _OF_CONVERSATION,
}

# Ids by which background jobs name what is removed.
_NAMED: Mapping[Whole, Collection[LiteralString]] = {
    "user": ("users", "conversations", "turns", "messages", "visits", "upkeep_runs"),
    "space": ("conversations", "turns", "messages", "visits"),
    "conversation": ("conversations", "turns", "messages", "visits"),
}
# A conversation that begins meanwhile waits for this lock, and then finds no user.
LOCK_USER: LiteralString = "SELECT id FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s FOR UPDATE"

# Changes of core memory lock these rows first, and a conversation only afterwards.
LOCK_CORE_MEMORY: LiteralString = """
SELECT expert_id FROM core_memory_generations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s ORDER BY expert_id FOR UPDATE
"""

_TURNS: LiteralString = "SELECT t.id, t.finished_at IS NULL FROM turns t WHERE t.tenant_id = %(tenant_id)s AND "
_RECENT: LiteralString = (
    " AND (t.finished_at IS NULL OR t.finished_at > now() - make_interval(secs => %(recent_s)s))"
)

REMOVE_EPISODES: LiteralString = """
DELETE FROM episodes WHERE id = ANY(%(gone)s) AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""

# A run of upkeep may be merging it at this moment.
_LOCK_EPISODE: LiteralString = """
SELECT id FROM episodes
WHERE id = %(episode_id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s FOR UPDATE
"""

_KEEP_OUT: LiteralString = """
UPDATE episodes SET retracted_at = coalesce(retracted_at, clock_timestamp())
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND superseded_by = ANY(%(gone)s)
  AND NOT (id = ANY(%(gone)s))
"""

# Its worker hears of it at the commit and stops the job; the row may be gone by then.
_STOP_JOBS = "UPDATE procrastinate_jobs SET abort_requested = true WHERE id = ANY(%s) AND status = 'doing'"
_REMOVE_JOBS = "DELETE FROM procrastinate_jobs WHERE id = ANY(%s)"
_JOBS: LiteralString = """
WITH erased (id) AS ({ids})
SELECT j.id FROM procrastinate_jobs j
WHERE coalesce(j.args->>'tenant_id', '00000000-0000-7000-8000-000000000001') = %(tenant_id)s::text
  AND EXISTS (
      SELECT FROM jsonb_each(j.args) AS argument(name, value)
      CROSS JOIN LATERAL jsonb_array_elements_text(
          CASE jsonb_typeof(value) WHEN 'array' THEN value ELSE jsonb_build_array(value) END
      ) AS each(id) JOIN erased ON erased.id = each.id
  )
ORDER BY j.id FOR UPDATE OF j
"""

_REMOVE_DOCUMENTS: LiteralString = """
DELETE FROM knowledge_bases b USING conversations t
WHERE {own} AND t.tenant_id = %(tenant_id)s AND b.tenant_id = t.tenant_id
  AND (b.user_id, b.session_key) = (t.user_id, t.session_key)
RETURNING b.id
"""


_COLUMNS_OF_TABLES: LiteralString = """
SELECT c.relname, jsonb_object_agg(a.attname, format_type(a.atttypid, NULL))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attgenerated = ''
GROUP BY c.relname ORDER BY c.relname
"""


async def columns_of_tables(connection: Connection) -> list[tuple[str, dict[str, str]]]:
    """Return every table with its columns and their types, without generated columns."""
    return await (await connection.execute(_COLUMNS_OF_TABLES)).fetchall()


def rows_of_user(table: str) -> LiteralString:
    """Return the condition that selects a table's rows `t` of `user_id`; all rows if the table names no user."""
    return dict[str, LiteralString](_ROWS["user"]).get(table, OF_NOBODY)


class Rows:
    """Runs statements of one transaction with the same values."""

    def __init__(self, connection: Connection, values: Mapping[str, Any]) -> None:
        self._connection = connection
        self.values = dict(values)

    async def all(self, statement: LiteralString, **more: Any) -> list[Any]:
        """Run a statement, with more values, and return its rows."""
        return await (await self._connection.execute(statement, {**self.values, **more})).fetchall()

    async def firsts(self, statement: LiteralString, **more: Any) -> list[Any]:
        """Run a statement, with more values, and return the first column of its rows."""
        return [row[0] for row in await self.all(statement, **more)]

    async def run(self, statement: LiteralString, **more: Any) -> int:
        """Run a statement, with more values, and return the number of rows that it changed."""
        return (await self._connection.execute(statement, {**self.values, **more})).rowcount

    async def counted(self, whole: Whole) -> dict[str, int]:
        """Count the rows that go, by table."""
        counting: list[LiteralString] = [
            f"(SELECT count(*) FROM {table} t WHERE {condition})"  # noqa: S608 — our own text only
            for table, condition in _ROWS[whole].items()
        ]
        [row] = await self.all("SELECT " + ", ".join(counting))
        return dict(zip(_ROWS[whole], row, strict=True))

    async def recent_turns(self, whole: Whole, *, recent_s: float) -> list[tuple[Any, bool]]:
        """Return turns that may have events in other stores, and whether each is still running. Events are kept
        for `recent_s` seconds after the end of a turn."""
        statement: LiteralString = _TURNS + _ROWS[whole]["turns"] + _RECENT
        return [(row[0], row[1]) for row in await self.all(statement, recent_s=recent_s)]

    async def remove_jobs(self, whole: Whole) -> int:
        """Stop and remove the tenant's jobs that name anything of the user; return their number."""
        ids: list[LiteralString] = [
            f"SELECT t.id::text FROM {table} t WHERE {_ROWS[whole][table]}"  # noqa: S608 — our own text only
            for table in _NAMED[whole]
        ]
        statement: LiteralString = _JOBS.replace("{ids}", " UNION ".join(ids))
        jobs = await self.firsts(statement)
        await self._connection.execute(_STOP_JOBS, [jobs])
        await self._connection.execute(_REMOVE_JOBS, [jobs])
        return len(jobs)

    async def remove_documents(self, whole: Whole) -> list[UUID]:
        """Remove the documents of its conversations; return the bases that held them."""
        statement: LiteralString = _REMOVE_DOCUMENTS.replace("{own}", _ROWS[whole]["conversations"])
        return await self.firsts(statement)

    async def remove_with_merged(self, episode_id: UUID) -> list[UUID]:
        """Remove a memory together with those that were merged into it, because they say the same. What they had
        replaced stays out of memory. Return everything removed; nothing if there is no such memory."""
        if not await self.all(_LOCK_EPISODE, episode_id=episode_id):
            return []
        gone = [episode_id, *await self.firsts(MERGED_INTO, episode_ids=[episode_id])]
        await self.run(_KEEP_OUT, gone=gone)
        await self.run(REMOVE_EPISODES, gone=gone)
        return gone


async def scrub(owner_url: str) -> None:
    """Rewrite the tables of users, so that no page contains the bytes of deleted rows. Each table is locked
    meanwhile.

    A plain VACUUM frees the space but does not overwrite it, neither in tables nor in indexes. VACUUM FULL writes
    both anew with the living rows only, and deletes the old files. Raises `DatabaseUnavailable` if nothing answers
    at the address.
    """
    await asyncio.to_thread(_scrub, owner_url)


def _scrub(owner_url: str) -> None:
    try:
        with psycopg.connect(owner_url, autocommit=True, connect_timeout=10) as connection:
            for table in TABLES:
                connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable("The tables cannot be rewritten; try again.") from error
