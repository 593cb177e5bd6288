"""The store over HTTP: exact values, the log, isolation, export and erasure."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from services.bootstrap import Services
from services.identity.caller import Scope
from services.identity.tenants import DEFAULT_TENANT, Tenants

Operation = dict[str, Any]


def put(key: str, value: Any, *namespace: str, **more: Any) -> Operation:
    return {"op": "put", "namespace": list(namespace or ("notes",)), "key": key, "value": value, **more}


def get(key: str, *namespace: str, **more: Any) -> Operation:
    return {"op": "get", "namespace": list(namespace or ("notes",)), "key": key, **more}


def search(*prefix: str, **more: Any) -> Operation:
    return {"op": "search", "namespace_prefix": list(prefix), **more}


async def batch(client: httpx.AsyncClient, *operations: Operation, user: str = "u-1", **more: Any) -> list[Any]:
    body = {"user_id": user, "operations": list(operations), **more}
    answer = await client.post("/api/v1/store/batch", json=body)
    assert answer.status_code == 200, answer.text
    results: list[Any] = answer.json()["results"]
    return results


async def refusal(client: httpx.AsyncClient, *operations: Operation) -> str:
    answer = await client.post("/api/v1/store/batch", json={"user_id": "u-1", "operations": list(operations)})
    assert answer.status_code == 422, answer.text
    return str(answer.json()["detail"])


VALUES = [
    {},
    {"b": 1, "a": [1, 1.0, 1e300, -0.0, 12345678901234567890123, True, None, ""], "嵌套": {"x": {"y": "忘"}}},
    {"text": 'quote " back\\slash \n tab\t nul \u0000 emoji 👩‍🚀', "": "an empty key"},
]


async def test_a_value_comes_back_as_it_was_given(client: httpx.AsyncClient) -> None:
    keys = [str(number) for number in range(len(VALUES))]
    assert await batch(client, *(put(key, value) for key, value in zip(keys, VALUES, strict=True))) == [None] * 3
    body = {"user_id": "u-1", "operations": [get(key) for key in keys]}
    items = json.loads((await client.post("/api/v1/store/batch", json=body)).text)["results"]
    # With the order of its keys and the form of its numbers.
    assert [json.dumps(item["value"]) for item in items] == [json.dumps(value) for value in VALUES]
    assert [(item["namespace"], item["key"]) for item in items] == [(["notes"], key) for key in keys]
    for item in items:
        assert datetime.fromisoformat(item["created_at"]) <= datetime.fromisoformat(item["updated_at"])


WRONG = [
    (put("a", {}, "with.period"), "namespace"),
    (put("a", {}, ""), "namespace"),
    ({"op": "put", "namespace": [], "key": "a", "value": {}}, "namespace"),
    (put("", {}), "key"),
    (put("a\x00", {}), "key"),
    (put("a", [1]), "value"),
    (put("a", {"x": "y" * 1_000_001}), "value"),
    (put("a", {}, ttl=0), "ttl"),
    (put("a", {}, index=[""]), "index"),
    (search(filter={"n": {"$near": 1}}), "$near"),
    (search(limit=-1), "limit"),
    ({"op": "burn"}, "op"),
]


async def test_what_is_wrong_is_named(client: httpx.AsyncClient) -> None:
    await batch(client, put("there", {"n": 1}))
    for operation, named in WRONG:
        assert named in await refusal(client, put("other", {}), operation)
    [other] = await batch(client, get("other"))
    assert other is None  # nothing of the batch was done


async def _operations(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    listed = (await client.get("/api/v1/users/u-1/memory-operations")).json()["items"]
    return [each for each in listed if each["type"].startswith("store_")]


async def _undo(client: httpx.AsyncClient, operation: dict[str, Any]) -> int:
    path = f"/api/v1/users/u-1/memory-operations/{operation['id']}/undo"
    return (await client.post(path)).status_code


async def test_every_write_is_logged_and_can_be_undone(client: httpx.AsyncClient) -> None:
    first = {"n": 1.0, "text": 'Ünï "忘"', "card": "4111 1111 1111 1111"}
    await batch(client, put("a", first, index=["text"]))
    await batch(client, put("a", {"n": 2}))
    await batch(client, put("a", None))
    gone, changed, made = await _operations(client)
    assert [each["type"] for each in (gone, changed, made)] == ["store_delete", "store_put", "store_put"]
    assert made["field"] == "notes/a"
    assert await _undo(client, changed) == 409  # it was removed since
    assert await _undo(client, gone) == 200
    assert (await batch(client, get("a")))[0]["value"] == {"n": 2}
    assert await _undo(client, gone) == 200  # once is enough
    await batch(client, put("a", None))
    await batch(client, put("a", first))
    await batch(client, put("a", {"n": 3}))
    assert await _undo(client, (await _operations(client))[0]) == 200
    assert (await batch(client, get("a")))[0]["value"] == first
    await batch(client, put("new", {}))
    assert await _undo(client, (await _operations(client))[0]) == 200
    assert await batch(client, get("new")) == [None]


async def test_spaces_and_users_are_apart(client: httpx.AsyncClient) -> None:
    await batch(client, put("a", {"n": 1}))
    await batch(client, put("a", {"n": 2}), space="work")
    await batch(client, put("a", {"n": 3}), user="u-2")
    for more, n in (({}, 1), ({"space": "work"}, 2), ({"user": "u-2"}, 3)):
        assert [each["value"]["n"] for each in (await batch(client, search(), **more))[0]] == [n]
    assert await batch(client, get("a"), space="nowhere") == [None]
    assert await batch(client, search(query="n"), user="nobody") == [[]]


@pytest.mark.settings(auth="api_key")
async def test_tenants_and_scopes(client: httpx.AsyncClient, services: Services) -> None:
    other = await Tenants(services.database).create("other")
    keys = {}
    given: list[tuple[str, UUID, list[Scope]]] = [
        ("reads", DEFAULT_TENANT, ["memory:read"]),
        ("writes", DEFAULT_TENANT, ["memory:write"]),
        ("chats", DEFAULT_TENANT, ["chat"]),
        ("other", other.id, ["memory:read", "memory:write"]),
    ]
    for name, tenant, scopes in given:
        _, key = await services.api_keys.create(tenant, name, scopes)
        keys[name] = {"Authorization": f"Bearer {key}"}

    async def send(name: str, *operations: Operation) -> httpx.Response:
        body = {"user_id": "u-1", "operations": list(operations)}
        return await client.post("/api/v1/store/batch", json=body, headers=keys.get(name, {}))

    assert (await send("", get("a"))).status_code == 401
    assert (await send("writes", put("a", {"n": 1}))).status_code == 200
    assert (await send("reads", get("a"))).json()["results"][0]["value"] == {"n": 1}
    for name, operations in (
        ("reads", [put("a", {})]),
        ("reads", [get("a"), put("a", {})]),
        ("writes", [get("a")]),
        ("writes", [search(), put("a", {})]),
        ("chats", [get("a")]),
        ("chats", [put("a", {})]),
    ):
        assert (await send(name, *operations)).status_code == 403
    assert (await send("other", get("a"), search())).json()["results"] == [None, []]
    await send("other", put("a", {"n": 2}))
    assert (await send("reads", get("a"))).json()["results"][0]["value"] == {"n": 1}


async def test_an_export_holds_it_and_an_import_brings_it_back(client: httpx.AsyncClient) -> None:
    value = {"n": 1.0, "text": 'Ünï "忘" \u0000', "card": "4111 1111 1111 1111"}
    await batch(client, put("a", value, "notes", "x", index=["text"]), put("b", {"n": 2}, ttl=60))
    await batch(client, put("c", {"n": 3}), space="work")
    lines = (await client.get("/api/v1/users/u-1/export")).text
    assert lines.count('"kind":"store_item"') == 3
    of_space = (await client.get("/api/v1/users/u-1/export", params={"space": "work"})).text
    assert of_space.count('"kind":"store_item"') == 1
    [before] = await batch(client, get("a", "notes", "x"))
    assert (await client.delete("/api/v1/users/u-1")).status_code == 200
    assert await batch(client, search()) == [[]]
    headers = {"content-type": "application/x-ndjson"}
    report = (await client.post("/api/v1/import", content=lines.encode(), headers=headers)).json()
    assert report["refused"] == 0, report
    assert await batch(client, get("a", "notes", "x")) == [before]
    assert [len(each) for each in await batch(client, search(), search(query="忘"))] == [2, 2]
    assert len((await batch(client, search(), space="work"))[0]) == 1
    again = (await client.post("/api/v1/import", content=lines.encode(), headers=headers)).json()
    assert again["imported"] == 0
    assert (await client.get("/api/v1/users/u-1/export")).text.count("store_item") == 3


@pytest.mark.parametrize("value", [r'"\ud800"', '"x\ud800"', "NaN", "-Infinity"])
async def test_what_is_no_text_or_number_of_json_is_refused_wherever_it_stands(
    shared_client: httpx.AsyncClient, value: str
) -> None:
    item = f'{{"op": "put", "namespace": ["notes"], "key": "k", "value": {{"deep": [{value}]}}}}'
    body = f'{{"user_id": "u-half", "operations": [{item}]}}'.encode(errors="surrogatepass")
    answer = await shared_client.post(
        "/api/v1/store/batch", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in {400, 422}, answer.text
    assert "half of a character" in answer.text or "JSON" in answer.text
