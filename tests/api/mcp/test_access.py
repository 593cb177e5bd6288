"""Who may use memory through MCP, and whose it is."""

from pathlib import Path

import httpx
import pytest

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.caller import Scope
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.platform.settings import Settings, load_settings
from tests.api.mcp.conftest import Connect
from tests.api.mcp.test_tools import DOG, refused, told
from tests.support.issuer import AUDIENCE, ISSUER, bearer, key_file, token

pytestmark = pytest.mark.untraced

MODE: tuple[Scope, ...] = ("memory:read", "memory:write")
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPTS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """With the authentication that the test names."""
    auth = getattr(request, "param", "none")
    tokens = {"jwt_jwks": str(key_file(tmp_path)), "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
    return load_settings(**settings.model_dump(exclude_unset=True) | {"auth": auth} | tokens)


with_auth = pytest.mark.parametrize("settings", ["api_key"], indirect=True)
with_tokens = pytest.mark.parametrize("settings", ["jwt"], indirect=True)


async def _key(services: Services, *scopes: Scope, tenant: str | None = None, **options: object) -> dict[str, str]:
    tenant_id = (await Tenants(services.database).create(tenant)).id if tenant else DEFAULT_TENANT
    _, key = await ApiKeys(services.database).create(tenant_id, "assistant", scopes, **options)  # type: ignore[arg-type]
    return bearer(key)


@pytest.mark.traced
async def test_a_connection_that_names_no_user_is_told_how_to(connect: Connect) -> None:
    async with connect() as nobody:
        assert "X-User-Id" in await refused(nobody, "recall", query="dog")
        assert "X-User-Id" in await refused(nobody, "remember", text=DOG)


@with_auth
async def test_a_key_needs_the_scope_of_each_tool(connect: Connect, services: Services) -> None:
    reads = await _key(services, "memory:read", default_user="u-1")
    writes = await _key(services, "memory:write", default_user="u-1")
    async with connect(reads) as reader, connect(writes) as writer:
        await told(writer, "remember", text=DOG)
        assert "memory:write" in await refused(reader, "remember", text=DOG)
        assert "memory:write" in await refused(reader, "forget", query="dog")
        assert "memory:read" in await refused(writer, "profile")
        assert "Bruno" in str(await told(reader, "profile"))


@with_auth
async def test_a_key_acts_for_the_user_of_a_header_only_with_that_right(
    connect: Connect, services: Services, client: httpx.AsyncClient
) -> None:
    acts = await _key(services, *MODE, acts_for_headers=True)
    own = await _key(services, *MODE, default_user="u-1")
    async with connect({**acts, "X-User-Id": "u-2"}) as assistant:
        await told(assistant, "remember", text=DOG)
    async with connect(own) as assistant:
        assert (await told(assistant, "profile"))["sections"] == {}
    answer = await client.post("/mcp", json=INITIALIZE, headers={**own, **ACCEPTS, "X-User-Id": "u-2"})
    assert answer.status_code == 403


@with_auth
async def test_strangers_are_refused_and_told_nothing_of_tokens_where_there_are_none(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.post("/mcp", json=INITIALIZE, headers=ACCEPTS)
    assert answer.status_code == 401
    assert (await client.get("/.well-known/oauth-protected-resource/mcp")).status_code == 404


@with_tokens
async def test_strangers_learn_where_tokens_come_from(client: httpx.AsyncClient, url: str) -> None:
    answer = await client.post("/mcp", json=INITIALIZE, headers=ACCEPTS)

    assert answer.status_code == 401
    address = f"{url}/.well-known/oauth-protected-resource/mcp"
    assert answer.headers["WWW-Authenticate"] == f'Bearer resource_metadata="{address}"'
    found = (await client.get(address)).json()
    assert found["resource"] == f"{url}/mcp"
    assert found["authorization_servers"] == [ISSUER]
    assert found["scopes_supported"] == ["memory:read", "memory:write"]
    elsewhere = await client.post("/api/v1/chat", json={})
    assert elsewhere.headers["WWW-Authenticate"] == "Bearer"

    for prefix, kept in (("/anamnesis", "/anamnesis"), ("/a/b/", "/a/b"), ("//evil.example", ""), ("x", "")):
        below = {"X-Forwarded-Prefix": prefix}
        answer = await client.post("/mcp", json=INITIALIZE, headers={**ACCEPTS, **below})
        assert f'"{url}{kept}/.well-known/' in answer.headers["WWW-Authenticate"]
        assert (await client.get("/.well-known/oauth-protected-resource/mcp", headers=below)).json()[
            "resource"
        ] == f"{url}{kept}/mcp"


@with_tokens
async def test_a_token_is_its_own_user(connect: Connect) -> None:
    scope = "memory:read memory:write"
    async with (
        connect(bearer(token(scope=scope))) as one,
        connect(bearer(token(scope=scope, sub="u-2"))) as other,
        connect(bearer(token(scope="chat"))) as chats,
    ):
        await told(one, "remember", text=DOG)
        assert (await told(other, "profile"))["sections"] == {}
        assert "Bruno" in str(await told(one, "profile"))
        assert "memory:read" in await refused(chats, "profile")


async def test_another_sites_page_is_kept_out(client: httpx.AsyncClient) -> None:
    other = await client.post("/mcp", json=INITIALIZE, headers={**ACCEPTS, "Origin": "https://evil.example"})
    assert other.status_code == 403
    form = await client.post("/mcp", content=b"{}", headers={**ACCEPTS, "Content-Type": "text/plain"})
    assert form.status_code == 400
    rebound = await client.post("/mcp", json=INITIALIZE, headers={**ACCEPTS, "Host": "evil.example"})
    assert rebound.status_code == 421


@pytest.mark.traced
async def test_a_body_that_is_no_message_gets_one_sentence(client: httpx.AsyncClient) -> None:
    headers = {**ACCEPTS, "Content-Type": "application/json"}
    for body, code, says in (
        (b"{", -32700, "not valid JSON"),
        (b"[]", -32600, "one message"),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600, "method: is required"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]}', -32600, "params"),
    ):
        answer = await client.post("/mcp", content=body, headers=headers)
        assert answer.status_code == 400, body
        error = answer.json()["error"]
        assert error["code"] == code, body
        assert says in error["message"], body
        assert len(error["message"]) < 100, body
    assert (await client.get("/mcp", headers=ACCEPTS)).status_code == 405
    large = await client.post("/mcp", json={**INITIALIZE, "params": {"x": "x" * 2_000_000}}, headers=ACCEPTS)
    assert large.status_code == 413
