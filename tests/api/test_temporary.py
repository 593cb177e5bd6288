"""Temporary conversations: answered like others, from memory or without it, and kept nowhere."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from pydantic import SecretStr
from redis.asyncio import Redis
from websockets.asyncio.client import connect

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.episodes.index import NAME, shard_of
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.settings import Settings
from services.text.tokenizer import terms
from tests.support.milvus_server import MilvusServer, files_with_rows
from tests.support.model_server import ModelServer, Reply, ToolCall

pytestmark = [pytest.mark.untraced, pytest.mark.indexed]

CANARY = "wellensittich-4e1c"
STORED = "bernsteinzimmer-9a77"
HELLO = {"user_id": "u-1", "session_id": "s-1"}


@pytest.fixture
def settings(settings: Settings, redis_server: str) -> Settings:
    """With a Redis server, whose keys can be looked through."""
    return settings.model_copy(update={"redis_url": SecretStr(redis_server)})


@pytest.fixture
async def remembered(client: httpx.AsyncClient, services: Services) -> None:
    """The user has told something in an ordinary conversation."""
    answer = await client.post("/api/v1/chat", json={**HELLO, "message": f"My dog is called {STORED}."})
    assert answer.status_code == 200
    owner = await services.memory.core.owner(DEFAULT_TENANT, HELLO["user_id"], "default")
    await services.filing.file(DEFAULT_TENANT, owner.user_id)


def _temporary(message: str = f"What is my dog called? I am thinking of {CANARY}.", **more: Any) -> dict[str, Any]:
    return {**HELLO, "session_id": f"s-{CANARY}", "message": message, "temporary": True, **more}


@pytest.mark.traced
@pytest.mark.in_clear
@pytest.mark.own_milvus
@pytest.mark.usefixtures("remembered")
async def test_no_byte_of_a_temporary_conversation_is_in_any_store_or_log_however_it_ends(
    client: httpx.AsyncClient,
    url: str,
    services: Services,
    redis_server: str,
    model_server: ModelServer,
    milvus_server: MilvusServer,
    postgres: EmbeddedPostgres,
    capfd: pytest.CaptureFixture[str],
) -> None:
    earlier = [{"role": "user", "content": f"Hello {CANARY}"}, {"role": "assistant", "content": f"Hi {CANARY}"}]
    answered = await client.post("/api/v1/chat", json=_temporary(earlier=earlier, debug=True))
    assert answered.status_code == 200, answered.text
    assert CANARY in str(model_server.requests[-1].said)
    await client.post("/api/v1/chat", json=_temporary(space=CANARY), headers={"Idempotency-Key": CANARY})
    await _with_tools(client, model_server)
    await _fails(client, model_server)
    await _is_cancelled(client, model_server)
    await _loses_its_client(client, model_server)
    await _over_a_socket(url)
    await _of_openai(client)
    await services.memory.indexing.index_waiting()
    user_id = (await services.memory.core.owner(DEFAULT_TENANT, "u-1", "default")).user_id
    await services.memory.index.vectors.flush(NAME.format(shard=shard_of(user_id)))
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        connection.execute("CHECKPOINT")

    folder = Path(postgres._parent)
    assert await asyncio.to_thread(_files_with, folder, STORED) != []
    assert await asyncio.to_thread(_files_with, folder, CANARY) == []
    assert await asyncio.to_thread(files_with_rows, milvus_server.folder, terms(STORED)[-1]) != []
    assert await asyncio.to_thread(files_with_rows, milvus_server.folder, terms(CANARY)[-1]) == []
    async with Redis.from_url(redis_server) as cache:
        keys = await cache.keys()
        held = [str(key) + str(await cache.dump(key)) for key in keys]
    assert held != []
    assert not any(CANARY in each for each in held)
    shown = capfd.readouterr()
    assert (
        "model failed" in shown.out + shown.err
    )  # a warning: a command in a test before may have raised the level
    assert CANARY not in shown.err + shown.out
    listed = (await client.get("/api/v1/conversations", params={"user_id": "u-1"})).json()["items"]
    assert [each["session_id"] for each in listed] == ["s-1"]
    assert (await client.get("/api/v1/users/u-1/spaces")).json()["items"] == []


async def _with_tools(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    calls = [
        ToolCall("remember", {"text": f"The user likes {CANARY}."}, "call_1"),
        ToolCall("forget", {"what": CANARY}, "call_2"),
        ToolCall("search_memory", {"query": CANARY}, "call_3"),
    ]
    model_server.script(Reply(tool_calls=calls), Reply([f"Not {CANARY}."]))
    answer = await client.post("/api/v1/chat", json=_temporary())
    assert answer.status_code == 200
    offered = [tool.get("name") for tool in model_server.requests[-2].body["tools"]]
    assert "search_memory" in offered
    assert {"remember", "forget"}.isdisjoint(offered)


async def _fails(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    model_server.script(Reply([f"I begin with {CANARY}", " and"], ending="abort"))
    assert (await client.post("/api/v1/chat", json=_temporary())).status_code >= 500
    model_server.script(Reply(status=401, error_message=f"no {CANARY}"))
    assert (await client.post("/api/v1/chat", json=_temporary())).status_code >= 500


async def _is_cancelled(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    model_server.script(Reply([f"Slowly {CANARY}", "…"] * 50, gap_s=0.1))
    async with client.stream("POST", "/api/v1/chat/stream", json=_temporary()) as stream:
        events = _events(stream)
        begun = await anext(events)
        address = f"/api/v1/turns/{begun['content']['turn_id']}"
        while (await anext(events))["status"] != "token":
            pass
        cancelled = await client.post(f"{address}/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
        *_, last = [event async for event in events]
        assert (last["status"], last["content"]["code"]) == ("error", "cancelled")
    gone = await client.get(address)
    assert gone.status_code == 404
    assert "a temporary turn is not stored" in gone.json()["detail"]


async def _loses_its_client(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    model_server.script(Reply([f"Slowly {CANARY}", "…"] * 3, gap_s=0.05))
    async with client.stream("POST", "/api/v1/chat/stream", json=_temporary(on_disconnect="cancel")) as stream:
        await anext(_events(stream))


async def _over_a_socket(url: str) -> None:
    async with connect(f"{url.replace('http', 'ws', 1)}/api/v1/chat/ws") as socket:
        await socket.send(json.dumps(_temporary()))
        while json.loads(await socket.recv())["status"] not in {"done", "error"}:
            pass


async def _of_openai(client: httpx.AsyncClient) -> None:
    said = [{"role": "user", "content": f"What is my dog called? I like {CANARY}."}]
    body = {"model": "default", "messages": said, "user": "u-1"}
    kept = await client.post("/v1/chat/completions", json={**body, "store": False})
    assert kept.headers["X-Anamnesis-Memory"] == "read; nothing is kept"
    for chat in (f"temporary:{CANARY}", f"local:{CANARY}"):
        answer = await client.post("/v1/chat/completions", json=body, headers={"X-OpenWebUI-Chat-Id": chat})
        assert answer.status_code == 200
    response = await client.post(
        "/v1/responses", json={"model": "default", "input": CANARY, "user": "u-1", "store": False}
    )
    assert response.status_code == 200
    retrieved = await client.get(f"/v1/responses/{response.json()['id']}")
    assert retrieved.status_code == 404
    assert "one that was not stored" in retrieved.json()["error"]["message"]


@pytest.mark.usefixtures("remembered")
async def test_memory_is_read_and_said_to_stay_as_it_is(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    before = (await client.get("/api/v1/users/u-1/memory-operations")).text
    for message in ("What is my dog called?", "Please forget what my dog is called.", "请记住我住在上海。"):
        answer = await client.post("/api/v1/chat", json=_temporary(message))
        assert answer.json()["memory_changes"] == []
    prompt = str(model_server.requests[-2].prompt)
    assert STORED in prompt
    assert "This conversation is temporary" in prompt
    assert "这是临时对话" in str(model_server.requests[-1].prompt)
    assert (await client.get("/api/v1/users/u-1/memory-operations")).text == before


async def test_memory_stays_closed_where_the_service_says_so(
    client: httpx.AsyncClient,
    services: Services,
    model_server: ModelServer,
    remembered: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(vars(services.settings), "temporary_memory", "off")
    assert (await client.post("/api/v1/chat", json=_temporary("What is my dog called?"))).status_code == 200
    assert STORED not in str(model_server.requests[-1].prompt)
    kept = {"model": "default", "messages": [{"role": "user", "content": "What is my dog called?"}]}
    answer = await client.post("/v1/chat/completions", json={**kept, "user": "u-1", "store": False})
    assert answer.headers["X-Anamnesis-Memory"] == "off; nothing is kept"
    assert STORED not in str(model_server.requests[-1].prompt)


async def _events(stream: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def _files_with(folder: Path, text: str) -> list[str]:
    """Files below a folder that hold a text, the write-ahead log among them."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [str(path.relative_to(folder)) for path in paths if text.encode() in path.read_bytes()]
