"""Answers once more, edits, and branches that are taken up again, over `/api/v1`."""

from uuid import uuid4

import httpx

from tests.support.model_server import ModelServer
from tests.support.talking import say
from tests.support.transfer import LINES


async def _shown(client: httpx.AsyncClient, conversation_id: str) -> list[str]:
    listed = await client.get(f"/api/v1/conversations/{conversation_id}/messages")
    return [item["content"] for item in listed.json()["items"] if item["role"] == "user"]


async def test_a_message_comes_in_the_place_of_another_and_the_tail_comes_back(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await say(client, "One")
    second = await say(client, "My dog is called Bruno.")
    await say(client, "Three")
    conversation = f"/api/v1/conversations/{second['conversation_id']}"
    await say(client, "My cat is called Minka.", replaces=second["turn_id"])
    assert await _shown(client, second["conversation_id"]) == ["One", "My cat is called Minka."]
    assert "Bruno" not in str(model_server.requests[-1].body)
    (branch,) = (await client.get(f"{conversation}/branches")).json()["items"]
    assert (branch["begins_with"], branch["messages"], branch["reason"]) == ("My dog is called Bruno.", 4, "edit")
    turns = (await client.get(f"{conversation}/turns")).json()["items"]
    assert [turn["branch_id"] for turn in turns] == [None, branch["id"], branch["id"], None]
    switched = await client.post(f"{conversation}/branches/{branch['id']}/switch")
    assert [item["begins_with"] for item in switched.json()["items"]] == ["My cat is called Minka."]
    assert await _shown(client, second["conversation_id"]) == ["One", "My dog is called Bruno.", "Three"]
    await say(client, "What is my dog called?", session_id="s-2")
    assert "Bruno" in str(model_server.requests[-1].body)


async def test_only_a_turn_of_the_same_conversation_is_replaced(client: httpx.AsyncClient) -> None:
    first = await say(client, "One")
    for more in ({"session_id": "s-2"}, {"user_id": "u-2"}, {"replaces": str(uuid4())}):
        body = {"user_id": "u-1", "session_id": "s-1", "message": "x", "replaces": first["turn_id"], **more}
        refused = await client.post("/api/v1/chat", json=body)
        assert refused.status_code == 422
        assert refused.json()["detail"] == "replaces: is no turn of this conversation"
    await say(client, "Two", replaces=first["turn_id"])
    body = {"user_id": "u-1", "session_id": "s-1", "message": "x", "replaces": first["turn_id"]}
    assert "is on the branch" in (await client.post("/api/v1/chat", json=body)).json()["detail"]
    missing = await client.post(f"/api/v1/conversations/{first['conversation_id']}/branches/{uuid4()}/switch")
    assert missing.status_code == 404


async def test_branches_are_exported_and_imported(client: httpx.AsyncClient) -> None:
    first = await say(client, "One")
    await say(client, "Two", replaces=first["turn_id"])
    await say(client, "Three")
    exported = (await client.get("/api/v1/users/u-1/export")).text
    assert (await client.post("/api/v1/import", content=exported, headers=LINES)).json()["imported"] == 0
    moved = exported.replace('"u-1"', '"u-2"')
    assert (await client.post("/api/v1/import", content=moved, headers=LINES)).json()["refused"] == 0
    again = (await client.get("/api/v1/users/u-2/export")).text
    assert again.replace('"u-2"', '"u-1"') == exported
    (conversation,) = (await client.get("/api/v1/conversations?user_id=u-2")).json()["items"]
    assert await _shown(client, conversation["id"]) == ["Two", "Three"]
    branches = f"/api/v1/conversations/{conversation['id']}/branches"
    (branch,) = (await client.get(branches)).json()["items"]
    await client.post(f"{branches}/{branch['id']}/switch")
    assert await _shown(client, conversation["id"]) == ["One"]
