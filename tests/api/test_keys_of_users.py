"""A key with a user acts for that user everywhere."""

import httpx
import pytest

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.caller import Scope
from services.identity.tenants import DEFAULT_TENANT
from tests.support.issuer import bearer

pytestmark = [pytest.mark.untraced, pytest.mark.settings(auth="api_key", host="0.0.0.0")]


async def _key(
    services: Services, *scopes: Scope, user: str | None = None, gateway: bool = False
) -> dict[str, str]:
    keys = ApiKeys(services.database)
    _, secret = await keys.create(DEFAULT_TENANT, "k", scopes, default_user=user, acts_for_headers=gateway)
    return bearer(secret)


async def test_it_opens_nothing_of_others(client: httpx.AsyncClient, services: Services) -> None:
    everybodys = await _key(services, "chat", "memory:read", "memory:write")
    for user in ("alice", "bob"):
        body = {"user_id": user, "session_id": "s", "message": f"I am {user}."}
        (await client.post("/api/v1/chat", json=body, headers=everybodys)).raise_for_status()
    alices = await _key(services, "chat", "memory:read", "memory:write", user="alice")
    forget = {"topic": "bob", "delete_messages": True}
    for path in ("export", "core-memory", "memory-operations", "episodes"):
        assert (await client.get(f"/api/v1/users/alice/{path}", headers=alices)).status_code == 200, path
        assert (await client.get(f"/api/v1/users/bob/{path}", headers=alices)).status_code == 404, path
    assert (await client.post("/api/v1/users/bob/erasures", json=forget, headers=alices)).status_code == 404
    body = {"user_id": "bob", "session_id": "s", "message": "Hello"}
    assert (await client.post("/api/v1/chat", json=body, headers=alices)).status_code == 404
    listed = (await client.get("/api/v1/conversations", headers=alices)).json()["items"]
    assert {each["user_id"] for each in listed} == {"alice"}
    said = {"model": "default", "user": "bob", "messages": [{"role": "user", "content": "Hi"}]}
    assert (await client.post("/v1/chat/completions", json=said, headers=alices)).status_code == 200
    bobs = (await client.get("/api/v1/conversations", params={"user_id": "bob"}, headers=everybodys)).json()[
        "items"
    ]
    assert len(bobs) == 1


@pytest.mark.settings(rate_limit_tenant_per_minute=5)
async def test_guessing_other_users_counts_towards_the_limit(
    client: httpx.AsyncClient, services: Services
) -> None:
    alices = await _key(services, "memory:read", user="alice")
    statuses: list[int] = []
    while 429 not in statuses and len(statuses) < 60:  # a slow machine may begin another minute meanwhile
        asked = await client.get(f"/api/v1/users/u-{len(statuses)}/episodes", headers=alices)
        statuses.append(asked.status_code)
    assert statuses[:5] == [404] * 5
    assert (set(statuses[5:-1]) <= {404}, statuses[-1]) == (True, 429)


async def test_a_key_that_only_writes_reads_through_no_preview(
    client: httpx.AsyncClient, services: Services
) -> None:
    every = await _key(services, "chat", "memory:read", "memory:write")
    body = {"user_id": "alice", "session_id": "s", "message": "Hello."}
    (await client.post("/api/v1/chat", json=body, headers=every)).raise_for_status()
    secret = {"content": {"facts": ["my secret is malcanary"]}}
    await client.put("/api/v1/users/alice/core-memory/human", json=secret, headers=every)
    writes = await _key(services, "memory:write")
    previews = {
        "memory/forget": {"what": "my secret", "dry_run": True},
        "forget": {"topic": "my secret", "preview": True},
        "erasures": {"topic": "my secret", "preview": True},
    }
    for path, asked in previews.items():
        refused = await client.post(f"/api/v1/users/alice/{path}", json=asked, headers=writes)
        assert refused.status_code == 403, path
        assert "memory:read" in refused.json()["detail"]
        assert "malcanary" not in refused.text
        shown = await client.post(f"/api/v1/users/alice/{path}", json=asked, headers=every)
        assert "malcanary" in shown.text
    shown = await client.get("/api/v1/users/alice/upkeep-preview", headers=writes)
    assert shown.status_code == 403
