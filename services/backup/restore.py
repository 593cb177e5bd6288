"""Restores a backup into PostgreSQL, completely or not at all, in one transaction.

The schema is created at the revision of the backup, filled, and brought up to date. Nothing in the file runs as a
statement: it holds only rows. Constraints are checked when all rows are there.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row
from sqlalchemy import create_engine, pool

from services.backup import last_format
from services.backup.archive import Archive, StoredTable
from services.backup.snapshot import Connection, Table, revision_of, set_tenant, tables_of, tenants_of
from services.encryption.data_key import UNREADABLE
from services.errors import Conflict, DatabaseUnavailable, InvalidInput
from services.platform.migrate import (
    BASELINE,
    grant_to_service,
    lock_migrations,
    newest_revision,
    require_role,
    upgrade_within,
)
from services.platform.postgres import Database

# A new installation has the tenant and the expert `default`. Policies let the owner see the keys of all tenants.
_HOLDS: LiteralString = """
SELECT (SELECT count(*) FROM users WHERE tenant_id = %(tenant_id)s),
       (SELECT count(*) FROM knowledge_bases WHERE tenant_id = %(tenant_id)s),
       (SELECT count(*) FROM api_keys WHERE tenant_id = %(tenant_id)s),
       (SELECT count(*) FROM experts WHERE tenant_id = %(tenant_id)s AND name <> 'default')
"""
_KINDS = ("users", "knowledge bases", "API keys", "experts")

# A role sees few columns of other roles' connections; the server's own workers have no user.
_OTHERS: LiteralString = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
"""

_LEAVING_S = 1.0
"""Seconds that connections which were just closed may take to end in the server."""

_OWN_RELATIONS: LiteralString = """
SELECT relname FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relowner = current_user::regrole
"""
_OWN_ROUTINES: LiteralString = """
SELECT oid::regprocedure::text FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND proowner = current_user::regrole
"""
_OWN_TYPES: LiteralString = """
SELECT t.typname FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
WHERE t.typnamespace = 'public'::regnamespace AND t.typowner = current_user::regrole
  AND (t.typtype IN ('e', 'd', 'r') OR c.relkind = 'c')
"""

_FOREIGN_KEYS: LiteralString = """
SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND connamespace = 'public'::regnamespace
"""


@dataclass(frozen=True)
class Target:
    """The database to restore into."""

    owner_url: str
    """Address of the tables' owner."""
    service_role: str
    """The role that is to use the tables."""


def restore(
    target: Target, archive: Archive, *, replace: bool, on_rows: Callable[[int], None] = lambda _: None
) -> None:
    """Restore a verified backup.

    Args:
        target: An empty database, or one with a new installation; with `replace` any that nobody uses.
        archive: The backup.
        replace: Whether existing data is removed.
        on_rows: Called with the number of rows of each table that was filled.

    Raises:
        InvalidInput: The backup is of a newer version, or does not match the schema that it names.
        Conflict: The database is in use, or holds data and is not to be replaced.
        ConfigurationError: The service's role does not exist.
        DatabaseUnavailable: The database does not answer; nothing was changed.
    """
    revision = archive.manifest.revision
    if revision < last_format.ADDED_SINCE and revision != last_format.REVISION:
        raise InvalidInput(
            "backup",
            f"has the schema {revision}; before {last_format.ADDED_SINCE}, only {last_format.REVISION} can be "
            "restored. Restore it with the version that made it, upgrade to the last one of that schema, and back "
            "it up there",
        )
    if revision > newest_revision():
        raise InvalidInput(
            "backup", f"has the schema {revision}, which this version does not know: it knows {newest_revision()}"
        )
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(target.owner_url, connect_timeout=10),
        poolclass=pool.NullPool,
    )
    try:
        with engine.connect() as transaction, transaction.begin():
            connection = transaction.connection.driver_connection
            assert isinstance(connection, psycopg.Connection)  # noqa: S101 — the engine's driver
            lock_migrations(connection)
            require_role(connection, target.service_role)
            _require_unused(connection)
            if not replace:
                _require_empty(connection)
            _drop_everything(connection)
            upgrade_within(transaction, max(revision, BASELINE))
            _fill(connection, archive, on_rows)
            upgrade_within(transaction, "head")
            grant_to_service(connection, target.service_role)
            connection.execute("ANALYZE")
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        where = error.diag.table_name or error.diag.context or "its rows"
        raise InvalidInput(
            "backup", f"does not fit the schema that it names ({where}); nothing was changed"
        ) from None
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable("The database does not answer; nothing was changed.") from error


def _require_unused(connection: Connection) -> None:
    until = time.monotonic() + _LEAVING_S
    while (row := connection.execute(_OTHERS).fetchone()) and row[0]:
        if time.monotonic() < until:
            time.sleep(0.05)
            connection.execute("SELECT pg_stat_clear_snapshot()")
            continue
        raise Conflict(
            f"The database is in use ({row[0]} other connections). Stop the service, and restore again."
        )


