"""Why an answer is as it is: what its prompt showed, what was recalled, and nothing that was forgotten."""

import json
from typing import Any

import httpx

from tests.support.talking import say


async def _why(client: httpx.AsyncClient, turn_id: str) -> dict[str, Any]:
    why: dict[str, Any] = (await client.get(f"/api/v1/turns/{turn_id}/why")).raise_for_status().json()
    return why


async def test_an_answer_is_explained_down_to_the_messages_that_it_drew_on(client: httpx.AsyncClient) -> None:
    told = await say(client, "My dog is called Bruno.", "first")
    answer = await say(client, "What is my dog called?", "second")
    why = await _why(client, answer["turn_id"])
    assert why["texts"] == "kept"
    sections = {each["name"]: each for each in why["sections"]}
    assert "Bruno" in sections["recall"]["text"]
    assert sections["system"]["text"]
    assert all(each["tokens"] > 0 for each in why["sections"])
    (item,) = [each for each in why["recall"]["items"] if each["shown"] and "Bruno" in each["text"]]
    assert item["ranks"]
    assert item["reason"] is None
    assert item["conversation_id"] == told["conversation_id"]
    assert "My dog is called Bruno." in [each["content"] for each in item["sources"]]
    assert {"route", "generate"} <= {each["name"] for each in why["nodes"]}
    (made,) = [each for each in why["lineage"] if each["id"] == item["episode_id"]]
    assert (made["section"], made["kind"], made["origin"], made["source_count"]) == (
        "recall",
        "episode",
        "assistant",
        2,
    )


async def test_sections_name_the_origin_maker_and_sources_of_what_they_show(client: httpx.AsyncClient) -> None:
    await say(client, "Remember that I live in Lisbon.", "first")
    imported = {"kind": "core_memory", "user_id": "u-1", "section": "work", "content": {"trade": "baker"}}
    line = json.dumps(imported).encode()
    await client.post("/api/v1/import", content=line, headers={"content-type": "application/x-ndjson"})
    answer = await say(client, "Where do I live?", "second")
    lineage = (await _why(client, answer["turn_id"]))["lineage"]
    core = {each["text"]: each for each in lineage if each["kind"] == "core_memory"}
    assert (core["human"]["section"], core["human"]["origin"], core["human"]["made_by"]["actor"]) == (
        *("core_memory", "user", "user"),
    )
    assert [each["text"] for each in core["human"]["sources"]] == ["Remember that I live in Lisbon."]
    assert core["work"]["origin"] == "import"


async def test_what_is_forgotten_is_in_no_explanation_any_more(client: httpx.AsyncClient) -> None:
    await say(client, "My dog is called Bruno.", "first")
    answer = await say(client, "What is my dog called?", "second")
    path, what = "/api/v1/users/u-1/memory/forget", {"what": "my dog is called Bruno"}
    preview = (await client.post(path, json={**what, "dry_run": True})).raise_for_status().json()
    assert preview["operation_id"] is None
    assert preview["affected"]["messages"] >= 1
    assert (await client.post(path, json=what)).json()["operation_id"]
    why = await _why(client, answer["turn_id"])
    assert why["texts"] == "withdrawn"
    assert "Bruno" not in str([why["sections"], [each for each in why["recall"]["items"] if each["shown"]]])
