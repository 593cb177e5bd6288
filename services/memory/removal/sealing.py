"""Encryption of an installation that was in clear: seals its rows user by user, while the service may run.

What is sealed is left alone, so that a run that was interrupted goes on by beginning again; users who are done are
marked, and skipped.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncConnection, sql
from psycopg.rows import tuple_row

from services.encryption.columns import WAYS, sealed_columns
from services.encryption.data_key import DataKey
from services.encryption.marks import Sealed
from services.encryption.vault import Vault
from services.errors import ConfigurationError
from services.memory.removal.tables import rows_of_user
from services.platform.database_errors import driver_errors_made_ours
from services.platform.postgres import UNHURRIED_S, Database

_ROWS_AT_ONCE = 200
_FIRST = "(0,0)"
_LISTS = {("feedback", "tags")}
"""Columns that are arrays of texts."""

_BEGUN: LiteralString = "SELECT EXISTS (SELECT FROM encryption)"
_OTHERS: LiteralString = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
"""
_STATE: LiteralString = "SELECT sealed_at IS NULL FROM encryption"
_USERS: LiteralString = """
SELECT id, external_id FROM users WHERE tenant_id = %(tenant_id)s AND sealed_at IS NULL ORDER BY id
"""
_COUNTS: LiteralString = """
SELECT count(*) FILTER (WHERE sealed_at IS NOT NULL), count(*) FROM users WHERE tenant_id = %(tenant_id)s
"""
_DONE_WITH: LiteralString = """
UPDATE users SET sealed_at = clock_timestamp() WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s
"""
_DONE: LiteralString = "UPDATE encryption SET sealed_at = clock_timestamp() WHERE sealed_at IS NULL"

# What triggers have just kept is what the rows were before, in clear.
_NO_VERSIONS: LiteralString = """
DELETE FROM memory_versions
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND xmin = pg_current_xact_id()::xid
"""
_VERSIONED = frozenset({"episodes", "messages", "daily_summaries"})


@dataclass(frozen=True)
class SealingProgress:
    """How far the encryption of an installation has come."""

    under_way: bool
    """Whether some words of users are still in clear, or in the index."""
    sealed_users: int
    """Users of whom everything is sealed."""
    users: int


async def require_alone(url: str) -> None:
    """Check that no service uses a database that is not encrypted so far: it would go on writing in clear.

    Raises:
        ConfigurationError: one does.
        DatabaseUnavailable: nothing answers at the address.
    """
    async with driver_errors_made_ours(), await AsyncConnection.connect(url, connect_timeout=10) as connection:
        [begun] = await (await connection.execute(_BEGUN)).fetchone() or (False,)
        [others] = await (await connection.execute(_OTHERS)).fetchone() or (0,)
    if others and not begun:
        raise ConfigurationError(
            "A service still uses the database without encryption: stop all of its processes, and run the command "
            "again. They may start with ANAMNESIS_ENCRYPTION=on as soon as it has begun."
        )


