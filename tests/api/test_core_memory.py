"""Core memory over HTTP: put, read, rolled back, forgotten, and what is refused."""

from functools import partial
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.talking import say
from tests.support.turns import exchange

pytestmark = pytest.mark.untraced

_say = partial(say, debug=True)

ADDRESS = "/api/v1/users/u-1/core-memory"


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


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "human", {"content": {"a": "x" * 5000}}, 422),
        ("PUT", "human", {"content": {}, "expected_version": -1}, 422),
        ("PUT", "a%20b", {"content": {}}, 422),
        ("PUT", "human?expert=nobody", {"content": {}}, 404),
        ("POST", "human/rollback", {"version": 1}, 404),
    ],
)
async def test_what_is_wrong_is_refused_and_nothing_is_stored(
    shared_client: httpx.AsyncClient, shared_services: Services, method: str, path: str, body: Any, status: int
) -> None:
    await exchange(shared_services.turns, "Hello", "Hi")
    answer = await shared_client.request(method, f"{ADDRESS}/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert (await shared_client.get(ADDRESS)).json()["items"] == []
