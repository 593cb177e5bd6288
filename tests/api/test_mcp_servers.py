"""Tools of MCP servers in whole turns: offered, called, bounded, asked about; and servers that end."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from pydantic import SecretStr

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings, load_settings
from services.tools.mcp_config import McpServerConfig
from services.tools.mcp_connection import McpServer
from tests.support.fork_server import ROOT
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.ports import free_port, wait_for_port
from tests.support.talks import new_expert

pytestmark = pytest.mark.process

PROGRAM = {"command": sys.executable, "args": ["-m", "tests.support.tool_server"], "cwd": str(ROOT)}
Event = dict[str, Any]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes.txt"


@pytest.fixture
def servers(notes: Path) -> dict[str, Any]:
    return {"desk": {**PROGRAM, "env": {"NOTES": str(notes)}, "timeout_s": 60}}


@pytest.fixture
def settings(model_server: ModelServer, servers: dict[str, Any], request: pytest.FixtureRequest) -> Settings:
    more = getattr(request, "param", {})
    named: dict[str, Any] = {"mcpServers": {**servers, **more.get("servers", {})}}
    return load_settings(
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api_key="secret-key",
        llm_timeout_s=60,
        mcp_servers=SecretStr(json.dumps(named)),
        tools_approval_s=more.get("approval_s", 30),
    )


@pytest.fixture
async def ready(services: Services, client: httpx.AsyncClient) -> httpx.AsyncClient:
    """A client of an application whose servers were tried."""
    await services.mcp_servers.settled(timedelta(seconds=60))
    return client


def _started(notes: Path, port: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.support.tool_server", "--port", str(port)]
    env = {"NOTES": str(notes), "PATH": ""}
    return subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)


@asynccontextmanager
async def _over_http(notes: Path) -> AsyncIterator[str]:
    port = free_port()
    process = _started(notes, port)
    try:
        await asyncio.to_thread(wait_for_port, port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 60)


def _body(message: str, **more: Any) -> dict[str, Any]:
    return {"user_id": "u-1", "session_id": "s-1", "message": message, **more}


async def _say(
    client: httpx.AsyncClient,
    model_server: ModelServer,
    name: str,
    arguments: dict[str, Any],
    *,
    answer: bool | None = None,
    **more: Any,
) -> list[Event]:
    """Have the model call a tool, answer what is asked, and return the events of the turn."""
    model_server.script(Reply(tool_calls=[ToolCall(name, arguments)]), Reply(["Done."]))
    events: list[Event] = []
    async with client.stream("POST", "/api/v1/chat/stream", json=_body("Go on.", **more)) as response:
        turn_id = ""
        async for line in response.aiter_lines():
            if not line.startswith("data:"):
                continue
            event = json.loads(line[5:])
            events.append(event)
            if event["status"] == "turn":
                turn_id = event["content"]["turn_id"]
            if event["status"] == "approval" and answer is not None:
                body = {"approval_id": event["content"]["approval_id"], "approved": answer}
                told = await client.post(f"/api/v1/turns/{turn_id}/approve", json=body)
                assert told.status_code == 200, told.text
    return events


def _read(notes: Path) -> str:
    return notes.read_text() if notes.exists() else ""


def _result(events: list[Event]) -> dict[str, Any]:
    (found,) = [each["content"] for each in events if each["status"] == "tool_result"]
    assert isinstance(found, dict)
    return found


def _offered(model_server: ModelServer) -> set[str]:
    tools = model_server.requests[-1].body.get("tools", [])
    return {each.get("name") or each["function"]["name"] for each in tools}


async def test_a_turn_with_two_real_servers(
    services: Services, ready: httpx.AsyncClient, model_server: ModelServer, notes: Path
) -> None:
    async with _over_http(notes) as address:
        second = McpServer("shelf", McpServerConfig(url=address), services.tools.put)
        task = asyncio.create_task(second.run())
        await second.listed.wait()
        written = await _say(
            ready, model_server, "shelf_write_note", {"text": "Buy milk."}, answer=True, approvals=True
        )
        assert _result(written)["result"] == "Written."
        assert {"desk_read_notes", "shelf_read_notes", "remember"} <= _offered(model_server)
        read = await _say(ready, model_server, "desk_read_notes", {})
        assert "Buy milk." in _result(read)["result"]
        assert "approval" not in {each["status"] for each in read}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await _say(ready, model_server, "shelf_read_notes", {})
    assert not any(each.startswith("shelf_") for each in _offered(model_server))


async def test_what_changes_something_is_asked_about(
    ready: httpx.AsyncClient, model_server: ModelServer, notes: Path
) -> None:
    asked = await _say(ready, model_server, "desk_write_note", {"text": "Yes."}, answer=True, approvals=True)
    (approval,) = [each["content"] for each in asked if each["status"] == "approval"]
    assert (approval["name"], approval["arguments"]) == ("desk_write_note", {"text": "Yes."})
    assert _result(asked)["ok"]
    refused = await _say(ready, model_server, "desk_write_note", {"text": "No."}, answer=False, approvals=True)
    assert "does not agree" in _result(refused)["error"]
    silent = await _say(ready, model_server, "desk_write_note", {"text": "Silent."})
    assert "cannot ask" in _result(silent)["error"]
    assert _read(notes) == "Yes.\n"


async def test_the_answer_belongs_to_its_turn_and_another_process_hears_it(
    services: Services, ready: httpx.AsyncClient, model_server: ModelServer, notes: Path
) -> None:
    model_server.script(Reply(tool_calls=[ToolCall("desk_write_note", {"text": "Hello."})]), Reply(["Done."]))
    body = {"approval_id": "01a215c0-77c0-74e4-84bd-155e6b1f54d9", "approved": True}
    nowhere = "/api/v1/turns/01a215c0-77c0-74e4-84bd-155e6b1f54d9/approve"
    assert (await ready.post(nowhere, json=body)).status_code == 404
    async with ready.stream("POST", "/api/v1/chat/stream", json=_body("Go.", approvals=True)) as response:
        turn_id = ""
        async for line in response.aiter_lines():
            event: Event = json.loads(line[5:]) if line.startswith("data:") else {"status": ""}
            if event["status"] == "turn":
                turn_id = event["content"]["turn_id"]
            if event["status"] == "approval":
                approval_id = UUID(event["content"]["approval_id"])
                assert not services.approvals.settle(DEFAULT_TENANT, approval_id, approved=True)
                # As another process tells it.
                signal = f"approval:{turn_id}:{approval_id}:yes"
                async with services.database.tenant(DEFAULT_TENANT) as connection:
                    await connection.execute("SELECT pg_notify('anamnesis_turns', %s)", [signal])
    assert _read(notes) == "Hello.\n"
    ended = await ready.post(f"/api/v1/turns/{turn_id}/approve", json=body)
    assert ended.status_code == 409


async def test_results_are_bounded_and_failures_are_told(
    ready: httpx.AsyncClient, model_server: ModelServer
) -> None:
    long = await _say(ready, model_server, "desk_long_text", {"characters": 50_000})
    assert len(_result(long)["result"]) < 20_100
    assert "50000 characters" in _result(long)["result"]
    shown = await _say(ready, model_server, "desk_picture", {})
    assert _result(shown)["result"] == "A cat.\n[image: image/png, 3 bytes]"
    image = {"type": "input_image", "image_url": "data:image/png;base64,cG5n"}
    assert image in model_server.requests[-1].body["input"][-1]["content"]
    failed = await _say(ready, model_server, "desk_fail", {})
    assert "The shelf is empty." in _result(failed)["error"]
    wrong = await _say(ready, model_server, "desk_long_text", {"characters": "many"})
    assert not _result(wrong)["ok"]


async def test_a_server_that_ends_comes_back(
    services: Services, ready: httpx.AsyncClient, model_server: ModelServer
) -> None:
    died = await _say(ready, model_server, "desk_die", {})
    assert "desk" in _result(died)["error"]
    (server,) = services.mcp_servers.servers
    for _ in range(600):
        if server.reason is None and services.tools.get("desk_read_notes"):
            break
        await asyncio.sleep(0.1)
    read = await _say(ready, model_server, "desk_read_notes", {})
    assert _result(read)["result"] == "There are no notes."


@pytest.mark.parametrize(
    "settings",
    [{"servers": {"away": {"url": "http://127.0.0.1:9/mcp"}, "nothing": {"command": "no-such-program"}}}],
    indirect=True,
)
async def test_a_server_that_is_down_costs_its_tools_alone(
    ready: httpx.AsyncClient, model_server: ModelServer
) -> None:
    found = (await ready.get("/readyz")).json()
    states = {each["name"]: each["state"] for each in found["dependencies"]}
    assert states["tools: away"] == states["tools: nothing"] == "degraded"
    assert states["tools: desk"] == "ok"
    assert found["state"] == "degraded"
    read = await _say(ready, model_server, "desk_read_notes", {})
    assert _result(read)["ok"]


@pytest.mark.parametrize("settings", [{"approval_s": 0.2}], indirect=True)
async def test_without_an_answer_nothing_is_done(
    ready: httpx.AsyncClient, model_server: ModelServer, notes: Path
) -> None:
    events = await _say(ready, model_server, "desk_write_note", {"text": "x"}, approvals=True)
    assert "has not answered" in _result(events)["error"]
    assert _read(notes) == ""


@pytest.mark.parametrize("settings", [{"servers": {"desk": {**PROGRAM, "experts": ["clerk"]}}}], indirect=True)
async def test_tools_are_allowed_per_expert(
    services: Services, ready: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await services.experts.create(DEFAULT_TENANT, new_expert("clerk"))
    await _say(ready, model_server, "remember", {"text": "x"}, expert="clerk", session_id="clerk")
    assert "desk_read_notes" in _offered(model_server)
    other = await _say(ready, model_server, "desk_long_text", {"characters": 3})
    assert "no tool named" in _result(other)["error"]
    assert "desk_read_notes" not in _offered(model_server)
