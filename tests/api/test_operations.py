"""What is for the operator asks for a key; browsers open the WebSocket with a ticket."""

import base64
import json

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.caller import Scope
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.platform.settings import load_settings
from tests.support.issuer import bearer

pytestmark = [pytest.mark.anyio, pytest.mark.settings(auth="api_key")]

ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}
FOR_OPERATORS = ("/metrics", "/docs", "/openapi.json")


async def _key(services: Services, *scopes: Scope, tenant: str | None = None) -> str:
    owner = (await Tenants(services.database).create(tenant)).id if tenant else DEFAULT_TENANT
    _, key = await ApiKeys(services.database).create(owner, "test", scopes)
    return key


async def test_metrics_and_documentation_are_for_admins_of_the_default_tenant(
    client: httpx.AsyncClient, services: Services
) -> None:
    others = [await _key(services, "chat"), await _key(services, "admin", tenant="web-shop")]
    admin = await _key(services, "admin")
    for path in FOR_OPERATORS:
        for headers in ({}, *(bearer(key) for key in others)):
            refused = await client.get(path, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
            assert "ANAMNESIS_PROTECT_OPERATIONS" in refused.json()["detail"]
        assert (await client.get(path, headers=bearer(admin))).status_code == 200


async def test_readiness_is_for_everybody_and_its_details_for_admins(
    client: httpx.AsyncClient, services: Services
) -> None:
    ready = await client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["dependencies"] == []
    shown = (await client.get("/readyz", headers=bearer(await _key(services, "admin")))).json()
    assert {each["name"] for each in shown["dependencies"]} >= {"postgres", "redis"}
    assert (await client.get("/healthz")).text == "ok"


async def test_a_browser_sends_the_key_as_the_password_of_the_documentation_alone(
    client: httpx.AsyncClient, services: Services
) -> None:
    asked = await client.get("/docs")
    assert asked.headers["www-authenticate"].startswith("Basic ")
    password = base64.b64encode(f"me:{await _key(services, 'admin')}".encode()).decode()
    basic = {"Authorization": f"Basic {password}"}
    assert (await client.get("/docs", headers=basic)).status_code == 200
    assert (await client.get("/docs", headers={"Authorization": "Basic !"})).status_code == 401
    for path in ("/metrics", "/api/v1/conversations"):
        assert (await client.get(path, headers=basic)).status_code == 401


async def test_a_ticket_opens_one_socket_once(client: httpx.AsyncClient, url: str, services: Services) -> None:
    issued = await client.post("/api/v1/chat/ticket", headers=bearer(await _key(services, "chat")))
    ticket = issued.raise_for_status().json()
    assert ticket["expires_in_s"] == 30
    address = f"{url.replace('http', 'ws')}/api/v1/chat/ws?ticket="
    async with connect(address + ticket["ticket"]) as socket:
        for session in ("s-1", "s-2"):
            await socket.send(json.dumps({**ASK, "session_id": session}))
            while (frame := json.loads(await socket.recv()))["status"] != "done":
                assert frame["status"] != "error", frame
    for wrong in (ticket["ticket"], "x", "x.y", ""):
        with pytest.raises(InvalidStatus) as refused:
            await connect(address + wrong)
        assert refused.value.response.status_code == 403


async def test_a_socket_opened_by_a_ticket_ends_with_its_key(
    client: httpx.AsyncClient, url: str, services: Services
) -> None:
    keys = ApiKeys(services.database)
    made, key = await keys.create(DEFAULT_TENANT, "test", ("chat",))
    ticket = (await client.post("/api/v1/chat/ticket", headers=bearer(key))).json()["ticket"]
    async with connect(f"{url.replace('http', 'ws')}/api/v1/chat/ws?ticket={ticket}") as socket:
        await keys.revoke(DEFAULT_TENANT, made.id)
        await socket.send(json.dumps(ASK))
        refused = json.loads(await socket.recv())
        assert refused["content"]["code"] == "unauthenticated"


async def test_a_ticket_takes_the_scope_that_chatting_takes(client: httpx.AsyncClient, services: Services) -> None:
    assert (await client.post("/api/v1/chat/ticket")).status_code == 401
    refused = await client.post("/api/v1/chat/ticket", headers=bearer(await _key(services, "memory:read")))
    assert refused.status_code == 403


def test_limits_and_protection_are_on_where_callers_are_known() -> None:
    open_to_all, known = load_settings(), load_settings(auth="api_key")
    assert (open_to_all.turns_per_minute, open_to_all.requests_per_minute) == (None, None)
    assert (known.turns_per_minute, known.requests_per_minute) == (60, 3000)
    without = load_settings(auth="api_key", rate_limit_user_per_minute=0, rate_limit_tenant_per_minute=0)
    assert (without.turns_per_minute, without.requests_per_minute) == (None, None)
    assert known.operations_protected
    assert not open_to_all.operations_protected
    assert not load_settings(auth="api_key", protect_operations=False).operations_protected
