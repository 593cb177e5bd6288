"""Imports that are disturbed: by clients that go away, and by a database that does."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import psycopg
import pytest
from psycopg import sql

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import EmbeddedPostgres
from tests.support.jobs import until
from tests.support.transfer import LINES, message, ndjson, send

pytestmark = pytest.mark.slow

BODY = [ndjson(message(n)) for n in range(1, 1501)]


async def _stored(services: Services) -> int:
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        row = await (await connection.execute("SELECT count(*) FROM messages")).fetchone()
    assert row
    return int(row[0])


async def _exchanges(services: Services) -> list[int]:
    """How many messages each episode of a turn has."""
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        found = await connection.execute("SELECT cardinality(source_message_ids) FROM episodes")
        return [row[0] for row in await found.fetchall()]


async def test_a_client_that_goes_away_comes_again(
    client: httpx.AsyncClient, services: Services, url: str
) -> None:
    whole = b"".join(BODY)
    _, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
    about = f"Content-Type: application/x-ndjson\r\nContent-Length: {len(whole)}"
    head = f"POST /api/v1/import HTTP/1.1\r\nHost: localhost\r\n{about}\r\n\r\n".encode()
    writer.write(head + b"".join(BODY[:1001])[:-20])

    async def begun() -> bool:
        return await _stored(services) == 1000

    await until(begun)
    writer.transport.abort()
    report = await send(client, whole)
    assert (report["imported"], report["skipped"]) == (500, 1000)
    assert await _exchanges(services) == [2] * (len(BODY) // 2)


async def test_a_database_that_goes_away_is_told_and_a_repeat_completes(
    client: httpx.AsyncClient, services: Services, postgres: EmbeddedPostgres, database_name: str
) -> None:
    def allow_connections(allowed: bool) -> None:
        name = sql.Identifier(database_name)
        with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as superuser:
            superuser.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(name, allowed))
            if not allowed:
                superuser.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
                    [database_name],
                )

    async def begun() -> bool:
        return await _stored(services) >= 500

    async def body() -> AsyncIterator[bytes]:
        yield b"".join(BODY[:600])
        await until(begun)
        await asyncio.to_thread(allow_connections, False)
        yield b"".join(BODY[600:])

    broken = await client.post("/api/v1/import", content=body(), headers=LINES)
    await asyncio.to_thread(allow_connections, True)
    assert (broken.status_code, broken.json()["code"]) == (503, "database_unavailable")
    assert broken.headers["retry-after"] == "1"
    report = await send(client, b"".join(BODY))
    assert report["refused"] == 0
    assert report["imported"] + report["skipped"] == len(BODY)
    assert report["skipped"] >= 500
    assert await _stored(services) == len(BODY)
    assert await _exchanges(services) == [2] * (len(BODY) // 2)
