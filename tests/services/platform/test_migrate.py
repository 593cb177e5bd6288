from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from services.engines import Engines
from services.errors import ConfigurationError, DatabaseUnavailable
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import current_revision, migrate, newest_revision, role_of


def test_from_empty_every_migration_is_applied(postgres: EmbeddedPostgres) -> None:
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER_ROLE))
        )
        url = postgres.url(OWNER_ROLE, name)
        assert migrate(url, SERVICE_ROLE) == (None, newest_revision())
        with psycopg.connect(url) as owner:
            assert current_revision(owner) == newest_revision()
            found = {
                row[0] for row in owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            }
        assert {
            "tenants",
            "users",
            "experts",
            "conversations",
            "messages",
            "turns",
            "procrastinate_jobs",
        } <= found
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


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
