"""Without authentication, a page of another site in the user's browser reaches nothing."""

import json

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}


@pytest.mark.traced
@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[bad"])
async def test_a_name_that_is_not_ours_is_refused(shared_client: httpx.AsyncClient, host: str) -> None:
    response = await shared_client.get("/api/v1/conversations", headers={"Host": host})
    assert (response.status_code, response.json()["code"]) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
async def test_loopback_names_are_answered(shared_client: httpx.AsyncClient, host: str) -> None:
    assert (await shared_client.get("/api/v1/conversations", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost.evil.example"])
async def test_a_socket_that_another_site_opens_is_refused(shared_url: str, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        await connect(shared_url.replace("http", "ws") + "/api/v1/chat/ws", origin=origin)  # type: ignore[arg-type]


async def test_a_socket_of_our_own_page_is_accepted(url: str) -> None:
    address = url.replace("http", "ws") + "/api/v1/chat/ws"
    async with connect(address, origin="http://localhost:8000") as socket:  # type: ignore[arg-type]
        await socket.send(json.dumps(ASK))
        assert json.loads(await socket.recv())["status"] == "turn"


async def test_a_plain_form_of_another_site_is_not_taken_for_json(client: httpx.AsyncClient) -> None:
    sent = json.dumps(ASK)
    response = await client.post("/api/v1/chat", content=sent, headers={"Content-Type": "text/plain"})
    assert response.status_code == 422


async def test_the_documentation_loads_nothing_from_another_host(client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    assert "://" not in page.replace("http://www.w3.org", "")
    assert (await client.get("/static-offline-docs/swagger-ui-bundle.js")).status_code == 200
