"""JSON Web Tokens over HTTP: the caller is one user, and sees that user's things only."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.platform.settings import Settings, load_settings
from tests.support.issuer import AUDIENCE, ISSUER, KeyServer, bearer, key_file, token
from tests.support.model_server import ModelServer
from tests.support.turns import exchange

pytestmark = pytest.mark.untraced

ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}


@pytest.fixture
def key_server() -> Iterator[KeyServer]:
    with KeyServer() as server:
        yield server


@pytest.fixture(params=["file", "address"])
def settings(request: pytest.FixtureRequest, model_server: ModelServer, tmp_path: Path) -> Settings:
    """Settings with tokens, the keys from a file or from an address."""
    from_address = getattr(request, "param", "file") == "address"
    return load_settings(
        auth="jwt",
        jwt_jwks=request.getfixturevalue("key_server").url if from_address else str(key_file(tmp_path)),
        jwt_issuer=ISSUER,
        jwt_audience=AUDIENCE,
        jwt_tenant_claim="tenant",
        llm_model="scripted",
        llm_base_url=model_server.base_url,
        llm_api_key="k",
    )


only_file = pytest.mark.parametrize("settings", ["file"], indirect=True)
only_address = pytest.mark.parametrize("settings", ["address"], indirect=True)


def _mine(**changes: object) -> dict[str, str]:
    return bearer(token(**{"tenant": "default", **changes}))  # type: ignore[arg-type]


async def test_a_user_talks_and_reads_what_is_theirs_and_nothing_else(
    client: httpx.AsyncClient, services: Services
) -> None:
    answer = (await client.post("/api/v1/chat", json=ASK, headers=_mine())).raise_for_status().json()
    theirs = await exchange(services.turns, "Hello", "Hi", user_id="u-2")
    listed = (await client.get("/api/v1/conversations", headers=_mine())).json()["items"]
    assert [item["id"] for item in listed] == [answer["conversation_id"]]
    for turn_id, conversation_id, status in (
        (answer["turn_id"], answer["conversation_id"], 200),
        (theirs.turn_id, theirs.conversation_id, 404),
    ):
        for path in (
            f"/api/v1/turns/{turn_id}",
            f"/api/v1/conversations/{conversation_id}",
            f"/api/v1/conversations/{conversation_id}/messages",
        ):
            assert (await client.get(path, headers=_mine())).status_code == status, path
    admin = _mine(scope="admin")
    assert len((await client.get("/api/v1/conversations", headers=admin)).json()["items"]) == 2
    assert (await client.get(f"/api/v1/turns/{theirs.turn_id}", headers=admin)).status_code == 200


@only_file
async def test_another_user_cannot_be_named(client: httpx.AsyncClient, services: Services, url: str) -> None:
    other = {**ASK, "user_id": "u-2"}
    for path in ("/api/v1/chat", "/api/v1/chat/stream"):
        refused = await client.post(path, json=other, headers=_mine())
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    named = await client.get("/api/v1/conversations", params={"user_id": "u-2"}, headers=_mine())
    assert named.status_code == 404
    own = await client.get("/api/v1/conversations", params={"user_id": "u-1"}, headers=_mine())
    assert own.json()["items"] == []
    async with connect(url.replace("http", "ws") + "/api/v1/chat/ws", additional_headers=_mine()) as socket:
        await socket.send(json.dumps(other))
        assert json.loads(await socket.recv())["content"]["code"] == "not_found"
    assert await services.transcript.conversations(DEFAULT_TENANT, limit=10) == []


@only_file
async def test_the_claim_says_whose_tenant_it_is(client: httpx.AsyncClient, services: Services) -> None:
    shop = await Tenants(services.database).create("shop")
    answer = (await client.post("/api/v1/chat", json=ASK, headers=_mine(tenant="shop"))).json()
    stored = await services.turns.get(shop.id, answer["turn_id"])
    assert stored.status == "completed"
    turn = f"/api/v1/turns/{answer['turn_id']}"
    assert (await client.get(turn, headers=_mine(tenant=str(shop.id)))).status_code == 200
    assert (await client.get(turn, headers=_mine())).status_code == 404
    for claim in (None, "nobody"):
        assert (await client.get(turn, headers=_mine(tenant=claim))).status_code == 401


@only_file
async def test_what_is_wrong_with_a_token_is_said_but_not_what_would_help_a_forger(
    client: httpx.AsyncClient, url: str
) -> None:
    for credential, says in (
        (token(exp=int(time.time()) - 1, tenant="default"), "has expired"),
        (token(iss="https://evil.example/", tenant="default"), "another issuer"),
        (token(aud="other", tenant="default"), "another audience"),
        (token("stranger", kid="rsa", tenant="default"), "is not valid"),
        (token("stranger", tenant="default"), "is not valid"),
    ):
        refused = await client.post("/api/v1/chat", json=ASK, headers=bearer(credential))
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert says in refused.json()["detail"]
        assert credential not in refused.text
        with pytest.raises(InvalidStatus, match="403"):
            await connect(url.replace("http", "ws") + "/api/v1/chat/ws", additional_headers=bearer(credential))
    missing = await client.get("/api/v1/conversations", headers=_mine(scope="chat"))
    assert (missing.status_code, missing.json()["code"]) == (403, "forbidden")


@only_address
async def test_without_the_issuers_keys_nobody_is_let_in(client: httpx.AsyncClient, key_server: KeyServer) -> None:
    key_server.status = 500
    refused = await client.post("/api/v1/chat", json=ASK, headers=_mine())
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert refused.headers["retry-after"] == "1"
