import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from services.errors import DatabaseUnavailable
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from services.platform.postgres import Database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A server that the test may stop."""
    server = EmbeddedPostgres(tmp_path, options=("fsync=off",))
    await server.start()
    migrate(server.url(OWNER_ROLE), SERVICE_ROLE)
    yield server
    await server.stop()


async def _users(database: Database) -> int:
    async with database.tenant(DEFAULT_TENANT) as connection:
        row = await (await connection.execute("SELECT count(*) FROM users")).fetchone()
    assert row
    return int(row[0])


async def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    insert = "INSERT INTO users (id, tenant_id, external_id) VALUES (gen_random_uuid(), %s, 'twice')"

    async def insert_twice() -> None:
        async with database.tenant(DEFAULT_TENANT) as connection:
            await connection.execute(insert, [DEFAULT_TENANT])
            await connection.execute(insert, [DEFAULT_TENANT])

    with pytest.raises(psycopg.errors.UniqueViolation):
        await insert_twice()
    assert await _users(database) == 0


async def test_a_transaction_that_is_cancelled_gives_its_connection_back(database: Database) -> None:
    async def hang() -> None:
        async with database.tenant(DEFAULT_TENANT) as connection:
            await connection.execute("SELECT pg_sleep(30)")

    for _ in range(25):  # more than the pool has
        task = asyncio.create_task(hang())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await _users(database) == 0


async def test_after_a_restart_of_the_server_the_service_goes_on(own_server: EmbeddedPostgres) -> None:
    database = Database(own_server.url(SERVICE_ROLE))
    await database.open()
    assert await _users(database) == 0
    await own_server.stop()
    with pytest.raises(DatabaseUnavailable):
        await database.ping()
    await own_server.start()
    assert await _users(database) == 0
    assert await database.ping() > 0
    await database.close()


async def test_connections_that_the_server_closed_are_replaced(
    database: Database, postgres: EmbeddedPostgres
) -> None:
    assert await _users(database) == 0
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
        # The second argument waits for the end: an ending that comes while a query runs is that query's error.
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'anamnesis'"
        )
    assert await _users(database) == 0


async def test_where_nothing_answers_opening_says_so() -> None:
    database = Database("postgresql://anamnesis@127.0.0.1:1/nothing?connect_timeout=1")
    with pytest.raises(DatabaseUnavailable):
        async with asyncio.timeout(15):
            await database.open()
    await database.close()


async def test_tenants_are_listed(database: Database) -> None:
    assert await database.tenants() == [DEFAULT_TENANT]
