"""Writing a backup: every table as it is at one moment, while the service goes on.

It reads in one REPEATABLE READ transaction, as the service's own role: row-level security holds, so that tables
of tenants are read tenant by tenant. Redis holds nothing that lasts, and Milvus is rebuilt from PostgreSQL.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.abc import Buffer

from services.backup.archive import FORMAT, Manifest, new_archive
from services.backup.tables import (
    Connection,
    Table,
    revision_of,
    sequences_of,
    set_tenant,
    tables_of,
    tenants_of,
)
from services.errors import ConfigurationError, DatabaseUnavailable

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"


def write_backup(database_url: str, path: Path, on_table: Callable[[str, int], None]) -> Manifest:
    """Write everything that PostgreSQL holds into a new file, and return what it holds.

    Args:
        database_url: of the service's role.
        path: of the file, which appears when it is complete.
        on_table: called with the name of each table that is begun, and the number of tables.

    Raises:
        ConfigurationError: there is no schema of the service.
        DatabaseUnavailable: the database does not answer; there is no file.
        InvalidInput: there is such a file already.
        OSError: the file cannot be written.
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
    with (
        connection.cursor() as cursor,
        cursor.copy(sql.SQL("COPY ({}) TO STDOUT").format(query)) as copy,
    ):
        yield from copy
