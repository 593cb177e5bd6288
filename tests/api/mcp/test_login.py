"""A whole login of an assistant with OAuth: from the refusal to the tools."""

import asyncio
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from services.platform.settings import Settings, load_settings
from services.tools.mcp_config import McpServerConfig
from services.tools.mcp_connection import McpServer
from tests.api.mcp.test_tools import DOG, told
from tests.support.authorization_server import AuthorizationServer
from tests.support.issuer import AUDIENCE


@pytest.fixture
def server() -> Iterator[AuthorizationServer]:
    """An authorization server that signs in Ann."""
    with AuthorizationServer("ann") as opened:
        yield opened


@pytest.fixture
def settings(settings: Settings, server: AuthorizationServer) -> Settings:
    """With tokens of that server."""
    tokens = {"auth": "jwt", "jwt_jwks": server.keys, "jwt_issuer": server.issuer, "jwt_audience": AUDIENCE}
    return load_settings(**settings.model_dump(exclude_unset=True) | tokens)


class Kept:
    """Tokens and registration, in memory."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Person:
    """Opens the page that asks for consent; the browser is sent back with a code."""

    def __init__(self) -> None:
        self._back = ""

    async def open(self, address: str) -> None:
        async with httpx2.AsyncClient(verify=False) as browser:
            self._back = (await browser.get(address)).headers["Location"]

    async def come_back(self) -> AuthorizationCodeResult:
        given = {name: values[0] for name, values in parse_qs(urlsplit(self._back).query).items()}
        return AuthorizationCodeResult(**given)


async def test_an_assistant_finds_the_server_signs_its_user_in_and_uses_memory(
    url: str, server: AuthorizationServer
) -> None:
    kept, person = Kept(), Person()
    about = OAuthClientMetadata(client_name="assistant", redirect_uris=["http://127.0.0.1:1/back"])
    login = OAuthClientProvider(f"{url}/mcp", about, kept, person.open, person.come_back)
    async with (
        httpx2.AsyncClient(auth=login, verify=False, timeout=120) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as assistant,
    ):
        await told(assistant, "remember", text=DOG)
        assert "Bruno" in str(await told(assistant, "profile"))
    by_path = dict(server.asked)
    assert by_path["/authorize"]["code_challenge_method"] == "S256"
    assert by_path["/authorize"]["resource"] == by_path["/token"]["resource"] == f"{url}/mcp"
    # What the metadata name is what a client asks for: no more than the tools need.
    assert by_path["/authorize"]["scope"] == "memory:read memory:write"
    assert [path for path, _ in server.asked].count("/authorize") == 1
    assert kept.tokens is not None
    async with httpx2.AsyncClient(verify=False) as http:
        answer = await http.get(
            f"{url}/api/v1/users/ben/core-memory", headers={"Authorization": f"Bearer {kept.tokens.access_token}"}
        )
    assert answer.status_code == 404  # there is no other user for this token


@pytest.mark.parametrize(("secret", "reason"), [("s3cret", None), ("wrong", "invalid_client")])
async def test_the_service_signs_itself_in_at_a_server_whose_tools_it_uses(
    url: str, server: AuthorizationServer, secret: str, reason: str | None
) -> None:
    oauth = {"client_id": "desk", "client_secret": secret, "issuer": server.issuer, "scope": "memory:read"}
    offered: list[str] = []
    config = McpServerConfig.model_validate({"url": f"{url}/mcp", "oauth": oauth})
    connection = McpServer("memory", config, lambda _, tools: offered.extend(each.name for each in tools))
    task = asyncio.create_task(connection.run())
    await connection.listed.wait()
    assert "/token" in dict(server.asked), connection.reason
    if reason is None:
        assert "memory_remember" in offered
        assert connection.reason is None
    else:
        assert offered == []
        assert connection.reason is not None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
