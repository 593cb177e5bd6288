"""Episodes over HTTP."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from services.bootstrap import Services
from tests.support.talking import say
from tests.support.transfer import LINES, message, ndjson
from tests.support.turns import exchange

pytestmark = [pytest.mark.indexed, pytest.mark.untraced]

EPISODES = "/api/v1/users/u-1/episodes"


async def _search(client: httpx.AsyncClient, query: str, **more: Any) -> list[dict[str, Any]]:
    answer = await client.post(f"{EPISODES}/search", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    assert answer.json()["degraded"] == []
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_what_was_said_is_found_with_its_messages(client: httpx.AsyncClient, services: Services) -> None:
    turn = await exchange(services.turns, "My dog is called Bruno.", "What a fine name.")
    await exchange(services.turns, "The weather is dreadful.", "Take an umbrella.", session_id="s-2")
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


@pytest.mark.traced
async def test_an_unknown_user_or_expert_has_no_memory(client: httpx.AsyncClient, services: Services) -> None:
    assert (await client.post(f"{EPISODES}/search", json={"query": "x"})).status_code == 404
    await exchange(services.turns, "Hello", "Hi")
    assert (await client.post(f"{EPISODES}/search", json={"query": "x", "expert": "nobody"})).status_code == 404
    assert (await client.post(EPISODES, json={"content": "x", "expert": "nobody"})).status_code == 404
    assert (await client.delete(f"{EPISODES}/{uuid4()}")).status_code == 404


async def test_episodes_are_listed_newest_first_and_narrowed(
    client: httpx.AsyncClient, services: Services
) -> None:
    one = await exchange(services.turns, "My dog is called Bruno.", "What a fine name.")
    await exchange(services.turns, "我养了一只猫", "真好", session_id="s-2")
    written = await client.post(EPISODES, json={"content": "prefers GREEN tea", "episode_type": "preference"})

    async def listed(**query: Any) -> list[str]:
        answer = await client.get(EPISODES, params=query)
        assert answer.status_code == 200, answer.text
        return [item["content"] for item in answer.json()["items"]]

    dog, cat = "user: My dog is called Bruno.\nassistant: What a fine name.", "user: 我养了一只猫\nassistant: 真好"
    assert await listed() == ["prefers GREEN tea", cat, dog]
    assert await listed(contains="green") == ["prefers GREEN tea"]
    assert await listed(contains="一只猫") == [cat]
    assert await listed(contains="%") == []
    assert await listed(episode_type="turn", conversation_id=str(one.conversation_id)) == [dog]
    assert await listed(origin="assistant_said") == []
    assert await listed(expert="nobody") == []
    pages = [await client.get(EPISODES, params={"limit": 2})]
    pages.append(await client.get(EPISODES, params={"limit": 2, "after": pages[0].json()["next"]}))
    assert [len(page.json()["items"]) for page in pages] == [2, 1]
    middle = pages[0].json()["items"][1]["created_at"]
    assert await listed(since=middle) == ["prefers GREEN tea", cat]
    assert await listed(until=middle) == [dog]
    whole = (await client.get(f"{EPISODES}/{written.json()['id']}")).json()
    assert (whole["expert"], whole["origin"], whole["sources"]) == ("default", "user_said", [])


async def test_an_edited_memory_is_found_as_it_is_now(client: httpx.AsyncClient, services: Services) -> None:
    await exchange(services.turns, "Hello", "Hi")
    path = f"{EPISODES}/{(await client.post(EPISODES, json={'content': 'plays the cello'})).json()['id']}"
    await services.memory.indexing.index_waiting()
    change = {"content": "plays the oboe", "importance": 0.9, "episode_type": "outcome"}
    edited = await client.patch(path, json=change)
    assert edited.status_code == 200, edited.text
    assert {name: edited.json()[name] for name in change} == {**change, "importance": pytest.approx(0.9)}
    assert [each["content"] for each in await _search(client, "oboe", episode_type="outcome")] == [
        "plays the oboe"
    ]
    assert not any("cello" in each["content"] for each in await _search(client, "cello"))
    operations = (await client.get("/api/v1/users/u-1/memory-operations")).json()["items"]
    assert (operations[0]["type"], operations[0]["expert"]) == ("episode_update", "default")
    assert operations[0]["old_value"]["content"] == "plays the cello"
    assert operations[0]["new_value"]["content"] == "plays the oboe"
    assert (await client.patch(path, json={"content": "plays the oboe"})).status_code == 200
    assert len((await client.get("/api/v1/users/u-1/memory-operations")).json()["items"]) == len(operations)


@pytest.mark.traced
async def test_a_turn_is_not_rewritten_and_the_error_says_what_to_do(
    client: httpx.AsyncClient, services: Services
) -> None:
    await exchange(services.turns, "Hello", "Hi")
    [item] = (await client.get(EPISODES)).json()["items"]
    refused = await client.patch(f"{EPISODES}/{item['id']}", json={"content": "Goodbye"})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "cannot be rewritten" in refused.json()["detail"]
    assert "nothing to change" in (await client.patch(f"{EPISODES}/{item['id']}", json={})).json()["detail"]
    assert (await client.patch(f"{EPISODES}/{uuid4()}", json={"importance": 1})).status_code == 404
    assert (await client.get(f"{EPISODES}/{uuid4()}")).status_code == 404


async def test_questions_beside_answers_count_for_what_a_prompt_may_show(client: httpx.AsyncClient) -> None:
    asked = f"Which climbing hall do you recommend on a rainy day, {'far from the noise of the city, ' * 3}please?"
    answered = "For a rainy day I recommend the climbing hall number {}, {}where it is dry."
    lines = [
        message(number + 2 * at, session_id=f"s-{at}", content=content)
        for at in range(8)
        for number, content in ((1, asked), (2, answered.format(at, "with its high walls and long ropes, " * 8)))
    ]
    await client.post("/api/v1/import", content=ndjson(*lines), headers=LINES)
    answer = await say(client, "Which climbing hall did you recommend for a rainy day?", "s-now", debug=True)
    section, shown = answer["context_report"]["tokens"]["recall"], answer["context_report"]["recall"]["shown"]
    heading_and_dates = 30 + 10 * len(shown)
    assert 300 < section <= 600 + heading_and_dates
