"""Checks before the service uses a database: its role, its schema, and whether a connection is direct."""

from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from services.errors import ConfigurationError
from services.platform.migrate import BASELINE, newest_revision, serves, too_old

DATABASE_URL_IS_POOLED = (
    "ANAMNESIS_DATABASE_URL leads through a connection pooler; set ANAMNESIS_DIRECT_DATABASE_URL to the "
    "address of the same database past the pooler"
)
DIRECT_URL_IS_POOLED = (
    "ANAMNESIS_DIRECT_DATABASE_URL leads through a connection pooler; it must be the address of the server itself"
)

_BACKEND = "SELECT pg_backend_pid()"
_REVISION = "SELECT version_num, obj_description('alembic_version'::regclass) FROM alembic_version"
_ROLE_CHECK = """
SELECT r.rolname, r.rolsuper OR r.rolbypassrls,
       EXISTS (SELECT 1 FROM pg_class c WHERE c.relname = 'messages' AND pg_has_role(r.oid, c.relowner, 'USAGE'))
FROM pg_roles r WHERE r.rolname = current_user
"""


async def check_direct(connection: AsyncConnection[TupleRow], message: str) -> None:
    """Refuse a pooler: it gives clients a made-up number in place of the number of the server's process. Raises
    `ConfigurationError` if there is a pooler; the error has the message."""
    row: Any = await (await connection.execute(_BACKEND)).fetchone()
    if row[0] != connection.info.backend_pid:
        raise ConfigurationError(message)


async def check_role(connection: AsyncConnection[TupleRow]) -> None:
    """Refuse a role to which row-level security does not apply. Raises `ConfigurationError` if the role
    bypasses row-level security, or owns the tables."""
    row: Any = await (await connection.execute(_ROLE_CHECK)).fetchone()
    role, bypasses, owns = row
    if bypasses or owns:
        why = "bypasses row-level security" if bypasses else "owns the tables"
        raise ConfigurationError(
            f"ANAMNESIS_DATABASE_URL connects as {role}, which {why}. Give the service its own role "
            f"(CREATE ROLE anamnesis LOGIN PASSWORD '…') and the owner in ANAMNESIS_MIGRATION_DATABASE_URL, "
            f"then run: anamnesis migrate"
        )


async def check_schema(connection: AsyncConnection[TupleRow]) -> None:
    """Refuse a schema on which this version does not work.

    A newer schema is accepted if the migration that made it says that it serves this version, because processes of
    the older version may also start during a rolling upgrade. Raises `ConfigurationError` if the schema is older,
    too new, missing, or not granted to the role.
    """
    try:
        row: Any = await (await connection.execute(_REVISION)).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege):
        row = None
    needed = newest_revision()
    if row is not None and row[0] < BASELINE:
        raise ConfigurationError(too_old(row[0]))
    if row is None or row[0] < needed:
        found = f"is at {row[0]}" if row else "is not there, or not granted to this role"
        raise ConfigurationError(
            f"The database's schema {found}, and this version needs {needed}. Run: anamnesis migrate"
        )
    if not serves(row[0], row[1]):
        raise ConfigurationError(
            f"The database's schema is at {row[0]}, which does not serve this version, made for {needed}. "
            f"Run the version that made it, or a newer one."
        )
