"""API keys over HTTP: who is let in, what they may do, and whose things they see."""

import asyncio
import json
import logging
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.caller import Scope
from services.identity.tenants import DEFAULT_TENANT
from tests.support.issuer import bearer, token

pytestmark = [pytest.mark.untraced, pytest.mark.settings(auth="api_key", host="0.0.0.0")]

ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}
TURN = "/api/v1/turns/0190a000-0000-7000-8000-000000000001"


async def _key(services: Services, *scopes: Scope) -> dict[str, str]:
    _, key = await ApiKeys(services.database).create(DEFAULT_TENANT, "test", scopes or ("chat", "memory:read"))
    return bearer(key)


def _assert_problem(response: httpx.Response, status: int, code: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == code


async def test_with_a_key_a_message_is_answered_and_read_back(
    client: httpx.AsyncClient, services: Services
) -> None:
    client.headers = httpx.Headers(await _key(services))
    answer = (await client.post("/api/v1/chat", json=ASK)).raise_for_status().json()
    assert answer["answer"] == "Certainly, here is the answer."
    streamed = await client.post("/api/v1/chat/stream", json=ASK)
    assert "event: done" in streamed.text
    turn = (await client.get(f"/api/v1/turns/{answer['turn_id']}")).json()
    assert turn["answer"] == answer["answer"]
    listed = (await client.get("/api/v1/conversations", headers={"Host": "chat.example"})).json()
    assert [item["user_id"] for item in listed["items"]] == ["u-1"]


async def test_whoever_is_not_known_is_refused_everywhere(client: httpx.AsyncClient) -> None:
    conversation = "/api/v1/conversations/0190a000-0000-7000-8000-000000000001"
    for headers in (
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic dTpw"},
        bearer("nonsense"),
        bearer(f"ank_{'0' * 32}_{'x' * 43}"),
        bearer(token()),
    ):
        for path in ("/api/v1/chat", "/api/v1/chat/stream"):
            refused = await client.post(path, json=ASK, headers=headers)
            _assert_problem(refused, 401, "unauthenticated")
            assert refused.headers["www-authenticate"] == "Bearer"
        for path in ("/api/v1/conversations", conversation, f"{conversation}/messages", TURN):
            _assert_problem(await client.get(path, headers=headers), 401, "unauthenticated")
    assert (await client.get("/healthz")).text == "ok"


async def test_a_stranger_is_refused_before_the_body_is_read(url: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
    writer.write(b"POST /api/v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n{")
    answer = await asyncio.wait_for(reader.read(), 60)
    assert answer.startswith(b"HTTP/1.1 401 ")
    writer.close()


async def test_each_scope_opens_its_own_doors_and_admin_all(client: httpx.AsyncClient, services: Services) -> None:
    chat, read, admin = [await _key(services, scope) for scope in ("chat", "memory:read", "admin")]
    for allowed, headers in ((True, chat), (False, read), (True, admin)):
        sent = await client.post("/api/v1/chat", json=ASK, headers=headers)
        assert sent.status_code == (200 if allowed else 403)
        assert (await client.get(TURN, headers=headers)).status_code == (404 if allowed else 403)
    for allowed, headers in ((False, chat), (True, read), (True, admin)):
        found = await client.get("/api/v1/conversations", headers=headers)
        assert found.status_code == (200 if allowed else 403)
    refused = await client.get("/api/v1/conversations", headers=chat)
    _assert_problem(refused, 403, "forbidden")
    assert "memory:read" in refused.json()["detail"]


async def _refused_handshake(url: str, headers: dict[str, str]) -> int:
    with pytest.raises(InvalidStatus) as refused:
        await connect(url.replace("http", "ws") + "/api/v1/chat/ws", additional_headers=headers)
    return refused.value.response.status_code


async def test_a_socket_is_refused_before_it_opens(
    url: str, services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    for headers in ({}, bearer("nonsense"), await _key(services, "memory:read")):
        assert await _refused_handshake(url, headers) == 403
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    await services.database.close()
    assert await _refused_handshake(url, bearer(f"ank_{'0' * 32}_{'x' * 43}")) == 503
    assert "Traceback" not in caplog.text


async def test_a_key_that_is_revoked_starts_nothing_over_an_open_socket(url: str, services: Services) -> None:
    record, key = await ApiKeys(services.database).create(DEFAULT_TENANT, "test", ["chat"])
    address = url.replace("http", "ws") + "/api/v1/chat/ws"
    async with connect(address, additional_headers=bearer(key)) as socket:

        async def ask() -> dict[str, Any]:
            await socket.send(json.dumps(ASK))
            while (event := json.loads(await socket.recv()))["status"] not in {"done", "error"}:
                pass
            return dict(event)

        assert (await ask())["status"] == "done"
        await ApiKeys(services.database).revoke(DEFAULT_TENANT, record.id)
        assert (await ask())["content"]["code"] == "unauthenticated"


async def test_without_its_database_nobody_is_let_in(client: httpx.AsyncClient, services: Services) -> None:
    headers = await _key(services)
    await services.database.close()
    for response in (
        await client.post("/api/v1/chat", json=ASK, headers=headers),
        await client.get("/api/v1/conversations", headers=headers),
    ):
        _assert_problem(response, 503, "database_unavailable")
        assert response.headers["retry-after"] == "1"
