from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.model_server import ModelServer, Reply
from tests.support.turns import exchange

pytestmark = pytest.mark.untraced


async def test_conversations_and_messages_are_paged_without_gaps(
    client: httpx.AsyncClient, services: Services
) -> None:
    for number in range(5):
        await exchange(services.turns, f"question {number}", f"answer {number}", session_id=f"s-{number}")
    for number in range(3):
        turn = await exchange(services.turns, f"more {number}", "ok", session_id="s-0")

    sessions: list[str] = []
    after: str | None = ""
    while after is not None:
        page = (
            await client.get("/api/v1/conversations", params={"limit": 2} | ({"after": after} if after else {}))
        ).json()
        sessions += [item["session_id"] for item in page["items"]]
        after = page["next"]
    assert sessions == ["s-4", "s-3", "s-2", "s-1", "s-0"]

    contents: list[str] = []
    after = ""
    while after is not None:
        parameters = {"limit": 3} | ({"after": after} if after else {})
        page = (
            await client.get(f"/api/v1/conversations/{turn.conversation_id}/messages", params=parameters)
        ).json()
        contents += [item["content"] for item in page["items"]]
        after = page["next"]
    assert contents == ["question 0", "answer 0", "more 0", "ok", "more 1", "ok", "more 2", "ok"]


async def test_a_conversation_shows_whose_it_is(client: httpx.AsyncClient, services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi")
    found = (await client.get(f"/api/v1/conversations/{turn.conversation_id}")).json()
    assert found | {"created_at": ""} == {
        "id": str(turn.conversation_id),
        "session_id": "s-1",
        "user_id": "u-1",
        "expert": "default",
        "space": None,
        "title": "Hello",
        "pinned": False,
        "created_at": "",
    }
    others = (await client.get("/api/v1/conversations", params={"user_id": "u-2"})).json()
    assert others == {"items": [], "next": None}


async def test_a_removed_conversation_is_gone_and_its_user_stays(
    client: httpx.AsyncClient, services: Services
) -> None:
    turn = await exchange(services.turns, "Hello", "Hi")
    path = f"/api/v1/conversations/{turn.conversation_id}"
    assert (await client.delete(path, params={"keep_memories": "perhaps"})).status_code == 422
    removed = await client.delete(path)
    assert (removed.status_code, removed.json()["removed"]["messages"]) == (200, 2)
    assert removed.json()["keep_memories"] is False
    for gone in (path, f"{path}/messages", f"{path}/summary", f"/api/v1/turns/{turn.turn_id}"):
        assert (await client.get(gone)).status_code == 404
    assert (await client.delete(path)).json()["code"] == "not_found"
    assert (await client.get("/api/v1/users/u-1")).status_code == 200
    [entry] = (await client.get("/api/v1/users/u-1/memory-operations")).json()["items"]
    assert (entry["type"], entry["field"]) == ("conversation_delete", str(turn.conversation_id))


async def test_health_metrics_and_documentation_are_served(client: httpx.AsyncClient) -> None:
    await client.post("/api/v1/chat", json={"user_id": "u", "session_id": "s", "message": "Hello"})
    assert (await client.get("/healthz")).text == "ok"
    assert (await client.get("/api/v1/health")).text == "ok"
    front = await client.get("/")
    assert (front.status_code, front.headers["location"]) == (307, "console")
    ready = await client.get("/readyz")
    assert ready.status_code == 200
    states = {found["name"]: found["state"] for found in ready.json()["dependencies"]}
    assert states["postgres"] == "ok"
    assert states["milvus"] == "degraded"
    metrics = (await client.get("/metrics")).text
    for name in ("anamnesis_turns_total", "anamnesis_node_seconds_bucket", "anamnesis_first_token_seconds_count"):
        assert name in metrics
    assert (await client.get("/docs")).status_code == 200
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert "/api/v1/chat/stream" in paths


async def test_a_conversation_is_renamed_pinned_and_found_by_its_words(
    client: httpx.AsyncClient, services: Services
) -> None:
    bread = await exchange(services.turns, "How does rye bread rise?", "In warmth.", session_id="s-1")
    await exchange(services.turns, "Plan my week", "Gladly.", session_id="s-2")
    path = f"/api/v1/conversations/{bread.conversation_id}"

    changed = (await client.patch(path, json={"title": "  The loaf ", "pinned": True})).json()
    assert (changed["title"], changed["pinned"]) == ("The loaf", True)
    assert (await client.patch(path, json={})).json() == changed

    async def found(**sought: Any) -> list[str]:
        answer = await client.get("/api/v1/conversations", params={"user_id": "u-1", **sought})
        return [item["session_id"] for item in answer.json()["items"]]

    assert await found(contains="LOAF") == await found(contains="WARMTH") == await found(pinned=True) == ["s-1"]
    assert await found(contains="week") == await found(pinned=False) == ["s-2"]
    assert await found(contains="100%") == []
    assert (await client.patch(path, json={"pinned": False})).json()["pinned"] is False
    assert (await client.patch(path, json={"title": " "})).status_code == 422
    assert (await client.get("/api/v1/conversations", params={"contains": "rye"})).status_code == 422


@pytest.mark.settings(small_llm_model="small")
async def test_the_small_model_names_a_conversation_by_its_first_exchange(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "How does rye bread rise in a cold kitchen?", "In warmth.")
    path = f"/api/v1/conversations/{turn.conversation_id}"
    long = Reply(["A name that is much too long for any list of conversations, whoever reads it"])
    model_server.script(long, Reply(["“Rye bread in the cold”."]), model="small")
    named = await client.post(f"{path}/name")
    assert named.json()["title"] == "Rye bread in the cold"
    assert "How does rye bread rise" in str(model_server.requests[-1].prompt)
    asked = len(model_server.requests)
    assert (await client.post(f"{path}/name")).json() == named.json()
    assert len(model_server.requests) == asked  # it has a name
    await services.usage.write()
    purposes = (await client.get("/api/v1/usage", params={"by": "purpose"})).json()
    assert "conversation_name" in str(purposes)
