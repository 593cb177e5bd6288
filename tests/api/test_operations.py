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
from tests.support.issuer import bearer

pytestmark = pytest.mark.settings(auth="api_key")

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
