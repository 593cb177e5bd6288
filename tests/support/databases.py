"""Databases for tests, emptied and reused: creating and dropping one costs a third of what a client costs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import psycopg
from psycopg import Connection, sql

from services.platform.embedded_postgres import OWNER_ROLE, EmbeddedPostgres

TEMPLATE = "anamnesis"
_USES = 40
"""Uses after which a database is dropped, because deleted rows still take room in its files."""

_WITH_ROWS = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
"""
_RESTART_SEQUENCES = """
SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
FROM pg_sequences WHERE last_value IS NOT NULL
"""
_SCHEMA = """
SELECT max(last), sum(number) FROM (
    SELECT max(xmin::text::bigint) AS last, count(*) AS number FROM pg_class
    UNION ALL SELECT max(xmin::text::bigint), count(*) FROM pg_attribute
    UNION ALL SELECT max(xmin::text::bigint), count(*) FROM pg_attrdef
    UNION ALL SELECT max(xmin::text::bigint), count(*) FROM pg_constraint
    UNION ALL SELECT max(xmin::text::bigint), count(*) FROM pg_trigger
    UNION ALL SELECT max(xmin::text::bigint), count(*) FROM pg_policy
    UNION ALL SELECT max(xmin::text::bigint), count(*) FROM pg_proc
) AS catalogues
"""
_CONNECTED = "SELECT FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
_MOMENT_S, _MOMENTS = 0.002, 500
_DISCONNECT = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@dataclass
class _Used:
    """A database that may be reused."""

    name: str
    uses: int = 1


class Databases:
    """Databases of one server; each is a copy of the migrated template while a test has it."""

    def __init__(self, postgres: EmbeddedPostgres) -> None:
        """Read the template."""
        self.postgres = postgres
        self._free: list[_Used] = []
        self._rows: dict[str, bytes] = {}
        with self._connected(TEMPLATE) as connection:
            self._schema = connection.execute(_SCHEMA).fetchone()
            for (table,) in connection.execute(_WITH_ROWS).fetchall():
                with connection.cursor().copy(f"COPY {table} TO STDOUT") as rows:
                    self._rows[table] = b"".join(map(bytes, rows))
        self._server = self._connected("postgres")

    def close(self) -> None:
        """Disconnect."""
        self._server.close()

    @contextmanager
    def taken(self) -> Iterator[str]:
        """Yield the name of a database that nobody else uses, with the content of the template."""
        used = self._emptied() or self._created()
        yield used.name
        if used.uses < _USES:
            self._free.append(used)
        else:
            self._drop(used)

    def _created(self) -> _Used:
        name = f"test_{uuid4().hex}"
        self._server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {} STRATEGY FILE_COPY").format(
                sql.Identifier(name), sql.Identifier(TEMPLATE), sql.Identifier(OWNER_ROLE)
            )
        )
        return _Used(name)

    def _emptied(self) -> _Used | None:
        """Return a free database in the state of the template; None if there is none, or a test changed its
        tables."""
        if not self._free:
            return None
        used = self._free.pop()
        with self._connected(used.name) as connection:
            connection.execute(_DISCONNECT)
            is_as_made = connection.execute(_SCHEMA).fetchone() == self._schema
            if is_as_made:
                self._restore(connection)
        if is_as_made and self._is_left(used):
            used.uses += 1
            return used
        self._drop(used)
        return None

    def _is_left(self, used: _Used) -> bool:
        """Return whether nobody is connected any more; a closed connection ends a moment later."""
        for _ in range(_MOMENTS):
            if not self._server.execute(_CONNECTED, [used.name]).fetchone():
                return True
            time.sleep(_MOMENT_S)
        return False

    def _restore(self, connection: Connection) -> None:
        tables = [table for (table,) in connection.execute(_WITH_ROWS).fetchall()]
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")  # no triggers, no foreign keys
            connection.execute("".join(f"DELETE FROM {table};" for table in tables))
            for table, rows in self._rows.items():
                with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                    copy.write(rows)
        connection.execute(_RESTART_SEQUENCES)

    def _drop(self, used: _Used) -> None:
        self._server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(used.name)))

    def _connected(self, name: str) -> Connection:
        return psycopg.connect(self.postgres.url("postgres", name), autocommit=True)
