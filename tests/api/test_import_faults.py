"""Imports that are disturbed: by turns, by clients that go away, and by a database that does."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg import sql

from graph.turns.requests import TurnRequest
from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import EmbeddedPostgres
from state.conversation import TurnInput
from tests.support.archiving import answer, archived, archiving_queue, topic
from tests.support.jobs import has_ended, until
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.talks import new_expert, talk
from tests.support.transfer import LINES, export, message, ndjson, send
from tests.support.turns import events_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

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


async def _slow_turn(runner: TurnRunner, server: ModelServer) -> tuple[UUID, threading.Event]:
    """A turn that is answered when the event is set."""
    go_on = threading.Event()

    def when_told(_: Received) -> Reply:
        go_on.wait(30)
        return Reply(["I ", "am ", "here."])

    server.default = when_told
    asked = TurnInput(user_id="u-1", session_id="s-1", message="Are you there?", images=[])
    return await runner.start(TurnRequest(DEFAULT_TENANT, asked)), go_on


async def test_an_import_while_a_turn_runs_disturbs_neither(
    client: httpx.AsyncClient, services: Services, runner: TurnRunner, model_server: ModelServer
) -> None:
    turn_id, go_on = await _slow_turn(runner, model_server)
    report = await send(client, b"".join(BODY))
    assert report["imported"] == len(BODY)
    assert (await services.turns.get(DEFAULT_TENANT, turn_id)).status == "running"
    go_on.set()
    events = await events_of(runner, turn_id)
    assert events[-1].status == "done"
    assert events[-1].content["answer"] == "I am here."
    assert await _stored(services) == len(BODY) + 2
    assert await _exchanges(services) == [2] * (len(BODY) // 2 + 1)


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


async def test_a_conversation_that_archives_topics_has_that_done_behind_the_import(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await services.experts.create(
        DEFAULT_TENANT, new_expert("archivist", context_strategy="topics", context_window=4000)
    )
    await send(client, ndjson(*(message(n, expert="archivist", content="word " * 60) for n in range(1, 10))))
    assert await _waiting(services) == []
    await send(client, ndjson(*(message(n, expert="archivist", content="word " * 60) for n in range(1, 151))))
    assert await _waiting(services) == ["archive_topics"]

    def one_topic(received: Received) -> Reply:
        last = max(map(int, re.findall(r"^\[(\d+)\] ", received.prompt[-1][1], re.MULTILINE)), default=0)
        return Reply([answer(topic(1, last)) if last else "Here."])

    model_server.default = one_topic
    async with archiving_queue(services) as jobs:
        jobs.start_worker()
        await until(lambda: has_ended(services.database, "archive_topics", "succeeded"))
    (conversation,) = (await client.get("/api/v1/conversations?session_id=s-1")).json()["items"]
    topics = await archived(services, UUID(conversation["id"]))
    assert sum(each.message_count for each in topics) >= 150 - 30
    model_server.requests.clear()
    said = {"user_id": "u-1", "session_id": "s-1", "message": "Where were we?"}
    assert (await client.post("/api/v1/chat", json=said)).json()["answer"] == "Here."
    assert len(model_server.requests) == 1


async def test_in_a_conversation_that_was_summarised_late_messages_are_taken_in(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.default = Reply(["They talked."])
    conversation = await talk(services.turns, "s-1", 8)
    assert await services.summaries.update(DEFAULT_TENANT, conversation)
    await send(client, ndjson(message(1), message(2)))
    assert await _waiting(services) == ["update_summary"]
    assert await services.summaries.update(DEFAULT_TENANT, conversation)
    summary = await services.summaries.store.get(DEFAULT_TENANT, conversation)
    assert summary
    assert (summary.covered_message_count, summary.rewritten_version) == (12, 2)


async def test_an_export_of_a_turn_that_runs_is_taken(
    client: httpx.AsyncClient, runner: TurnRunner, model_server: ModelServer
) -> None:
    turn_id, go_on = await _slow_turn(runner, model_server)
    during = await export(client)
    go_on.set()
    await events_of(runner, turn_id)
    assert during.count('"kind":"message"') == 1
    assert (await send(client, during.encode()))["skipped"] == 3
    assert (await export(client)).startswith(during)


async def _waiting(services: Services) -> list[str]:
    async with services.database.pool.connection() as connection:
        found = await connection.execute("SELECT task_name FROM procrastinate_jobs WHERE status = 'todo'")
        return [row[0] for row in await found.fetchall()]
