"""Episodes over HTTP."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from services.bootstrap import Services
from services.engines import Engines
from tests.support.turns import exchange

pytestmark = pytest.mark.anyio

EPISODES = "/api/v1/users/u-1/episodes"


@pytest.fixture
def engines(engines: Engines, milvus_uri: str) -> Engines:
    """With a Milvus that answers."""
    return replace(engines, milvus_uri=milvus_uri)


async def _search(client: httpx.AsyncClient, query: str, **more: Any) -> list[dict[str, Any]]:
    answer = await client.post(f"{EPISODES}/search", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    assert answer.json()["degraded"] == []
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


@pytest.mark.parametrize("indexed", [False, True])
async def test_what_was_said_is_found_with_its_messages(
    client: httpx.AsyncClient, services: Services, indexed: bool
) -> None:
    turn = await exchange(services.turns, "My dog is called Bruno.", "What a fine name.")
    await exchange(services.turns, "The weather is dreadful.", "Take an umbrella.", session_key="s-2")
    if indexed:
        assert await services.memory.indexing.index_waiting() == 2
    first = (await _search(client, "What is my dog called?"))[0]
    assert first["content"] == "user: My dog is called Bruno.\nassistant: What a fine name."
    assert (first["episode_type"], first["importance"]) == ("turn", pytest.approx(0.4))
    assert first["score"] > 0
    assert [(source["message_id"], source["role"], source["content"]) for source in first["sources"]] == [
        (str(turn.user_message_id), "user", "My dog is called Bruno."),
        (str(turn.answer_message_id), "assistant", "What a fine name."),
    ]
    assert datetime.fromisoformat(first["created_at"]).tzinfo is not None


async def test_a_memory_is_written_found_by_type_and_removed(
    client: httpx.AsyncClient, services: Services
) -> None:
    await exchange(services.turns, "I like tea", "Noted")
    written = await client.post(EPISODES, json={"content": " prefers green tea ", "episode_type": "preference"})
    assert written.status_code == 201
    assert written.json() == {
        "id": written.json()["id"],
        "content": "prefers green tea",
        "episode_type": "preference",
        "importance": 0.8,
    }
    (found,) = await _search(client, "tea", episode_type="preference")
    assert (found["id"], found["sources"]) == (written.json()["id"], [])

    path = f"{EPISODES}/{found['id']}"
    assert (await client.delete(path)).status_code == 204
    assert await _search(client, "tea", episode_type="preference") == []
    assert (await client.delete(path)).status_code == 404
    operations = (await client.get("/api/v1/users/u-1/memory-operations")).json()["items"]
    assert [each["type"] for each in operations] == ["episode_delete", "episode_insert"]
    assert operations[1]["new_value"]["content"] == "prefers green tea"
    assert operations[0]["trigger"]["actor"] == "user"


async def test_a_removed_turn_is_not_found_and_its_messages_stay(
    client: httpx.AsyncClient, services: Services
) -> None:
    turn = await exchange(services.turns, "My dog is called Bruno.", "What a fine name.")
    await services.memory.indexing.index_waiting()
    (found,) = await _search(client, "dog")
    assert (await client.delete(f"{EPISODES}/{found['id']}")).status_code == 204
    assert await _search(client, "dog") == []
    messages = await client.get(f"/api/v1/conversations/{turn.conversation_id}/messages")
    assert len(messages.json()["items"]) == 2


async def test_a_search_is_narrowed_to_a_conversation_and_a_time(
    client: httpx.AsyncClient, services: Services
) -> None:
    one = await exchange(services.turns, "tea in the morning", "yes")
    await exchange(services.turns, "tea in the evening", "yes", session_key="s-2")
    assert len(await _search(client, "tea")) == 2
    (found,) = await _search(client, "tea", conversation_id=str(one.conversation_id))
    assert found["content"].startswith("user: tea in the morning")
    middle = (await _search(client, "evening"))[0]["created_at"]
    assert [each["content"] for each in await _search(client, "tea", until=middle)] == [
        "user: tea in the morning\nassistant: yes"
    ]
    assert [each["content"] for each in await _search(client, "tea", since=middle)] == [
        "user: tea in the evening\nassistant: yes"
    ]
    assert await _search(client, "tea", conversation_id=str(uuid4())) == []


async def test_a_question_that_names_a_day_is_answered_from_that_day(client: httpx.AsyncClient) -> None:
    lines = [
        {"user_id": "u-1", "session_id": f"d-{day}", "role": "user", "content": f"我读了一本书，第{day}本",
         "created_at": f"2026-05-{day:02d}T23:30:00+08:00", "external_id": f"m-{day}"}
        for day in range(1, 6)
    ]  # fmt: skip
    body = "\n".join(httpx.Request("POST", "http://x", json=line).content.decode() for line in lines)
    headers = {"Content-Type": "application/x-ndjson"}
    assert (await client.post("/api/v1/import", content=body, headers=headers)).json()["imported"] == 5
    found = await _search(client, "5月3号我读了什么书？", asked_at="2026-06-01T00:00:00Z")
    assert [source["external_id"] for each in found for source in each["sources"]] == ["m-3"]
    assert len(await _search(client, "我读了什么书？")) == 5
    assert len(await _search(client, "5月20号我读了什么书？", asked_at="2026-06-01T00:00:00Z")) == 5


async def test_a_reference_back_is_understood_from_what_was_said_before(
    client: httpx.AsyncClient, services: Services
) -> None:
    await exchange(services.turns, "我最喜欢的导演是诺兰，他拍了盗梦空间", "好导演")
    await exchange(services.turns, "邻居的猫很吵", "真辛苦", session_key="s-2")
    recent = [{"role": "user", "content": "聊聊盗梦空间的导演吧"}, {"role": "assistant", "content": "好的"}]
    found = await _search(client, "刚才提到的那个人是谁？", recent=recent)
    assert "诺兰" in found[0]["content"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": " "}, "query"),
        ({"query": "a\x00b"}, "query"),
        ({"query": "half a \ud800 character"}, "query"),
        ({"query": "x" * 8001}, "query"),
        ({"query": "x", "top_k": 0}, "top_k"),
        ({"query": "x", "top_k": 101}, "top_k"),
        ({"query": "x", "episode_type": '" or 1==1 --'}, "episode_type"),
        ({"query": "x", "conversation_id": '" or 1==1 --'}, "conversation_id"),
        ({"query": "x", "since": "2026-01-01T00:00:00"}, "since"),
        ({"query": "x", "more": 1}, "more"),
    ],
)
async def test_a_wrong_search_is_refused_with_the_field(
    client: httpx.AsyncClient, services: Services, body: dict[str, Any], field: str
) -> None:
    await exchange(services.turns, "Hello", "Hi")
    as_json = {"Content-Type": "application/json"}
    answer = await client.post(f"{EPISODES}/search", content=json.dumps(body), headers=as_json)
    assert answer.status_code == 422
    assert field in answer.text


async def test_an_unknown_user_or_expert_has_no_memory(client: httpx.AsyncClient, services: Services) -> None:
    assert (await client.post(f"{EPISODES}/search", json={"query": "x"})).status_code == 404
    await exchange(services.turns, "Hello", "Hi")
    assert (await client.post(f"{EPISODES}/search", json={"query": "x", "expert": "nobody"})).status_code == 404
    assert (await client.post(EPISODES, json={"content": "x", "expert": "nobody"})).status_code == 404
    assert (await client.delete(f"{EPISODES}/{uuid4()}")).status_code == 404
