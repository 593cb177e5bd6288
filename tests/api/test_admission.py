"""Beyond the most turns that may run, requests are refused before they cost anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import orjson
import pytest

from graph.turns.runner import TurnRunner
from tests.support.model_server import ModelServer, Reply

MOST = 2

pytestmark = [pytest.mark.untraced, pytest.mark.settings(turns_max=MOST)]


def _body(session: str) -> dict[str, str]:
    return {"user_id": "u-1", "session_id": session, "message": "Tell me more.", "on_disconnect": "cancel"}


async def _until(runner: TurnRunner, *, busy: bool) -> None:
    async with asyncio.timeout(60):
        while runner.busy is not busy:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _sessions(client: httpx.AsyncClient) -> list[str]:
    found = await client.get("/api/v1/conversations", params={"user_id": "u-1"})
    return sorted(each["session_id"] for each in found.raise_for_status().json()["items"])


@asynccontextmanager
async def _as_many_as_may(
    client: httpx.AsyncClient, runner: TurnRunner, model_server: ModelServer
) -> AsyncIterator[None]:
    """Turns that run until the end of the block."""
    model_server.script(*[Reply(["one ", "two"], gap_s=60)] * MOST)
    running = [asyncio.create_task(client.post("/api/v1/chat", json=_body(f"s-{n}"))) for n in range(MOST)]
    await _until(runner, busy=True)
    await model_server.asked(times=MOST)
    yield
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await _until(runner, busy=False)


@pytest.mark.traced
async def test_requests_beyond_the_limit_are_refused_and_nothing_is_stored(
    client: httpx.AsyncClient, runner: TurnRunner, model_server: ModelServer
) -> None:
    async with _as_many_as_may(client, runner, model_server):
        for path in ("/api/v1/chat", "/api/v1/chat/stream"):
            refused = await client.post(path, json=_body("s-9"))
            assert (refused.status_code, refused.json()["code"]) == (503, "busy")
            assert refused.headers["retry-after"] == "1"
            assert refused.headers["connection"] == "close"
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["state"]) == (503, "busy")
        assert (await client.get("/healthz")).status_code == 200
        assert await _sessions(client) == ["s-0", "s-1"]
    assert (await client.post("/api/v1/chat", json=_body("s-9"))).status_code == 200
    assert await _sessions(client) == ["s-0", "s-1", "s-9"]


async def test_a_body_is_not_read_and_openai_clients_are_refused_in_their_own_form(
    client: httpx.AsyncClient, runner: TurnRunner, model_server: ModelServer
) -> None:
    async with _as_many_as_may(client, runner, model_server), asyncio.timeout(60):
        for path in ("/v1/chat/completions", "/v1/responses"):
            reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: 1000\r\n\r\n".encode())
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "busy"
            writer.close()
