"""A promise is made, and kept once in its conversation, whatever happens meanwhile."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.model_server import ModelServer, Reply
from tests.support.talking import say

pytestmark = [pytest.mark.anyio, pytest.mark.settings(llm_model="large", small_llm_model="small")]

PATH = "/api/v1/users/u-1/promises"


async def make(client: httpx.AsyncClient, **values: Any) -> dict[str, Any]:
    """Make a promise over HTTP."""
    body = {"text": "call the dentist", "when": "tomorrow at nine", "timezone": "Europe/Berlin", **values}
    answer = await client.post(PATH, json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def keep(services: Services, now: datetime) -> int:
    """Find what is due at a moment, and keep it."""
    found = await services.database.fetch_without_tenant(
        "SELECT tenant_id, user_id FROM users_with_due_promises(%(now)s)", {"now": now}, tuple_row
    )
    for tenant_id, user_id in found:
        assert not await services.keeping.keep(tenant_id, user_id, now)
    return len(found)


async def test_it_is_kept_once_in_the_conversation_where_it_was_asked_for(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    first = await say(client, "Hello", "s-1")
    await say(client, "Hello", "s-2")
    made = await make(client, session_id="s-1")
    due = datetime.fromisoformat(made["when"])
    assert (due.hour, due.minute, made["state"]) == (9, 0, "open")
    assert await keep(services, due - timedelta(seconds=1)) == 0
    model_server.default = Reply(['{"done": false, "message": "You wanted to call the dentist."}'])
    assert await keep(services, due) == 1
    assert await keep(services, due + timedelta(minutes=1)) == 0
    page = (await client.get(f"/api/v1/conversations/{first['conversation_id']}/messages")).json()["items"]
    assert [(each["role"], each["content"]) for each in page[2:]] == [
        ("assistant", "You wanted to call the dentist.")
    ]
    [listed] = (await client.get(PATH)).json()["items"]
    assert (listed["state"], listed["kept_in"]) == ("kept", page[2]["id"])
    assert datetime.now(UTC)
    assert DEFAULT_TENANT
