from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import NullPool, create_engine

from services.engines import Engines
from services.errors import ConfigurationError, DatabaseUnavailable
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import current_revision, migrate, newest_revision, role_of, upgrade_within
from tests.support.turns import some_uuid


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


LATER = UUID("0190a000-0001-7000-8000-000000000002")
_EPISODES = """
INSERT INTO episodes (id, tenant_id, user_id, expert_id, episode_type, content, importance, origin, created_at,
    superseded_by)
SELECT given.id, u.tenant_id, u.id, x.id, 'context', given.content, 0.5, 'user_said', '2020-01-01Z', given.instead
FROM users u, experts x, unnest(%s::uuid[], %s::text[], %s::uuid[]) AS given (id, content, instead)
"""


def test_what_was_remembered_before_is_counted_and_known_as_of_then(postgres: EmbeddedPostgres) -> None:
    name = f"older_{uuid4().hex}"
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER_ROLE))
        )
        url = postgres.url(OWNER_ROLE, name)
        older = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)
        with older.begin() as transaction:
            upgrade_within(transaction, "0013")
        with psycopg.connect(postgres.url("postgres", name)) as superuser:
            superuser.execute(
                "INSERT INTO users (id, tenant_id, external_id) VALUES (%s, %s, 'u-1')", [uuid4(), DEFAULT_TENANT]
            )
            superuser.execute(_EPISODES, [[some_uuid(1), LATER], ["Berlin", "Lisbon"], [LATER, None]])
        assert migrate(url, SERVICE_ROLE) == ("0013", newest_revision())
        with psycopg.connect(postgres.url("postgres", name)) as superuser:
            assert superuser.execute("SELECT count(*) FROM memory_generations").fetchone() == (1,)
            assert superuser.execute("SELECT system_prompt FROM experts").fetchall() == [("",)]
            known = "SELECT content, extract(epoch FROM learned_at) * 1000 FROM episodes ORDER BY id"
            assert superuser.execute(known).fetchall() == [
                (content, int(str(each).replace("-", "")[:12], 16))
                for content, each in (("Berlin", some_uuid(1)), ("Lisbon", LATER))
            ]
            closed = "SELECT v.was->>'content', v.was->>'superseded_by', closed_at = e.learned_at"
            closed += " FROM memory_versions v, episodes e WHERE e.content = 'Lisbon'"
            assert superuser.execute(closed).fetchall() == [("Berlin", None, True)]
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_a_second_time_nothing_is_to_do(engines: Engines) -> None:
    assert engines.owner_url
    assert migrate(engines.owner_url, SERVICE_ROLE) == (newest_revision(), newest_revision())


def test_a_missing_service_role_is_named(engines: Engines) -> None:
    assert engines.owner_url
    with pytest.raises(ConfigurationError, match="role nobody does not exist"):
        migrate(engines.owner_url, "nobody")


def test_an_address_where_nothing_answers_is_said() -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot be migrated"):
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
