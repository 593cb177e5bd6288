import json
import time

import httpx
import pytest
from websockets.asyncio.client import connect

from services.platform.settings import Settings, load_settings
from tests.support.model_server import ModelServer
from tests.support.ports import free_port

ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    """Two turns a minute for a user, five requests for a tenant; nothing listens where Redis should be."""
    return load_settings(
        redis_url=f"redis://127.0.0.1:{free_port()}/0",
        rate_limit_user_per_minute=2,
        rate_limit_tenant_per_minute=5,
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api_key="k",
    )


def _assert_limited(response: httpx.Response) -> None:
    assert (response.status_code, response.json()["code"]) == (429, "rate_limited")
    assert response.headers["content-type"] == "application/problem+json"
    assert 1 <= int(response.headers["retry-after"]) <= 60


async def test_too_many_turns_and_requests_get_429_by_every_way_in(client: httpx.AsyncClient, url: str) -> None:
    begun = time.monotonic()
    assert (await client.post("/api/v1/chat", json=ASK)).status_code == 200
    assert "event: done" in (await client.post("/api/v1/chat/stream", json=ASK)).text
    assert time.monotonic() - begun < 30, "they did not wait for their share of a minute"
    for path in ("/api/v1/chat", "/api/v1/chat/stream"):
        _assert_limited(await client.post(path, json=ASK))
    async with connect(url.replace("http", "ws") + "/api/v1/chat/ws") as socket:
        await socket.send(json.dumps({**ASK, "request_id": "r"}))
        refused = json.loads(await socket.recv())
        assert (refused["content"]["code"], refused["content"]["retryable"]) == ("rate_limited", True)
        await socket.send(json.dumps({**ASK, "user_id": "u-2"}))
        assert json.loads(await socket.recv())["status"] == "turn"
    for _ in range(2):
        listed = await client.get("/api/v1/conversations")
        assert listed.status_code == 200
    assert len(listed.json()["items"]) == 2
    _assert_limited(await client.get("/api/v1/conversations"))
    _assert_limited(await client.post("/api/v1/chat", json={**ASK, "user_id": "u-3"}))
    assert (await client.get("/readyz")).status_code == 200
