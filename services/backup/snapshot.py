"""Writes a backup: every table as it is at one moment, while the service keeps running.

It reads in one REPEATABLE READ transaction as the service's own role. Row-level security applies, so tables with
tenants are read tenant by tenant. Redis and Milvus are left out: Redis holds nothing that lasts, and Milvus is
rebuilt from PostgreSQL.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.rows import class_row

from services.backup.archive import FORMAT, Manifest, new_archive
from services.errors import ConfigurationError, DatabaseUnavailable

Connection = psycopg.Connection[tuple[Any, ...]]

# Left out are the revision, which is in the manifest, generated columns, and transaction numbers, which mean
# nothing in another database.
_TABLES: LiteralString = """
SELECT c.relname AS name, c.relrowsecurity AS of_tenants, c.relforcerowsecurity AS forces_row_security,
       array_agg(a.attname::text ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'alembic_version'
  AND NOT a.attisdropped AND a.attgenerated = ''
  AND a.atttypid <> 'xid8'::regtype
GROUP BY c.oid ORDER BY c.relname
"""

_SEQUENCES: LiteralString = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'S' ORDER BY relname
"""

_REVISION: LiteralString = "SELECT version_num FROM alembic_version"

_TENANTS: LiteralString = "SELECT id FROM tenants ORDER BY id"


@dataclass(frozen=True)
class Table:
    name: str
    of_tenants: bool
    """Whether only rows of the transaction's tenant are visible."""
    forces_row_security: bool
    """Whether row-level security applies to the table's owner too."""
    columns: list[str]

    @property
    def identifier(self) -> sql.Identifier:
        """Return its name for a statement."""
        return sql.Identifier("public", self.name)

    @property
    def column_list(self) -> sql.Composed:
        """Return its columns for a statement."""
        return sql.SQL(", ").join(map(sql.Identifier, self.columns))


def tables_of(connection: Connection) -> list[Table]:
    """Return every table by name, except the one with the revision."""
    with connection.cursor(row_factory=class_row(Table)) as cursor:
        return cursor.execute(_TABLES).fetchall()


def sequences_of(connection: Connection) -> dict[str, int]:
    """Return the last value of every sequence by its name."""
    names = [row[0] for row in connection.execute(_SEQUENCES).fetchall()]
    values = {}
    for name in names:
        query = sql.SQL("SELECT last_value FROM {}").format(sql.Identifier("public", name))
        row = connection.execute(query).fetchone()
        assert row is not None  # noqa: S101 — a sequence is a relation of one row
        values[name] = int(row[0])
    return values


def revision_of(connection: Connection) -> str | None:
    """Return the revision of the schema; None for a database without this service's schema."""
    if connection.execute("SELECT to_regclass('public.alembic_version') IS NULL").fetchone() == (True,):
        return None
    row = connection.execute(_REVISION).fetchone()
    return str(row[0]) if row else None


def tenants_of(connection: Connection) -> list[str]:
    """Return the ids of all tenants."""
    return [str(row[0]) for row in connection.execute(_TENANTS).fetchall()]


def set_tenant(connection: Connection, tenant_id: str) -> None:
    """Make the rows of a tenant visible for the rest of the transaction."""
    connection.execute("SELECT set_config('anamnesis.tenant_id', %s, true)", [tenant_id])


_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"


def write_backup(database_url: str, path: Path, on_table: Callable[[str, int], None]) -> Manifest:
    """Write everything in PostgreSQL into a new file, and return the manifest.

    Args:
        database_url: Address of the database, with the service's role.
        path: File, which appears when it is complete.
        on_table: Called when a table begins, with its name and the number of tables.

    Raises:
        ConfigurationError: The database has no schema of the service.
        DatabaseUnavailable: The database does not answer; there is no file.
        InvalidInput: The file exists already.
        OSError: The file cannot be written.
    """
    try:
        with psycopg.connect(database_url, autocommit=True, connect_timeout=10) as connection:
            connection.execute(_BEGIN)
            manifest = _write(connection, path, on_table)
            connection.execute("COMMIT")
            return manifest
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable from error


def _write(connection: Connection, path: Path, on_table: Callable[[str, int], None]) -> Manifest:
    revision = revision_of(connection)
    if revision is None:
        raise ConfigurationError("The database holds nothing of the service: there is nothing to back up.")
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    tenants, tables = tenants_of(connection), tables_of(connection)
    with new_archive(path) as archive:
        stored = []
        for table in tables:
            on_table(table.name, len(tables))
            stored.append(archive.add_table(table.name, table.columns, _rows(connection, table, tenants)))
        manifest = Manifest(
            format=FORMAT,
            service=metadata.version("anamnesis-agent"),
            revision=revision,
            made_at=moment,
            tables=stored,
            sequences=sequences_of(connection),
        )
        archive.finish(manifest)
    return manifest


def _rows(connection: Connection, table: Table, tenants: list[str]) -> Iterator[Buffer]:
    everything = sql.SQL("SELECT {} FROM {}").format(table.column_list, table.identifier)
    if not table.of_tenants:
        yield from _copied(connection, everything)
        return
    for tenant_id in tenants:
        set_tenant(connection, tenant_id)
        yield from _copied(connection, sql.SQL("{} WHERE tenant_id = {}").format(everything, tenant_id))


def _copied(connection: Connection, query: sql.Composed) -> Iterator[Buffer]:
    with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY ({}) TO STDOUT").format(query)) as copy:
        yield from copy
