"""Accounts of users at a server of tools: connected in a browser, used in turns, renewed, gone with the user."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg.rows import tuple_row
from pydantic import SecretStr

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings
from tests.support.authorization_server import AuthorizationServer
from tests.support.fork_server import ROOT
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.ports import free_port, wait_for_port

pytestmark = pytest.mark.process

Event = dict[str, Any]
CONSOLE = {"X-Anamnesis-Console": "1"}


@pytest.fixture
def authorization() -> Iterator[AuthorizationServer]:
    with AuthorizationServer("ada@example.com") as server:
        yield server


def _started(authorization: AuthorizationServer, notes: Path, port: int) -> "subprocess.Popen[bytes]":
    env = {"NOTES": str(notes), "PATH": "", "ISSUER": authorization.issuer, "PORT": str(port)}
    command = [sys.executable, "-m", "tests.support.tool_server", "--port", str(port)]
    return subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)


@pytest.fixture
async def address(authorization: AuthorizationServer, tmp_path: Path) -> AsyncIterator[str]:
    """Of a server of tools that admits only who has a token."""
    port = free_port()
    process = _started(authorization, tmp_path / "notes.txt", port)
    try:
        await asyncio.to_thread(wait_for_port, port)
        async with httpx.AsyncClient() as http:
            assert (await http.get(f"http://127.0.0.1:{port}/mcp")).status_code == 401
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 60)


@pytest.fixture
def settings(settings: Settings, address: str, authorization: AuthorizationServer, tmp_path: Path) -> Settings:
    desk = {"url": address, "oauth": {"per_user": True, "issuer": authorization.issuer}, "timeout_s": 60}
    servers = SecretStr(json.dumps({"mcpServers": {"desk": desk}}))
    return settings.model_copy(update={"mcp_servers": servers, "encryption_keys_dir": tmp_path / "keys"})


@pytest.fixture
async def ready(services: Services, client: httpx.AsyncClient) -> httpx.AsyncClient:
    await services.mcp_servers.settled(timedelta(seconds=60))
    return client


async def _call(
    client: httpx.AsyncClient,
    model_server: ModelServer,
    tool: str,
    user: str = "u-1",
    arguments: dict[str, Any] | None = None,
) -> Event:
    """Have the model call a tool; return its result."""
    model_server.script(Reply(tool_calls=[ToolCall(tool, arguments or {})]), Reply(["Done."]))
    body = {"user_id": user, "session_id": f"s-{user}", "message": "Go on."}
    told = await client.post("/api/v1/chat/stream", json=body)
    events = [json.loads(line[5:]) for line in told.text.splitlines() if line.startswith("data:")]
    (found,) = [each["content"] for each in events if each["status"] == "tool_result"]
    assert isinstance(found, dict)
    return found


async def _agree(browser: httpx.AsyncClient, where: str) -> httpx.Response:
    """What a browser does whose user agrees."""
    async with httpx.AsyncClient() as elsewhere:
        sent = await elsewhere.get(where)
    back = urlsplit(sent.headers["location"])
    assert back.path == "/api/v1/mcp/callback"
    return await browser.get(f"{back.path}?{back.query}")


def _code_on(page: httpx.Response) -> str:
    found = re.search(r"<strong>([A-Z0-9-]{14})</strong>", page.text)
    assert found, page.text
    return found[1]


async def _enter(client: httpx.AsyncClient, code: str, user: str = "u-1") -> httpx.Response:
    return await client.post("/api/v1/mcp/desk/connect", json={"user_id": user, "code": code})


async def _connected(client: httpx.AsyncClient, user: str = "u-1") -> bool:
    (account,) = (await client.get("/api/v1/mcp", params={"user_id": user})).json()["items"]
    assert account["server"] == "desk"
    return bool(account["connected"])


async def _connect(client: httpx.AsyncClient, user: str = "u-1") -> None:
    """What the console does."""
    told = await client.get("/api/v1/mcp/desk/connect", params={"user_id": user}, headers=CONSOLE)
    assert told.status_code == 200, told.text
    agreed = await _agree(client, told.json()["authorization_url"])
    assert agreed.status_code == 200, agreed.text
    assert "Connected." in agreed.text


async def _rows(services: Services) -> list[Any]:
    return await services.database.fetch(DEFAULT_TENANT, "SELECT signed_in FROM tool_accounts", {}, tuple_row)


async def test_a_turn_asks_to_connect_and_then_uses_the_users_own_account(
    services: Services, ready: httpx.AsyncClient, model_server: ModelServer, authorization: AuthorizationServer
) -> None:
    assert not await _connected(ready)
    asked = await _call(ready, model_server, "desk_connect")
    assert not asked["ok"]
    assert asked["connect"]["server"] == "desk"
    where = asked["connect"]["url"]
    assert where.startswith(f"{authorization.issuer}/authorize?")
    assert where in asked["error"]
    assert parse_qs(urlsplit(where).query)["code_challenge_method"] == ["S256"]
    again = await _call(ready, model_server, "desk_connect")
    assert again["connect"]["url"] == where, "one that is under way is not begun once more"
    code = _code_on(await _agree(ready, where))
    assert not await _connected(ready)
    entered = await _call(ready, model_server, "desk_connect", arguments={"code": code.lower()})
    assert "is connected" in entered["result"]
    assert await _connected(ready)
    assert (await _call(ready, model_server, "desk_whoami"))["result"] == "ada@example.com"
    other = await _call(ready, model_server, "desk_whoami", user="u-2")
    assert other["error"] == "There is no tool named desk_whoami."
    authorization.user = "bob@example.com"
    await _connect(ready, "u-2")
    assert (await _call(ready, model_server, "desk_whoami", user="u-2"))["result"] == "bob@example.com"
    assert (await _call(ready, model_server, "desk_whoami"))["result"] == "ada@example.com"
    assert (await ready.delete("/api/v1/mcp/desk", params={"user_id": "u-1"})).status_code == 204
    assert not await _connected(ready)
    assert await _connected(ready, "u-2")
    gone = await _call(ready, model_server, "desk_whoami")
    assert gone["error"] == "There is no tool named desk_whoami."


async def test_tokens_are_renewed_and_kept_and_asked_for_when_they_cannot_be(
    services: Services, ready: httpx.AsyncClient, model_server: ModelServer, authorization: AuthorizationServer
) -> None:
    authorization.lasts_s = 1  # it has ended already, as tokens are renewed before their end
    await _connect(ready)
    for _ in range(2):
        before = await _rows(services)
        assert (await _call(ready, model_server, "desk_whoami"))["result"] == "ada@example.com"
        assert await _rows(services) != before
    renewals = [given for path, given in authorization.asked if given.get("grant_type") == "refresh_token"]
    assert len({each["refresh_token"] for each in renewals}) == len(renewals) == 2
    registered = [path for path, _ in authorization.asked].count("/register")
    assert registered == 1
    authorization.forget_grants()
    assert (await _call(ready, model_server, "desk_whoami"))["connect"]["server"] == "desk"


async def test_what_a_browser_brings_back_must_have_been_asked_for(
    services: Services, ready: httpx.AsyncClient, authorization: AuthorizationServer
) -> None:
    nowhere = await ready.get("/api/v1/mcp/callback", params={"code": "x", "state": "y"})
    assert "A user of this service wants to use your account" in nowhere.text
    assert (await ready.get("/api/v1/mcp/callback", params={"code": "x"})).status_code == 422
    assert (await ready.get("/api/v1/mcp/callback", params={"state": "y" * 5_000})).status_code == 422
    told = await ready.get("/api/v1/mcp/desk/connect", params={"user_id": "u-1"}, headers=CONSOLE)
    state = parse_qs(urlsplit(told.json()["authorization_url"]).query)["state"][0]
    refused = await ready.get("/api/v1/mcp/callback", params={"error": "<b>access_denied", "state": state})
    assert refused.status_code == 502
    assert "&lt;b&gt;access_denied" in refused.text
    told = await ready.get("/api/v1/mcp/desk/connect", params={"user_id": "u-1"}, headers=CONSOLE)
    state = parse_qs(urlsplit(told.json()["authorization_url"]).query)["state"][0]
    false = {"code": "not-one", "state": state, "iss": authorization.issuer}
    assert (await ready.get("/api/v1/mcp/callback", params=false)).status_code == 502
    assert not await _connected(ready)
    assert (await ready.get("/api/v1/mcp/other/connect", params={"user_id": "u-1"})).status_code == 404
    assert (await ready.delete("/api/v1/mcp/desk", params={"user_id": "nobody"})).status_code == 404


async def test_an_account_goes_with_its_user_and_is_not_exported(
    services: Services, ready: httpx.AsyncClient
) -> None:
    await _connect(ready)
    ((kept,),) = await _rows(services)
    token = json.loads(kept)["tokens"]["access_token"]
    exported = (await ready.get("/api/v1/users/u-1/export")).text
    assert token not in exported
    assert "refresh_token" not in exported
    assert (await ready.delete("/api/v1/users/u-1")).status_code == 200
    assert await _rows(services) == []


@pytest.mark.settings(encryption=True)
async def test_tokens_are_encrypted_where_words_are(
    services: Services, ready: httpx.AsyncClient, model_server: ModelServer, engines: Engines
) -> None:
    await _connect(ready)
    ((kept,),) = await _rows(services)
    assert "access_token" in kept
    async with await psycopg.AsyncConnection.connect(engines.database_url) as plain:
        await plain.execute("SELECT set_config('anamnesis.tenant_id', %s, false)", [str(DEFAULT_TENANT)])
        row = await (await plain.execute("SELECT signed_in FROM tool_accounts")).fetchone()
    assert row is not None
    assert "token" not in row[0]
    assert (await _call(ready, model_server, "desk_whoami"))["result"] == "ada@example.com"


async def test_a_link_that_is_forwarded_connects_nobody(ready: httpx.AsyncClient, url: str) -> None:
    asked = await ready.get("/api/v1/mcp/desk/connect", params={"user_id": "mallory"})
    assert "set-cookie" not in asked.headers, "a program is not the browser of its user"
    async with httpx.AsyncClient(base_url=url, verify=False) as victim:
        await victim.get("/api/v1/mcp/desk/connect", params={"user_id": "u-1"}, headers=CONSOLE)
        page = await _agree(victim, asked.json()["authorization_url"])
    assert "“mallory” wants to use your account at desk from here" in page.text
    assert not await _connected(ready, "mallory")
    code = _code_on(page)
    wrong = await _enter(ready, "AAAA-AAAA-AAAA", "mallory")
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_input")
    assert (await _enter(ready, code, "u-1")).status_code == 422, "it is nobody else's"
    entered = await _enter(ready, code, "mallory")
    assert entered.json() == {"server": "desk", "connected": True}
    assert await _connected(ready, "mallory")
    assert not await _connected(ready)


async def test_a_code_cannot_be_guessed(ready: httpx.AsyncClient) -> None:
    asked = await ready.get("/api/v1/mcp/desk/connect", params={"user_id": "u-1"})
    assert (await _enter(ready, "AAAA-AAAA-AAAA")).status_code == 422, "nobody has agreed yet"
    async with httpx.AsyncClient(base_url=str(ready.base_url), verify=False) as browser:
        code = _code_on(await _agree(browser, asked.json()["authorization_url"]))
    for _ in range(5):
        assert (await _enter(ready, "AAAA-AAAA-AAAA")).status_code == 422
    assert (await _enter(ready, code)).status_code != 200 or not await _connected(ready)
    assert not await _connected(ready)


async def test_a_cookie_is_for_the_consoles_browser_and_its_way_back(ready: httpx.AsyncClient) -> None:
    asked = await ready.get("/api/v1/mcp/desk/connect", params={"user_id": "u-1"}, headers=CONSOLE)
    cookie = asked.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "max-age=600" in cookie


def _offered(model_server: ModelServer) -> str:
    """The tools that the model was offered last."""
    return json.dumps([each.body["tools"] for each in model_server.requests if each.body.get("tools")][-1])


async def test_a_user_is_offered_the_tools_of_their_own_account_alone(
    services: Services, ready: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _connect(ready)
    for user, offers_all in (("u-1", True), ("u-2", False)):
        body = {"user_id": user, "session_id": f"t-{user}", "message": "Good morning."}
        assert (await ready.post("/api/v1/chat", json=body)).status_code == 200
        assert ("desk_whoami" in _offered(model_server)) is offers_all
        assert "desk_connect" in _offered(model_server)
    other = await services.tools.of_user(uuid4(), uuid4())
    assert other.get("desk_whoami") is None
    assert "desk_whoami" not in other.described
