"""Core memory over HTTP, and through conversations: what was remembered in one is known in the next."""

from functools import partial
from typing import Any

import httpx
import pytest
from uuid_utils.compat import uuid7

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.operations import Trigger
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.talking import say
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

_say = partial(say, debug=True)

ADDRESS = "/api/v1/users/u-1/core-memory"


def _remembers(**content: Any) -> tuple[Reply, Reply]:
    call = ToolCall("core_memory_update", {"section": "human", "content": content})
    return Reply([], [call]), Reply(["Noted."])


async def test_an_addition_stands_in_the_tail_and_the_beginning_stays(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(*_remembers(name="Wang", home="lives in Xi'an"))
    await _say(client, "I am Wang.", "s-0")
    await _say(client, "Hello", "s-1")
    model_server.script(*_remembers(preferences=["likes tea"]))
    await _say(client, "I like tea.", "s-1")
    before = model_server.requests[-1].prompt
    done = await _say(client, "What do I like?", "s-1")
    prompt = model_server.requests[-1].prompt
    report = done["context_report"]
    assert prompt[0] == before[0]
    assert "likes tea" not in prompt[0][1]
    assert "likes tea" in prompt[-2][1]
    assert (report["epoch"], report["prefix"]["share"] > 0.5) == (1, True)
    assert {"core_memory", "core_memory_changes"} <= set(report["tokens"])
    assert done["degraded"] == []


@pytest.mark.traced
async def test_a_section_is_put_read_rolled_back_and_forgotten(client: httpx.AsyncClient) -> None:
    await _say(client, "Hello", "s-1")
    assert (await client.get(ADDRESS)).json() == {"items": [], "next": None}
    put = await client.put(f"{ADDRESS}/human", json={"content": {"name": "Wang", "likes": ["tea"]}})
    assert put.status_code == 200
    assert put.json() | {"updated_at": "", "validity": []} == {
        "section": "human",
        "content": {"name": "Wang", "likes": ["tea"]},
        "version": 1,
        "updated_at": "",
        "validity": [],
        "pinned": [],
    }
    put = await client.put(f"{ADDRESS}/human", json={"content": {"name": "Li"}, "expected_version": 1})
    assert (put.json()["version"], put.json()["content"]) == (2, {"name": "Li"})
    stale = await client.put(f"{ADDRESS}/human", json={"content": {}, "expected_version": 1})
    assert (stale.status_code, stale.json()["code"]) == (409, "conflict")
    assert (await client.get(ADDRESS)).json()["items"] == [put.json()]

    first = (await client.get(f"{ADDRESS}/human/history", params={"limit": 1})).json()
    assert (first["items"][0]["new"], first["next"]) == ({"name": "Li"}, "2")
    rest = (await client.get(f"{ADDRESS}/human/history", params={"after": first["next"]})).json()
    assert [(item["version"], item["old"], item["actor"]) for item in rest["items"]] == [(1, None, "user")]
    assert rest["next"] is None

    back = await client.post(f"{ADDRESS}/human/rollback", json={"version": 1})
    assert (back.json()["version"], back.json()["content"]) == (3, {"name": "Wang", "likes": ["tea"]})
    assert (await client.delete(f"{ADDRESS}/human")).status_code == 204
    for gone in (await client.delete(f"{ADDRESS}/human"), await client.get(f"{ADDRESS}/human/history")):
        assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


async def test_what_memory_did_is_paged_newest_first(client: httpx.AsyncClient, services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi")
    owner = Owner(turn.tenant_id, turn.user_id, turn.expert_id)
    for number in range(5):
        await services.memory.core.update(owner, "human", {"number": number}, Trigger("filing"))
    seen: list[Any] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = (await client.get("/api/v1/users/u-1/memory-operations", params=query)).json()
        seen += [(item["new_value"]["number"], item["type"], item["expert"]) for item in page["items"]]
        if page["next"] is None:
            break
        query["after"] = page["next"]
    assert seen == [(number, "core_memory_update", "default") for number in range(4, -1, -1)]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "human", {"content": {"a": "x" * 5000}}, 422),
        ("PUT", "human", {"content": {"a": "b\x00"}}, 422),
        ("PUT", "human", {"content": ["a"]}, 422),
        ("PUT", "human", {"content": {"a": [[[[[[[[[[1]]]]]]]]]]}}, 422),
        ("PUT", "human", {"content": {}, "expected_version": -1}, 422),
        ("PUT", "human", {}, 422),
        ("PUT", "a%20b", {"content": {}}, 422),
        ("PUT", "human?expert=nobody", {"content": {}}, 404),
        ("POST", "human/rollback", {"version": 0}, 422),
        ("POST", "human/rollback", {"version": 1}, 404),
        ("GET", "human/history?after=x", None, 422),
        ("DELETE", "persona", None, 404),
    ],
)
async def test_what_is_wrong_is_refused_and_nothing_is_stored(
    shared_client: httpx.AsyncClient, shared_services: Services, method: str, path: str, body: Any, status: int
) -> None:
    await exchange(shared_services.turns, "Hello", "Hi")
    answer = await shared_client.request(method, f"{ADDRESS}/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert (await shared_client.get(ADDRESS)).json()["items"] == []


async def test_an_erasure_takes_what_redis_holds_of_core_memory(
    client: httpx.AsyncClient, services: Services
) -> None:
    await _say(client, "Hello", "s-1")
    await client.put(f"{ADDRESS}/human", json={"content": {"name": "Wang"}})
    assert len(await services.redis.keys("core:*")) == 1
    removed = (await client.delete("/api/v1/users/u-1")).json()["removed"]
    assert removed["redis"]["core_memory"] == 1
    counts = [removed["postgresql"][f"core_memory_{kind}"] for kind in ("blocks", "history", "generations")]
    assert counts == [1, 1, 1]
    assert await services.redis.keys("core:*") == []
    turn = await exchange(services.turns, "Hello", "Hi")
    fresh = Owner(DEFAULT_TENANT, turn.user_id, turn.expert_id)
    assert await services.memory.core.for_turn(fresh, None) == {}
    assert await services.memory.core.for_turn(Owner(DEFAULT_TENANT, uuid7(), turn.expert_id), None) == {}
