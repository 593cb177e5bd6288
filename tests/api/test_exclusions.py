"""What a conversation never uses, and what one answer goes without."""

from typing import Any
from uuid import uuid4

import httpx

from tests.support.model_server import ModelServer, Reply
from tests.support.talking import say
from tests.support.transfer import LINES

LOST = "0190a000-0000-7000-8000-000000000001"


async def _recalled(client: httpx.AsyncClient, turn_id: str) -> list[dict[str, Any]]:
    why = (await client.get(f"/api/v1/turns/{turn_id}/why")).raise_for_status().json()
    items: list[dict[str, Any]] = why["recall"]["items"]
    return [each for each in items if each["text"] and "Bruno" in each["text"]]


async def _recalling(client: httpx.AsyncClient) -> tuple[dict[str, Any], dict[str, Any]]:
    """An answer that recalls what another conversation told, and what was recalled."""
    await say(client, "My dog is called Bruno.", "told")
    answer = await say(client, "What is my dog called?", "here")
    (item,) = [each for each in await _recalled(client, answer["turn_id"]) if each["shown"]]
    return answer, item


async def _exclude(client: httpx.AsyncClient, conversation_id: str, what: str) -> dict[str, Any]:
    path = f"/api/v1/conversations/{conversation_id}/exclusions"
    found: dict[str, Any] = (await client.post(path, json={"what": what})).raise_for_status().json()
    return found


async def test_what_is_excluded_is_not_recalled_in_that_conversation_alone(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    told = await say(client, "My dog is called Bruno.", "told")
    answer = await say(client, "What is my dog called?", "here")
    (item,) = [each for each in await _recalled(client, answer["turn_id"]) if each["shown"]]
    excluded = await _exclude(client, answer["conversation_id"], item["episode_id"])
    assert "Bruno" in excluded["text"]
    assert (excluded["memory_id"], excluded["message_id"]) == (item["episode_id"], None)

    again = await say(client, "What was the name of my dog?", "here")
    assert "Bruno" not in str(model_server.requests[-1].body)
    hits = await _recalled(client, again["turn_id"])
    assert {(each["shown"], each["reason"]) for each in hits} == {(False, "never used here")}
    elsewhere = await say(client, "What is my dog called?", "elsewhere")
    assert [each for each in await _recalled(client, elsewhere["turn_id"]) if each["shown"]]
    assert (await client.get(f"/api/v1/conversations/{told['conversation_id']}/exclusions")).json()["items"] == []


async def test_an_exclusion_is_listed_once_and_undone(client: httpx.AsyncClient) -> None:
    answer, item = await _recalling(client)
    message = item["sources"][0]["message_id"]
    excluded = await _exclude(client, answer["conversation_id"], message)
    assert await _exclude(client, answer["conversation_id"], message) == excluded
    path = f"/api/v1/conversations/{answer['conversation_id']}/exclusions"
    assert (await client.get(path)).json() == {"items": [excluded], "next": None}
    again = await say(client, "And what is my dog called?", "here")
    assert not [each for each in await _recalled(client, again["turn_id"]) if each["shown"]]

    assert (await client.delete(f"{path}/{excluded['id']}")).status_code == 204
    assert (await client.delete(f"{path}/{excluded['id']}")).status_code == 404
    third = await say(client, "So what is my dog called?", "new")
    assert [each for each in await _recalled(client, third["turn_id"]) if each["shown"]]


async def test_an_answer_given_again_without_a_memory_leaves_the_one_before(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await say(client, "My dog is called Bruno.", "told")
    model_server.default = Reply(["It is Bruno."])
    first = await say(client, "What is my dog called?", "here")
    (item,) = [each for each in await _recalled(client, first["turn_id"]) if each["shown"]]
    model_server.default = Reply(["I do not know."])
    second = await say(
        client, "What is my dog called?", "here", replaces=first["turn_id"], without=[item["episode_id"]]
    )
    assert "Bruno" not in str(model_server.requests[-1].body)
    assert second["answer"] == "I do not know."
    assert (await client.get(f"/api/v1/turns/{first['turn_id']}")).json()["answer"] == "It is Bruno."
    await say(client, "Is my dog called Bruno?", "here")  # the next turn uses it again
    assert "My dog is called Bruno." in str(model_server.requests[-1].body)


async def test_wrong_requests_are_refused_and_named(client: httpx.AsyncClient) -> None:
    answer = await say(client, "Hello", "here")
    path = f"/api/v1/conversations/{answer['conversation_id']}/exclusions"
    refused = await client.post(path, json={"what": str(uuid4())})
    assert (refused.status_code, "what" in refused.text) == (422, True)
    somebody = {"user_id": "u-2", "session_id": "s", "message": "I am somebody else."}
    other = (await client.post("/api/v1/chat", json=somebody)).json()
    theirs = (await client.get(f"/api/v1/conversations/{other['conversation_id']}/messages")).json()["items"]
    assert (await client.post(path, json={"what": theirs[0]["id"]})).status_code == 422
    assert (await client.post(f"/api/v1/conversations/{LOST}/exclusions", json={"what": LOST})).status_code == 404
    assert (await client.get(f"/api/v1/conversations/{LOST}/exclusions")).status_code == 404
    body = {"user_id": "u-1", "session_id": "here", "message": "Hello", "without": [LOST]}
    refused = await client.post("/api/v1/chat", json={**body, "replaces": answer["turn_id"]})
    assert (refused.status_code, "without" in refused.text, LOST in refused.text) == (422, True, True)
    turns = (await client.get(f"/api/v1/conversations/{answer['conversation_id']}/turns")).json()["items"]
    assert [(each["id"], each["branch_id"]) for each in turns] == [(answer["turn_id"], None)]


async def test_exclusions_are_exported_and_imported(client: httpx.AsyncClient) -> None:
    answer, item = await _recalling(client)
    await _exclude(client, answer["conversation_id"], item["episode_id"])
    body = {"content": "Likes tea", "episode_type": "preference"}
    tea = (await client.post("/api/v1/users/u-1/episodes", json=body)).raise_for_status().json()
    await _exclude(client, answer["conversation_id"], tea["id"])
    exported = (await client.get("/api/v1/users/u-1/export")).text
    assert exported.count('"kind":"exclusion"') == 3  # two messages of the turn, and the memory
    elsewhere = exported.replace('"user_id":"u-1"', '"user_id":"u-2"')
    report = (await client.post("/api/v1/import", content=elsewhere, headers=LINES)).json()
    assert (report["refused"], report["skipped"]) == (0, 0)
    assert (await client.get("/api/v1/users/u-2/export")).text == elsewhere
    again = (await client.post("/api/v1/import", content=elsewhere, headers=LINES)).json()
    assert (again["imported"], again["refused"]) == (0, 0)
    lost = next(line for line in elsewhere.splitlines() if '"exclusion"' in line).replace('"told"', '"lost"')
    refused = (await client.post("/api/v1/import", content=lost, headers=LINES)).json()
    assert refused["errors"][0]["reason"] == "its conversation, or what it excludes, is not stored"
