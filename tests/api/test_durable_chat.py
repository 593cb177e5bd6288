"""Idempotency, conflicts, cancelling and resuming over HTTP."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.support.model_server import ModelServer, Reply
from tests.support.service_process import Event, events_of

pytestmark = pytest.mark.untraced

ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}
ENDLESS = Reply(["It ", "is ", "late"], gap_s=30)


async def _stream(client: httpx.AsyncClient, headers: dict[str, str] | None = None, **values: Any) -> list[Event]:
    async with client.stream("POST", "/api/v1/chat/stream", json={**ASK, **values}, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        lines = [line async for line in response.aiter_lines()]
    return list(events_of(iter(lines)))


async def _begin(client: httpx.AsyncClient, path: str = "/api/v1/chat/stream", until: str = "token") -> str:
    """Start a turn, read until its first event of a kind, hang up; return the turn's id."""
    async with client.stream("POST", path, json=ASK) as response:
        turn_id, seen = "", list[str]()
        async for line in response.aiter_lines():
            if line.startswith("data: ") and '"turn_id"' in line and not turn_id:
                turn_id = line.split('"turn_id":"')[1][:36]
            if line == "" and f"event: {until}" in seen:
                return turn_id
            seen.append(line)
    raise AssertionError(f"no {until} came")


async def _messages(client: httpx.AsyncClient) -> list[tuple[str, str]]:
    conversation = (await client.get("/api/v1/conversations")).json()["items"][0]["id"]
    found = (await client.get(f"/api/v1/conversations/{conversation}/messages")).json()["items"]
    return [(item["role"], item["content"]) for item in found]


async def test_a_key_with_another_message_is_refused(url: str, client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "a-key"}
    (await client.post("/api/v1/chat", json=ASK, headers=key)).raise_for_status()
    for path in ("/api/v1/chat", "/api/v1/chat/stream"):
        refused = await client.post(path, json={**ASK, "message": "Something else"}, headers=key)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
        assert "belongs to another message" in refused.json()["detail"]
    async with connect(url.replace("http", "ws") + "/api/v1/chat/ws") as socket:
        await socket.send(json.dumps({**ASK, "message": "Something else", "idempotency_key": "a-key"}))
        assert "belongs to another message" in str(await socket.recv())
    assert len(await _messages(client)) == 2
    again = await client.post("/api/v1/chat", json={**ASK, "message": f" {ASK['message']} "}, headers=key)
    assert again.status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", lambda said: {"messages": [{"role": "user", "content": said}]}),
        ("/v1/responses", lambda said: {"input": said}),
        (
            "/api/v1/ui/chat",
            lambda said: {"id": "s-1", "messages": [{"role": "user", "parts": [{"type": "text", "text": said}]}]},
        ),
        (
            "/api/v1/ui/ag-ui",
            lambda said: {
                "threadId": "s-1",
                "runId": "a-key",
                "messages": [{"id": "m", "role": "user", "content": said}],
                "state": {},
                "tools": [],
                "context": [],
                "forwardedProps": {"user": "u-1"},
            },
        ),
    ],
)
async def test_every_protocol_refuses_a_key_with_another_message(
    client: httpx.AsyncClient, path: str, body: Callable[[str], dict[str, Any]]
) -> None:
    async def send(said: str) -> httpx.Response:
        more: dict[str, Any] = {"user": "u-1"} if "ag-ui" not in path else {}
        if path.startswith("/v1"):
            more |= {"model": "default"}
        return await client.post(path, json={**body(said), **more}, headers={"Idempotency-Key": "a-key"})

    first = await send("Hello")
    assert first.status_code == 200, first.text
    assert (await send("Hello")).status_code == 200
    refused = await send("Something else")
    assert (refused.status_code, "belongs to another message" in refused.text) == (422, True)
    assert len(await _messages(client)) == 2


@pytest.mark.parametrize("key", ["", "x" * 256, "ключ".encode()])
async def test_a_key_that_is_none_is_refused_by_name(shared_client: httpx.AsyncClient, key: Any) -> None:
    refused = await shared_client.post("/api/v1/chat", json=ASK, headers=[(b"Idempotency-Key", key)])
    assert refused.status_code == 422
    assert "idempotency-key" in refused.json()["detail"].lower()


async def test_on_disconnect_cancel_in_the_address_stops_the_turn_and_keeps_its_tokens(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(ENDLESS)
    turn_id = await _begin(client, path="/api/v1/chat/stream?on_disconnect=cancel")
    stored = await _until_ended(client, turn_id)
    assert (stored["status"], stored["answer"]) == ("cancelled", "It ")
    assert (await _messages(client))[-1] == ("assistant", "It ")


async def test_messages_beside_a_running_turn_wait_up_to_a_limit_or_are_refused(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(ENDLESS)
    running = await _begin(client)
    waiting = [await _begin(client, until="turn") for _ in range(5)]
    for path in ("/api/v1/chat?on_conflict=reject", "/api/v1/chat"):
        refused = await client.post(path, json=ASK)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    await client.post(f"/api/v1/turns/{running}/cancel")
    for turn_id in waiting:
        assert (await _until_ended(client, turn_id))["status"] == "completed"


async def test_a_wrong_last_event_id_is_named(client: httpx.AsyncClient) -> None:
    turn_id = (await _stream(client))[0][2]["turn_id"]
    for number in ("-1", "x", "1.5", "99999999999", "٣"):
        headers = [(b"Last-Event-ID", number.encode())]
        refused = await client.get(f"/api/v1/turns/{turn_id}/stream", headers=headers)
        assert refused.status_code == 422, number
        assert "last-event-id" in refused.json()["detail"].lower()


async def test_a_socket_knows_keys_and_cancels_what_it_leaves(
    url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(ENDLESS)
    frame = (
        '{"user_id": "u-1", "session_id": "s-1", "message": "Hi", "idempotency_key": "k", "on_disconnect": "%s"}'
    )
    async with connect(url.replace("http", "ws") + "/api/v1/chat/ws") as one:
        await one.send(frame % "cancel")
        first = await one.recv()
        async with connect(url.replace("http", "ws") + "/api/v1/chat/ws") as two:
            await two.send(frame % "continue")
            assert await two.recv() == first
        while '"token"' not in str(await one.recv()):
            pass
    turn_id = str(first).split('"turn_id":"')[1][:36]
    assert (await _until_ended(client, turn_id))["status"] == "cancelled"


async def _until_ended(client: httpx.AsyncClient, turn_id: str) -> dict[str, Any]:
    for _ in range(1200):
        stored: dict[str, Any] = (await client.get(f"/api/v1/turns/{turn_id}")).json()
        if stored["status"] not in {"running", "waiting"}:
            return stored
        await asyncio.sleep(0.05)
    raise AssertionError(f"still {stored['status']}")


@pytest.mark.settings(llm_answer_characters=6_000_000)
async def test_a_reader_that_takes_nothing_holds_up_nobody(
    url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(Reply(["x" * 100_000] * 60))
    host, port = url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port), limit=1)
    body = b'{"user_id": "u-1", "session_id": "s-1", "message": "Hello"}'
    writer.write(
        b"POST /api/v1/chat/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    conversation = ""
    while not conversation:
        items = (await client.get("/api/v1/conversations")).json()["items"]
        conversation = items[0]["id"] if items else ""
    first = (await client.get(f"/api/v1/conversations/{conversation}/messages")).json()["items"][0]
    stored = await _until_ended(client, first["turn_id"])
    assert (stored["status"], len(stored["answer"])) == ("completed", 6_000_000)
    writer.close()
