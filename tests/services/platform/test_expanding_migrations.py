"""Migrations only expand the schema, or say from which version on they serve."""

import re
from pathlib import Path

import psycopg
import pytest

from services.engines import Engines
from services.errors import ConfigurationError
from services.platform import migrate as migration
from services.platform.database_checks import check_schema
from services.platform.embedded_postgres import SERVICE_ROLE
from services.platform.migrate import migrate, oldest_served
from services.platform.postgres import Database

VERSIONS = Path(migration.__file__).parent / "migrations" / "versions"
CONTRACTIONS = {
    "removes what an older version uses": r"DROP (?:TABLE|COLUMN|VIEW|FUNCTION|TYPE)\b",
    "renames what an older version uses": r"\bRENAME\b",
    "changes the type of a column": r"ALTER COLUMN \w+ (?:SET DATA )?TYPE\b",
    "adds a column that an older version does not fill": (
        r"ADD COLUMN (?:IF NOT EXISTS )?\w+ (?![^;,]*\bDEFAULT\b)[^;,]*NOT NULL"
    ),
    "forbids what an older version may write": r"ADD CONSTRAINT (?![^;]*NOT VALID)[^;]*\bCHECK\b",
}
_NOT_NULL = re.compile(r"ALTER COLUMN (\w+) SET NOT NULL")
_SERVES_FROM = re.compile(r'^serves_from = "(\d{4})"', re.MULTILINE)


def contractions(source: str) -> list[str]:
    """What in a migration would break a version that does not know it."""
    found = [why for why, pattern in CONTRACTIONS.items() if re.search(pattern, source, re.IGNORECASE)]
    required = (
        column for column in _NOT_NULL.findall(source) if f"ALTER COLUMN {column} SET DEFAULT" not in source
    )
    return [*found, *(f"forbids an older version to leave {column} out" for column in required)]


@pytest.mark.parametrize("path", sorted(VERSIONS.glob("[0-9]*.py")), ids=lambda path: path.stem)
def test_a_migration_expands_the_schema_or_says_from_which_version_on_it_serves(path: Path) -> None:
    revision, source = path.stem[:4], path.read_text()
    declared = _SERVES_FROM.search(source)
    if revision <= migration.BASELINE:  # no version before it accepts a newer schema
        return
    assert not contractions(source) or declared, (
        f"declare serves_from: it {', and it '.join(contractions(source))}"
    )
    if declared:
        assert migration.BASELINE <= declared[1] <= revision


async def test_this_version_starts_on_a_newer_schema_that_serves_it_and_on_no_other(engines: Engines) -> None:
    assert engines.owner_url
    migrate(engines.owner_url, SERVICE_ROLE)
    with psycopg.connect(engines.owner_url, autocommit=True) as owner:
        found = owner.execute("SELECT obj_description('alembic_version'::regclass)").fetchone()
        assert found == (f"serves versions from {oldest_served()}",)
        owner.execute("UPDATE alembic_version SET version_num = '9999'")
        database = Database(engines.database_url)
        await database.open()
        assert migrate(engines.owner_url, SERVICE_ROLE) == ("9999", "9999")
        owner.execute("COMMENT ON TABLE alembic_version IS 'serves versions from 9999'")
        async with database.pool.connection() as connection:
            with pytest.raises(ConfigurationError, match="at 9999, which does not serve this version"):
                await check_schema(connection)
        await database.close()
    with pytest.raises(ConfigurationError, match="is at 9999, which this version does not know"):
        migrate(engines.owner_url, SERVICE_ROLE)
