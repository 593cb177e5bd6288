"""The tables of a database as its catalogue describes them: what a backup holds and a restore fills."""

from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import class_row

Connection = psycopg.Connection[tuple[Any, ...]]

# The revision is in the manifest, generated columns generate themselves, and numbers of transactions mean nothing
# in another database.
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
    """A table."""

    name: str
    of_tenants: bool
    """Whether only the rows of the tenant that a transaction names are visible."""
    forces_row_security: bool
    """Whether this holds for its owner, too."""
    columns: list[str]

    @property
    def identifier(self) -> sql.Identifier:
        """Its name in a statement."""
        return sql.Identifier("public", self.name)

    @property
    def column_list(self) -> sql.Composed:
        """Its columns in a statement."""
        return sql.SQL(", ").join(map(sql.Identifier, self.columns))


def tables_of(connection: Connection) -> list[Table]:
    """Every table but the one with the revision, by name."""
    with connection.cursor(row_factory=class_row(Table)) as cursor:
        return cursor.execute(_TABLES).fetchall()


def sequences_of(connection: Connection) -> dict[str, int]:
    """The last value of every sequence, by name."""
    names = [row[0] for row in connection.execute(_SEQUENCES).fetchall()]
    values = {}
    for name in names:
        query = sql.SQL("SELECT last_value FROM {}").format(sql.Identifier("public", name))
        row = connection.execute(query).fetchone()
        assert row is not None  # noqa: S101 — a sequence is a relation of one row
        values[name] = int(row[0])
    return values


def revision_of(connection: Connection) -> str | None:
    """The revision of the schema; None for a database that has none of ours."""
    if connection.execute("SELECT to_regclass('public.alembic_version') IS NULL").fetchone() == (True,):
        return None
    row = connection.execute(_REVISION).fetchone()
    return str(row[0]) if row else None


def tenants_of(connection: Connection) -> list[str]:
    """Ids of all tenants."""
    return [str(row[0]) for row in connection.execute(_TENANTS).fetchall()]


def set_tenant(connection: Connection, tenant_id: str) -> None:
    """Make the rows of a tenant visible for the rest of the transaction."""
    connection.execute("SELECT set_config('anamnesis.tenant_id', %s, true)", [tenant_id])
