"""Without authentication, a page of another site in the user's browser reaches nothing."""

import asyncio
import json

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from services.bootstrap import Services
from services.errors import ConfigurationError
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import load_settings
from tests.support.issuer import bearer

pytestmark = pytest.mark.untraced

ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}


@pytest.mark.traced
@pytest.mark.parametrize(
    "host", ["evil.example:8000", "127.0.0.1.evil.example", "", "[bad", "localhost, evil.example"]
)
async def test_a_name_that_is_not_ours_is_refused(shared_client: httpx.AsyncClient, host: str) -> None:
    response = await shared_client.get("/api/v1/conversations", headers={"Host": host})
    assert (response.status_code, response.json()["code"]) == (421, "wrong_host")


@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
async def test_a_socket_that_another_site_opens_is_refused(shared_url: str, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        await connect(shared_url.replace("http", "ws") + "/api/v1/chat/ws", origin=origin)  # type: ignore[arg-type]


async def test_a_socket_of_our_own_page_is_accepted(url: str) -> None:
    address = url.replace("http", "ws") + "/api/v1/chat/ws"
    async with connect(address, origin="http://localhost:8000") as socket:  # type: ignore[arg-type]
        await socket.send(json.dumps(ASK))
        assert json.loads(await socket.recv())["status"] == "turn"


async def test_two_hosts_are_refused(shared_url: str) -> None:
    port = int(shared_url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = ["GET /api/v1/conversations HTTP/1.1", "Host: localhost", "Host: evil.example", "Connection: close"]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    answer = (await reader.read()).decode()
    writer.close()
    assert answer.startswith("HTTP/1.1 400 ")


FOREIGN = (
    {"Origin": "http://evil.example"},
    {"Origin": "http://evil.example", "Authorization": "Bearer k"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"},
)
CHANGING = (
    ("POST", "/api/v1/import"),
    ("POST", "/api/v1/chat"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/mcp"),
    ("DELETE", "/api/v1/users/u"),
)


@pytest.mark.parametrize("headers", FOREIGN)
async def test_what_a_page_of_another_site_wants_done_is_refused(
    shared_client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    for method, path in CHANGING:
        response = await shared_client.request(method, path, headers=headers, content=b"{}")
        assert response.status_code == 403, path
        assert "foreign_origin" in response.text
        assert "ANAMNESIS_TRUSTED_ORIGINS" in response.text
    assert (await shared_client.get("/api/v1/conversations", headers=headers)).status_code == 200


OWN: tuple[dict[str, str], ...] = (
    {},
    {"Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "http://127.0.0.1:3000", "Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "http://[::1]:8000"},
)


async def test_what_programs_and_own_pages_want_done_is_done(client: httpx.AsyncClient) -> None:
    for headers in OWN:
        assert (await client.post("/api/v1/chat", json=ASK, headers=headers)).status_code == 200, headers


async def test_the_documentation_loads_nothing_from_another_host(client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    assert "://" not in page.replace("http://www.w3.org", "")
    assert (await client.get("/static-offline-docs/swagger-ui-bundle.js")).status_code == 200


@pytest.mark.settings(auth="api_key", host="0.0.0.0", trusted_origins="https://chat.example, app://desk")
class TestWhereCallersAreKnown:
    """With keys, only what a browser adds by itself is refused to other sites' pages."""

    async def test_a_key_passes_and_a_cookie_only_from_own_pages(
        self, client: httpx.AsyncClient, services: Services
    ) -> None:
        _, secret = await ApiKeys(services.database).create(DEFAULT_TENANT, "test", ["chat"])
        evil = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
        assert (await client.post("/api/v1/chat", json=ASK, headers={**evil, **bearer(secret)})).status_code == 200

        await client.post("/console/session", headers=bearer(secret))
        console = {"X-Anamnesis-Console": "1"}
        own = str(client.base_url).rstrip("/")
        for headers, status in (
            ({"Origin": own, "Sec-Fetch-Site": "same-origin"}, 200),
            ({"Origin": own}, 200),
            ({"Origin": "https://behind.a.proxy", "Sec-Fetch-Site": "same-origin"}, 200),
            ({"Origin": "https://chat.example", "Sec-Fetch-Site": "cross-site"}, 200),
            ({"Origin": "app://desk"}, 200),
            (evil, 403),
            ({"Origin": "https://sub.chat.example", "Sec-Fetch-Site": "same-site"}, 403),
            ({"Origin": "null"}, 403),
        ):
            answer = await client.post("/api/v1/chat", json=ASK, headers={**console, **headers})
            assert answer.status_code == status, headers


@pytest.mark.parametrize("origins", ["chat.example", "*"])
def test_a_trusted_origin_that_is_none_is_refused(origins: str) -> None:
    with pytest.raises(ConfigurationError, match=r"ANAMNESIS_TRUSTED_ORIGINS=.*is not of the form https://host"):
        load_settings(trusted_origins=origins)


@pytest.mark.parametrize("name", ["X-User-Id", "X-OpenWebUI-User-Email", "X-Session-Id", "X-Anamnesis-Space"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/mcp", "/api/v1/ui/chat"])
async def test_two_headers_that_name_whose_a_request_is_are_refused(
    shared_client: httpx.AsyncClient, path: str, name: str
) -> None:
    response = await shared_client.post(path, json={}, headers=[(name, "anna"), (name, "bob")])
    assert response.status_code == 400
    assert f"more than one header {name.lower()}" in response.text
    same = await shared_client.post(path, json={}, headers=[(name, "anna"), (name, "anna")])
    assert "more than one header" not in same.text
