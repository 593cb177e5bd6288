"""What is known of a user, as a list of statements."""

from typing import Any

import httpx

HELLO = {"user_id": "u-1", "session_id": "s-1"}

_MEMORIES = f"/api/v1/users/{HELLO['user_id']}/memories"


async def _say(client: httpx.AsyncClient, *messages: str) -> None:
    for message in messages:
        answer = await client.post("/api/v1/chat", json={**HELLO, "message": message})
        assert answer.status_code == 200, answer.text


async def _known(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    listed = (await client.get(_MEMORIES, params=query)).raise_for_status().json()
    found: list[dict[str, Any]] = listed["items"]
    return found


async def test_statements_are_listed_and_what_was_said_is_not(client: httpx.AsyncClient) -> None:
    await _say(client, "My dog is called Bruno.", "What is my dog called?", "Remember that I'm allergic to nuts.")
    (statement,) = await _known(client)
    assert statement["text"] == "I'm allergic to nuts"
    assert (statement["kind"], statement["field"], statement["replaced"]) == ("value", "facts", None)
    assert [each["content"] for each in statement["sources"]] == ["Remember that I'm allergic to nuts."]


async def test_a_statement_that_is_wrong_is_replaced_and_says_what_it_replaced(client: httpx.AsyncClient) -> None:
    await _say(client, "记住：我对花生过敏")
    (before,) = await _known(client)
    change = await client.post(f"{_MEMORIES}/{before['id']}/correct", json={"text": "我对花生和猕猴桃过敏"})
    assert change.status_code == 200, change.text
    (after,) = await _known(client)
    assert (after["text"], after["replaced"]) == ("我对花生和猕猴桃过敏", "我对花生过敏")
    undone = f"/api/v1/users/{HELLO['user_id']}/memory-operations/{change.json()['operation_id']}/undo"
    assert (await client.post(undone)).status_code == 200
    assert [each["text"] for each in await _known(client)] == ["我对花生过敏"]


async def test_a_statement_is_pinned_and_forgotten_by_its_id(client: httpx.AsyncClient) -> None:
    await _say(client, "Remember that my sister plays the tuba.")
    (statement,) = await _known(client)
    assert (await client.post(f"{_MEMORIES}/{statement['id']}/pin", json={})).status_code == 204
    assert [each["pinned"] for each in await _known(client)] == [True]
    asked = {"what": statement["id"]}
    forgotten = await client.post(f"/api/v1/users/{HELLO['user_id']}/memory/forget", json=asked)
    assert forgotten.json()["operation_id"] is not None
    assert await _known(client) == []
