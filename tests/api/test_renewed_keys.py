"""While a user's key is being renewed, what was sealed with the old one is still found by its digest."""

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT

pytestmark = pytest.mark.settings(encryption=True)

USER = "/api/v1/users/u-1"


def _renew(services: Services) -> None:
    vault = services.database.vault
    assert vault is not None
    vault.keys.renew(DEFAULT_TENANT, "u-1")


async def test_a_message_that_is_sent_again_is_known(client: httpx.AsyncClient, services: Services) -> None:
    body = {"user_id": "u-1", "session_id": "s-1", "message": "I like tea."}
    first = await client.post("/api/v1/chat", json=body, headers={"Idempotency-Key": "k-1"})
    _renew(services)
    again = await client.post("/api/v1/chat", json=body, headers={"Idempotency-Key": "k-1"})
    assert (again.status_code, again.json()) == (200, first.json())
    other = await client.post(
        "/api/v1/chat", json={**body, "message": "I like coffee."}, headers={"Idempotency-Key": "k-1"}
    )
    assert other.status_code != 200


async def test_a_resent_conversation_is_known_by_its_answers(
    client: httpx.AsyncClient, services: Services
) -> None:
    said = [{"role": "user", "content": "I like tea."}]
    body = {"model": "default", "user": "u-1"}
    first = await client.post("/v1/chat/completions", json={**body, "messages": said})
    _renew(services)
    said += [first.json()["choices"][0]["message"], {"role": "user", "content": "And coffee."}]
    await client.post("/v1/chat/completions", json={**body, "messages": said})
    assert len((await client.get("/api/v1/conversations")).json()["items"]) == 1


async def test_a_value_that_was_pinned_before_is_unpinned(client: httpx.AsyncClient, services: Services) -> None:
    await client.post("/api/v1/chat", json={"user_id": "u-1", "session_id": "s-1", "message": "Hello."})
    await client.put(f"{USER}/core-memory/human", json={"content": {"facts": ["likes tea"]}})
    [memory] = (await client.get(f"{USER}/memories")).json()["items"]
    for pinned in (True, False):
        done = await client.post(f"{USER}/memories/{memory['id']}/pin", json={"pinned": pinned})
        assert done.status_code == 204, done.text
        _renew(services)
    [memory] = (await client.get(f"{USER}/memories")).json()["items"]
    assert not memory["pinned"]
