"""Upgrades the schema as the tables' owner, and grants the service's role its rights."""

import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from services.errors import ConfigurationError, DatabaseUnavailable
from services.platform.database_errors import sentence

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FOLDER = Path(__file__).parent / "migrations"
_LOCK = 0x616E616D  # "anam": one migration at a time, for any number of processes

_LEAST_SERVER = 15
"""Oldest major version of PostgreSQL on which the service was tested."""
_SERVES = "serves versions from "
BASELINE = "0133"
"""Migration that makes the whole schema. Older databases are not upgraded, but moved."""
_SERVES_FROM = re.compile(r'^serves_from = "(\d{4})"', re.MULTILINE)
"""Line of a migration with the oldest version that works on its schema; without it, as in the migration before."""

_GRANTS = (
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {role}",
)


def check_version(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Refuse a server that is too old. Raises `ConfigurationError` if the server is too old."""
    found = connection.info.server_version // 10_000
    if found < _LEAST_SERVER:
        raise ConfigurationError(
            f"The database is PostgreSQL {found}, and this version needs {_LEAST_SERVER} or newer. Upgrade the "
            f"server, or name another one in ANAMNESIS_DATABASE_URL."
        )


def migrate(owner_url: str, service_role: str) -> tuple[str | None, str]:
    """Apply all missing migrations; return the revisions before and after.

    A newer schema that serves this version stays as it is, so that a rolling upgrade can be taken back.

    Raises:
        DatabaseUnavailable: Nothing answers at the address.
        ConfigurationError: The service's role does not exist, the schema is newer than this version or older than
            the baseline, the server is too old, or the address leads through a connection pooler.
    """
    try:
        with psycopg.connect(owner_url, autocommit=True, connect_timeout=10) as connection:
            check_version(connection)
            _require_direct(connection)
            connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
            require_role(connection, service_role)
            before = current_revision(connection)
            if before is not None and before < BASELINE:
                raise ConfigurationError(too_old(before))
            if before is not None and before > newest_revision():
                if serves(before, _comment(connection)):
                    return before, before
                raise ConfigurationError(
                    f"The database's schema is at {before}, which this version does not know: it knows "
                    f"{newest_revision()} and older. Run the version that made it, or a newer one."
                )
            if before != newest_revision():
                _upgrade(owner_url)
            grant_to_service(connection, service_role)
            # DDL takes no parameters.
            connection.execute(
                sql.SQL("COMMENT ON TABLE alembic_version IS {}").format(sql.Literal(_SERVES + oldest_served()))
            )
            return before, newest_revision()
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(sentence(str(error), owner_url, "ANAMNESIS_MIGRATION_DATABASE_URL")) from error


def _require_direct(connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
    """Refuse a pooler: the lock belongs to a session, and a migration may take longer than a pooler waits."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    if row is None or row[0] != connection.info.backend_pid:  # a pooler reports a made-up number
        raise ConfigurationError(
            "ANAMNESIS_MIGRATION_DATABASE_URL leads through a connection pooler; it must be the address of the "
            "server itself"
        )


def current_revision(connection: "psycopg.Connection[tuple[object, ...]]") -> str | None:
    """Return the schema's revision; None for a database without the service's tables."""
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except psycopg.errors.UndefinedTable:
        return None
    return str(row[0]) if row else None


@lru_cache(maxsize=1)
def newest_revision() -> str:
    """Return the newest migration, from the names of files, so that most starts need not load Alembic."""
    return max(path.stem.split("_")[0] for path in (_FOLDER / "versions").glob("[0-9]*.py"))


@lru_cache(maxsize=1)
def oldest_served() -> str:
    """Return the oldest version that works on the newest schema, from the sources of the migrations."""
    texts = (path.read_text() for path in (_FOLDER / "versions").glob("[0-9]*.py"))
    return max([BASELINE, *(found[1] for text in texts for found in _SERVES_FROM.finditer(text))])


def too_old(revision: str) -> str:
    """Return how to move a database with a schema before the baseline."""
    return (
        f"The database's schema is at {revision}, from before the one that this version upgrades ({BASELINE}). "
        "Move it: with the version that made it, run `anamnesis backup before.zip`; then, with this one, "
        "`anamnesis restore before.zip --replace`"
    )


def serves(revision: str, comment: str | None) -> bool:
    """Return whether a schema serves this version.

    Args:
        revision: Revision of the schema.
        comment: Comment on the table `alembic_version`, with the oldest version that the schema serves.
    """
    if revision <= newest_revision():
        return revision == newest_revision()
    return (comment or "").startswith(_SERVES) and str(comment).removeprefix(_SERVES) <= newest_revision()


def _comment(connection: "psycopg.Connection[tuple[Any, ...]]") -> str | None:
    row = connection.execute("SELECT obj_description('alembic_version'::regclass)").fetchone()
    return row[0] if row else None


def lock_migrations(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Take the migration lock for the rest of the transaction."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def upgrade_within(transaction: "Connection", revision: str) -> None:
    """Apply the migrations up to a revision, or `head`, within the caller's transaction."""
    from services.platform import migration_run  # noqa: PLC0415 — half a second, and only for a restore

    migration_run.run(revision, connection=transaction)


def _upgrade(owner_url: str) -> None:
    """Apply the migrations in a separate process, which frees SQLAlchemy and Alembic when it ends. Raises
    `RuntimeError` if a migration failed; the message has its output."""
    arguments = [sys.executable, "-m", "services.platform.migration_run"]
    done = subprocess.run(arguments, input=owner_url, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The schema could not be upgraded.\n{done.stderr.strip()}")


def require_role(connection: "psycopg.Connection[tuple[object, ...]]", service_role: str) -> None:
    """Check that the service's role exists. Raises `ConfigurationError` if the role does not exist."""
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [service_role]).fetchone():
        raise ConfigurationError(
            f"The service's role {service_role} does not exist. Create it: "
            f"CREATE ROLE {service_role} LOGIN PASSWORD '…'"
        )


def grant_to_service(connection: "psycopg.Connection[tuple[object, ...]]", service_role: str) -> None:
    """Let the service's role use every table, sequence and function."""
    owner = connection.info.user
    if owner != service_role:
        for statement in _GRANTS:
            connection.execute(sql.SQL(statement).format(role=sql.Identifier(service_role)))


def role_of(url: str) -> str:
    """Return the role that an address connects as. Raises `ConfigurationError` if the address names none."""
    user = psycopg.conninfo.conninfo_to_dict(url).get("user")
    if not user or not re.fullmatch(r"[\w.@-]+", str(user)):
        raise ConfigurationError("ANAMNESIS_DATABASE_URL names no role: postgresql://role:password@host/database")
    return str(user)