class Sealing:
    """Seals what an installation has stored in clear."""

    def __init__(self, database: Database) -> None:
        """Take the database, opened with encryption.

        Raises:
            ConfigurationError: encryption is off.
        """
        if database.vault is None:
            raise ConfigurationError("Encryption is off: set ANAMNESIS_ENCRYPTION=on.")
        self._database = database
        self._vault: Vault = database.vault

    async def progress(self) -> SealingProgress:
        """Return how far it has come.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        done = users = 0
        under_way = False
        for tenant_id in await self._database.tenants():
            values = {"tenant_id": tenant_id}
            [counts] = await self._database.fetch(tenant_id, _COUNTS, values, tuple_row)
            [(under_way,)] = await self._database.fetch(tenant_id, _STATE, {}, tuple_row)
            done, users = done + counts[0], users + counts[1]
        return SealingProgress(under_way, done, users)

    async def seal(self, on_user: Callable[[], None] = lambda: None) -> int:
        """Seal everything of all users who are not done; return how many rows were in clear.

        `on_user` is called after each user.

        Raises:
            DatabaseUnavailable: the database does not answer; called again, it goes on.
            Unavailable: the keys cannot be read or written.
        """
        count = 0
        for tenant_id in await self._database.tenants():
            users = await self._database.fetch(tenant_id, _USERS, {"tenant_id": tenant_id}, tuple_row)
            for user_id, name in users:
                count += await self._seal_user(tenant_id, user_id, name)
                on_user()
        return count

    async def finish(self) -> None:
        """Record that nothing is in clear any more, once the index was rebuilt.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        for tenant_id in (await self._database.tenants())[:1]:
            async with self._database.tenant(tenant_id) as connection:
                await connection.execute(_DONE)

    async def _seal_user(self, tenant_id: UUID, user_id: UUID, name: str) -> int:
        key = await asyncio.to_thread(self._vault.keys.make_for, tenant_id, name)
        values = {"tenant_id": tenant_id, "user_id": user_id}
        count = 0
        for table in WAYS:
            last: str | None = _FIRST
            while last is not None:
                changed, last = await self._seal_rows(table, values, key, last)
                count += changed
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute(_DONE_WITH, values)
        return count

    async def _seal_rows(
        self, table: str, values: dict[str, Any], key: DataKey, after: str
    ) -> tuple[int, str | None]:
        """Seal the rows of a table behind a place, as many as one transaction takes.

        Returns:
            How many were in clear, and the place of the last one; None = it was the last of all.
        """
        names = list(WAYS[table])
        changed = 0
        async with self._database.tenant(values["tenant_id"], statement_s=UNHURRIED_S) as connection:
            cursor = await connection.execute(
                _rows(table, names), {**values, "after": after, "most": _ROWS_AT_ONCE}
            )
            rows = await cursor.fetchall()
            for place, kind, *contents in rows:
                texts = [None if each is None else bytes(each).decode() for each in contents]
                again = sealed_columns(table, {**dict(zip(names, texts, strict=True)), "type": kind}, key)
                if again:
                    changed += 1
                    given = {column: Sealed(text) for column, text in again.items()}
                    await connection.execute(_update(table, list(again)), {**given, "place": place})
            if changed and table in _VERSIONED:
                await connection.execute(_NO_VERSIONS, values)
        return changed, rows[-1][0] if len(rows) == _ROWS_AT_ONCE else None


def _rows(table: str, names: list[str]) -> sql.Composed:
    """Return the statement that locks some rows of a user, in the order of their places.

    A row that is changed moves behind those that are still to come, and is then found sealed.
    """
    return sql.SQL(
        "SELECT ctid::text, {kind}, {columns} FROM {table} t WHERE {own} AND ctid > %(after)s::tid"
        " ORDER BY ctid LIMIT %(most)s FOR UPDATE"
    ).format(
        kind=sql.SQL("t.type" if table == "memory_operations" else "NULL"),
        # As bytes: a text would be opened on its way.
        columns=sql.SQL(", ").join(_text_form(table, name) for name in names),
        table=sql.Identifier(table),
        own=sql.SQL(rows_of_user(table)),
    )


_BY_USER = frozenset(
    {
        *("conversations", "core_memory_blocks", "episodes", "memory_operations", "visits", "daily_summaries"),
        *("memory_versions", "topics", "forgotten_words"),
    }
)
"""Tables that name the user."""


def _text_form(table: str, name: str) -> sql.Composed:
    form = "to_jsonb(t.{})::text" if (table, name) in _LISTS else "t.{}::text"
    return sql.SQL("convert_to(" + form + ", 'UTF8')").format(sql.Identifier(name))


def _update(table: str, names: list[str]) -> sql.Composed:
    """Return the statement that replaces columns of one row by their text forms."""
    assignments = []
    for name in names:
        form: LiteralString = "{name} = {value}"
        if (table, name) in _LISTS:
            form = "{name} = ARRAY(SELECT jsonb_array_elements_text({value}::jsonb))"
        assignments.append(sql.SQL(form).format(name=sql.Identifier(name), value=sql.Placeholder(name)))
    return sql.SQL("UPDATE {} SET {} WHERE ctid = {}::tid").format(
        sql.Identifier(table), sql.SQL(", ").join(assignments), sql.Placeholder("place")
    )
