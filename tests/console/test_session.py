"""Sign-in of browsers."""

import httpx
import pytest

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from tests.support.issuer import bearer

pytestmark = pytest.mark.settings(auth="api_key", host="0.0.0.0")

CONSOLE = {"X-Anamnesis-Console": "1"}


async def test_a_key_becomes_a_cookie_that_counts_only_with_the_header_and_below_the_api(
    client: httpx.AsyncClient, services: Services
) -> None:
    key, secret = await ApiKeys(services.database).create(DEFAULT_TENANT, "test", ["chat"])
    assert (await client.post("/console/session")).status_code == 401
    assert (await client.post("/console/session", headers=bearer("nonsense"))).status_code == 401
    signed_in = await client.post("/console/session", headers=bearer(secret))
    assert signed_in.status_code == 204
    cookie = signed_in.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie

    known = (await client.get("/api/v1/service", headers=CONSOLE)).json()
    limits = known["limits"]
    assert (limits["turns_per_user_per_minute"], limits["requests_per_tenant_per_minute"]) == (60, 3000)
    assert (known["scopes"], known["user_id"], known["auth"]) == (["chat"], None, "api_key")
    assert (await client.get("/api/v1/service")).status_code == 401
    assert (await client.get("/v1/models", headers=CONSOLE)).status_code == 401
    assert (await client.get("/api/v1/jobs", headers=CONSOLE)).status_code == 403
    body = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}
    assert (await client.post("/api/v1/chat", json=body, headers=CONSOLE)).status_code == 200

    assert (await client.delete("/console/session", headers=CONSOLE)).status_code == 204
    assert (await client.get("/api/v1/service", headers=CONSOLE)).status_code == 401
    await client.post("/console/session", headers=bearer(secret))
    assert (await client.get("/api/v1/service", headers=CONSOLE)).status_code == 200
    await ApiKeys(services.database).revoke(DEFAULT_TENANT, key.id)
    assert (await client.get("/api/v1/service", headers=CONSOLE)).status_code == 401