def _require_empty(connection: Connection) -> None:
    if revision_of(connection) is None:
        if names := [table.name for table in tables_of(connection)]:
            raise Conflict(f"The database holds tables of something else ({names[0]} …); nothing was changed.")
        return
    tenants = tenants_of(connection)
    counts = dict.fromkeys(_KINDS, 0)
    for tenant_id in tenants:
        set_tenant(connection, tenant_id)
        row = connection.execute(_HOLDS, {"tenant_id": tenant_id}).fetchone()
        for kind, count in zip(_KINDS, row or (), strict=True):
            counts[kind] += count
    if len(tenants) > 1:
        counts["tenants"] = len(tenants)
    if there := ", ".join(f"{count} {kind}" for kind, count in counts.items() if count):
        raise Conflict(f"The database holds data ({there}). Restore into an empty one, or use --replace.")


def _drop_everything(connection: Connection) -> None:
    for statement, query in (
        ("DROP TABLE IF EXISTS {} CASCADE", _OWN_RELATIONS),
        ("DROP TYPE IF EXISTS {} CASCADE", _OWN_TYPES),
    ):
        for (name,) in connection.execute(query).fetchall():
            connection.execute(sql.SQL(statement).format(sql.Identifier("public", name)))
    for (signature,) in connection.execute(_OWN_ROUTINES).fetchall():
        connection.execute(sql.SQL("DROP ROUTINE IF EXISTS {} CASCADE").format(sql.SQL(signature)))


def _fill(connection: Connection, archive: Archive, on_rows: Callable[[int], None]) -> None:
    """Insert the rows; keys, triggers and row-level security are suspended meanwhile."""
    revision = archive.manifest.revision
    is_of_last_format = revision == last_format.REVISION
    stored = [
        each for each in archive.manifest.tables if not is_of_last_format or each.name not in last_format.GONE
    ]
    for statement in last_format.before(revision):
        connection.execute(statement)
    renamed = last_format.RENAMED if is_of_last_format else {}
    tables = {renamed.get(table.name, table.name): table for table in tables_of(connection)}
    if revision < BASELINE:
        tables = {each.name: tables[each.name] for each in stored if each.name in tables}
    _require_same(tables, stored, with_new_columns=revision < BASELINE)
    keys = connection.execute(_FOREIGN_KEYS).fetchall()
    for table, name, _ in keys:
        connection.execute(
            sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(sql.SQL(table), sql.Identifier(name))
        )
    for each in stored:
        _fill_table(connection, tables[each.name], each, archive)
        on_rows(each.rows)
    for statement in last_format.after(revision):
        connection.execute(statement)
    _add_foreign_keys(connection, keys)
    for filled in tables.values():
        if filled.forces_row_security:
            connection.execute(sql.SQL("ALTER TABLE {} FORCE ROW LEVEL SECURITY").format(filled.identifier))
    for statement in last_format.FORCED:
        connection.execute(statement)
    for name, value in archive.manifest.sequences.items():
        connection.execute("SELECT setval(%s::regclass, %s)", [f"public.{name}", value])


def _add_foreign_keys(connection: Connection, keys: Iterable[tuple[str, str, str]]) -> None:
    adding = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} {}")
    for table, name, definition in keys:
        connection.execute(adding.format(sql.SQL(table), sql.Identifier(name), sql.SQL(definition)))


def _require_same(tables: dict[str, Table], stored: list[StoredTable], *, with_new_columns: bool) -> None:
    if sorted(tables) != sorted(each.name for each in stored):
        raise InvalidInput("backup", "its tables are not those of the schema that it names")
    for each in stored:
        missing = set(each.columns) ^ set(tables[each.name].columns)
        if missing - (set(tables[each.name].columns) if with_new_columns else set()):
            raise InvalidInput("backup", f"the columns of {each.name} are not those of the schema that it names")


def _fill_table(connection: Connection, table: Table, stored: StoredTable, archive: Archive) -> None:
    if table.forces_row_security:
        connection.execute(sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(table.identifier))
    connection.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(table.identifier))
    connection.execute(sql.SQL("TRUNCATE {}").format(table.identifier))
    columns = sql.SQL(", ").join(map(sql.Identifier, stored.columns))
    copying = sql.SQL("COPY {} ({}) FROM STDIN").format(table.identifier, columns)
    with connection.cursor() as cursor:
        try:
            with cursor.copy(copying) as copy:
                for block in archive.blocks(stored):
                    copy.write(block)
        except psycopg.DataError as error:
            raise InvalidInput(
                "backup", f"the rows of {table.name} cannot be read ({error.diag.sqlstate})"
            ) from None
        count = cursor.rowcount
    if count != stored.rows:
        raise InvalidInput("backup", f"{table.name} got {count} rows, and the manifest names {stored.rows}")
    connection.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(table.identifier))


# One message of each user suffices: a renewed key seals everything of its user.
_SAID: LiteralString = """
SELECT DISTINCT ON (u.external_id) u.external_id, m.content
FROM users u JOIN conversations c ON c.user_id = u.id JOIN messages m ON m.conversation_id = c.id
WHERE u.tenant_id = %(tenant_id)s AND m.content <> '' ORDER BY u.external_id, m.created_at DESC
"""


async def users_without_their_words(database: Database) -> list[str]:
    """Return the names of users, of all tenants, whose messages cannot be opened; empty without encryption."""
    lost: list[str] = []
    for tenant_id in await database.tenants() if database.vault is not None else ():
        said = await database.fetch(tenant_id, _SAID, {"tenant_id": tenant_id}, tuple_row)
        lost += [user for user, content in said if content == UNREADABLE]
    return lost
