"""Forgetting what a text describes."""

import httpx
import pytest

from services.bootstrap import Services
from tests.support.turns import exchange

pytestmark = pytest.mark.anyio

FORGET = "/api/v1/users/u-1/memory/forget"


async def _found(client: httpx.AsyncClient, query: str) -> str:
    response = await client.post("/api/v1/users/u-1/episodes/search", json={"query": query})
    assert response.status_code == 200
    return response.text


@pytest.mark.parametrize(
    ("told", "kept", "what", "gone"),
    [
        ("My landlord is Mr Okafor.", "I bake bread every Sunday.", "my landlord", "Okafor"),
        ("我的房东姓欧阳。", "我每个星期天都烤面包。", "我的房东", "欧阳"),
    ],
)
async def test_what_is_described_is_no_longer_recalled_and_stays_in_its_conversation(
    client: httpx.AsyncClient, services: Services, told: str, kept: str, what: str, gone: str
) -> None:
    turn = await exchange(services.turns, told, "Noted.")
    await exchange(services.turns, kept, "Noted.")
    core = {"content": {"facts": [told, kept]}}
    assert (await client.put("/api/v1/users/u-1/core-memory/human", json=core)).status_code == 200
    done = (await client.post(FORGET, json={"what": what})).json()
    assert (done["kind"], done["operation_id"] is not None) == ("forget", True)
    assert gone not in await _found(client, told)
    assert kept in await _found(client, kept)
    (section,) = (await client.get("/api/v1/users/u-1/core-memory")).json()["items"]
    assert section["content"] == {"facts": [kept]}
    messages = await client.get(f"/api/v1/conversations/{turn.conversation_id}/messages")
    assert told in messages.text
    operations = (await client.get("/api/v1/users/u-1/memory-operations")).json()["items"]
    assert done["operation_id"] in {each["id"] for each in operations}


async def test_what_matches_nothing_changes_nothing(client: httpx.AsyncClient, services: Services) -> None:
    await exchange(services.turns, "I bake bread every Sunday.", "Noted.")
    done = (await client.post(FORGET, json={"what": "my violin"})).json()
    assert (done["operation_id"], done["items"]) == (None, [])
    assert (await client.get("/api/v1/users/u-1/memory-operations")).json()["items"] == []
    for body in ({"what": " "}, {"what": "x", "more": 1}, {}):
        assert (await client.post(FORGET, json=body)).status_code == 422
    nobody = await client.post(FORGET.replace("u-1", "u-9"), json={"what": "x"})
    assert nobody.status_code == 404
