"""What a user has forgotten for good stays away, whoever sends it again."""

import asyncio
import json

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.model_server import ModelServer, Reply
from tests.support.talking import say

pytestmark = pytest.mark.indexed

USER = "/api/v1/users/u-1"
LOCKER = "The code of my locker is qzvault."
HIKE = "I hiked up the Rigi in May."


async def _forget(client: httpx.AsyncClient, *, delete: bool) -> None:
    body = {"topic": "the code of my locker", "delete_messages": delete}
    assert (await client.post(f"{USER}/erasures", json=body)).json()["receipt_id"]


async def _export(client: httpx.AsyncClient) -> str:
    return (await client.get(f"{USER}/export")).text


async def _import(client: httpx.AsyncClient, lines: str) -> dict[str, int]:
    answered = await client.post("/api/v1/import", content=lines, headers={"Content-Type": "application/x-ndjson"})
    found: dict[str, int] = answered.json()
    return found


async def _recalled(client: httpx.AsyncClient) -> str:
    asked = await client.post(f"{USER}/episodes/search", json={"query": "the code of my locker"})
    return asked.text


@pytest.fixture
async def exported(client: httpx.AsyncClient, services: Services, model_server: ModelServer) -> str:
    """An export from before the forgetting, with the words in a message, an answer, a title and core memory."""
    model_server.script(Reply(["I keep it: qzvault."]), Reply(["How nice."]))
    await say(client, LOCKER)
    await say(client, HIKE)
    core = {"content": {"facts": ["the code of my locker is qzvault", "hikes"]}}
    assert (await client.put(f"{USER}/core-memory/human", json=core)).status_code == 200
    lines = await _export(client)
    assert lines.count("qzvault") >= 3
    return lines


@pytest.mark.parametrize("delete", [True, False])
async def test_own_export_does_not_bring_it_back(client: httpx.AsyncClient, exported: str, delete: bool) -> None:
    await _forget(client, delete=delete)

    report = await _import(client, exported)

    assert report["imported"] == 0
    assert "qzvault" not in await _recalled(client)
    if delete:
        assert "qzvault" not in await _export(client)


async def test_client_that_resends_it_in_a_cloned_chat_does_not_bring_it_back(
    client: httpx.AsyncClient, exported: str, model_server: ModelServer
) -> None:
    await _forget(client, delete=True)
    told: list[dict[str, str]] = [
        {"role": "user", "content": LOCKER},
        {"role": "assistant", "content": "I keep it: qzvault."},
        {"role": "user", "content": HIKE},
        {"role": "assistant", "content": "How nice."},
    ]
    headers = {"X-Session-Id": "clone"}
    for question in ("What else?", "And what did I do in May?"):
        asked = {"role": "user", "content": question}
        body = {"model": "default", "user": "u-1", "messages": [*told, asked]}
        answered = await client.post("/v1/chat/completions", json=body, headers=headers)
        assert answered.status_code == 200
        told += [asked, answered.json()["choices"][0]["message"]]
        assert "qzvault" not in json.dumps(model_server.requests[-1].body)

    assert "qzvault" not in await _recalled(client)
    assert "qzvault" not in await _export(client)


async def test_partial_answer_of_a_turn_that_forgetting_stops_is_dropped(
    client: httpx.AsyncClient, exported: str, model_server: ModelServer
) -> None:
    model_server.script(Reply(["Your code ", "is qzvault", *[" and"] * 400], gap_s=0.02))
    answered = asyncio.Event()
    asking = asyncio.create_task(_stream(client, "What is the code of my locker?", answered))
    await answered.wait()

    await _forget(client, delete=True)

    await asking
    assert "qzvault" not in await _export(client)
    await say(client, "Where were we?")
    assert "qzvault" not in json.dumps(model_server.requests[-1].body)


async def _stream(client: httpx.AsyncClient, message: str, answered: asyncio.Event) -> str:
    """Ask; return the stream, and tell when the code of the locker has come."""
    body, text = {"user_id": "u-1", "session_id": "s-1", "message": message}, ""
    async with client.stream("POST", "/api/v1/chat/stream", json=body) as response:
        async for piece in response.aiter_text():
            text += piece
            if "qzvault" in text:
                answered.set()
    return text


@pytest.mark.settings(encryption=True)
@pytest.mark.parametrize("delete", [True, False])
async def test_own_export_does_not_bring_a_written_memory_back_where_words_are_encrypted(
    client: httpx.AsyncClient, services: Services, delete: bool
) -> None:
    await say(client, HIKE)
    written = await client.post(f"{USER}/episodes", json={"content": LOCKER})
    assert written.status_code == 201, written.text
    lines = await _export(client)
    assert "qzvault" in lines
    await _forget(client, delete=delete)
    vault = services.database.vault
    assert vault is not None
    vault.keys.renew(DEFAULT_TENANT, "u-1")  # as the job does that the forgetting has queued
    report = await _import(client, lines)
    assert report["imported"] == 0, report
    assert "qzvault" not in await _recalled(client)
    assert "qzvault" not in await _export(client)
