import asyncio

import psycopg
import pytest

from services.engines import Engines
from services.errors import ConfigurationError, DatabaseUnavailable
from services.platform.embedded_postgres import SERVICE_ROLE
from services.platform.migrate import migrate, role_of
from services.platform.postgres import Database


def test_a_database_from_before_the_baseline_is_refused_with_the_commands_that_move_it(engines: Engines) -> None:
    assert engines.owner_url
    commands = "`anamnesis backup before.zip`.*`anamnesis restore before.zip --replace`"
    with psycopg.connect(engines.owner_url, autocommit=True) as owner:
        owner.execute("UPDATE alembic_version SET version_num = '0033'")
        with pytest.raises(ConfigurationError, match=f"is at 0033.*{commands}"):
            migrate(engines.owner_url, SERVICE_ROLE)
        with pytest.raises(ConfigurationError, match=f"is at 0033.*{commands}"):
            asyncio.run(_start(engines.database_url))


async def _start(url: str) -> None:
    database = Database(url)
    try:
        await database.open()
    finally:
        await database.close()


def test_a_missing_service_role_is_named(engines: Engines) -> None:
    assert engines.owner_url
    with pytest.raises(ConfigurationError, match="role nobody does not exist"):
        migrate(engines.owner_url, "nobody")


def test_an_address_where_nothing_answers_is_said() -> None:
    with pytest.raises(DatabaseUnavailable, match="ANAMNESIS_MIGRATION_DATABASE_URL: nothing listens"):
        migrate("postgresql://owner@127.0.0.1:1/nothing", "anamnesis")


@pytest.mark.parametrize(
    ("url", "role"),
    [("postgresql://anamnesis:pw@h:5432/d", "anamnesis"), ("postgresql://a.b@/d?host=/tmp", "a.b")],
)
def test_the_service_role_is_read_from_its_address(url: str, role: str) -> None:
    assert role_of(url) == role


def test_an_address_without_a_role_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="names no role"):
        role_of("postgresql://localhost/d")
