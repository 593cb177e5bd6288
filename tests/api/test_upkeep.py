"""Upkeep over HTTP: the tenant's policy, previews, runs, reports, and bringing back."""

import httpx

from services.bootstrap import Services
from tests.support.model_server import ModelServer
from tests.support.transfer import export, send
from tests.support.upkeep import everything, judging, someone, write, written_before

POLICY = "/api/v1/upkeep-policy"
USER = "/api/v1/users/u-1"


async def test_a_policy_is_previewed_set_carried_out_reported_and_undone(
    client: httpx.AsyncClient, services: Services
) -> None:
    owner = await someone(services)
    (old,) = await written_before(services, owner, "Owns a red kettle")
    before = await everything(services, owner)
    assert (await client.get(POLICY)).json() == {
        "fading": "never", "fading_days": 90, "fading_importance": 0.3,
    }  # fmt: skip
    assert (await client.get(f"{USER}/upkeep-preview")).json()["total"] == 0
    nothing = await client.post(f"{USER}/upkeep-runs", json={})
    assert nothing.status_code == 201
    done = nothing.json()
    assert (done["days"], done["faded_ids"], done["can_be_undone"]) == (None, [], False)
    tried = (await client.get(f"{USER}/upkeep-preview", params={"fading": "archive"})).json()
    assert (tried["total"], tried["fading"][0]["id"], tried["fading"][0]["content"]) == (
        1,
        str(old),
        "Owns a red kettle",
    )
    later = await client.get(f"{USER}/upkeep-preview", params={"fading": "archive", "fading_days": 92})
    assert later.json()["total"] == 0
    assert await everything(services, owner) == before
    assert (await client.put(POLICY, json={"fading": "archive"})).json()["fading_days"] == 90
    run = await client.post(f"{USER}/upkeep-runs", json={})
    assert (run.status_code, run.json()["faded_ids"], run.json()["days"]) == (201, [str(old)], 90)
    listed = (await client.get(f"{USER}/episodes")).json()["items"]
    assert [(each["id"], each["archived_at"] is not None) for each in listed] == [(str(old), True)]
    assert (await client.get(f"{USER}/episodes", params={"archived": False})).json()["items"] == []
    assert (await client.get(f"{USER}/upkeep-runs")).json()["items"] == [run.json(), nothing.json()]
    undone = await client.post(f"{USER}/upkeep-runs/{run.json()['id']}/undo")
    assert undone.json()["undone_at"]
    assert await everything(services, owner) == before
    again = await client.post(f"{USER}/upkeep-runs/{run.json()['id']}/undo")
    assert again.status_code == 409


async def test_one_memory_is_brought_back(client: httpx.AsyncClient, services: Services) -> None:
    owner = await someone(services)
    first, second = await written_before(services, owner, "first", "second")
    run = (await client.post(f"{USER}/upkeep-runs", json={"fading": "archive"})).json()
    assert set(run["faded_ids"]) == {str(first), str(second)}
    back = await client.post(f"{USER}/episodes/{first}/restore")
    assert (back.status_code, back.json()["content"], back.json()["superseded_by"]) == (200, "first", None)
    assert (await client.post(f"{USER}/episodes/{first}/restore")).status_code == 409
    assert (await client.post(f"{USER}/episodes/{run['id']}/restore")).status_code == 404


async def test_memories_and_values_are_pinned_and_unpinned(client: httpx.AsyncClient, services: Services) -> None:
    owner = await someone(services)
    (old,) = await written_before(services, owner, "Owns a red kettle")
    pinned = await client.put(f"{USER}/episodes/{old}/pin")
    assert (pinned.status_code, pinned.json()["pinned_at"] is not None) == (200, True)
    assert (await client.get(f"{USER}/upkeep-preview", params={"fading": "archive"})).json()["total"] == 0
    assert [each["id"] for each in (await client.get(f"{USER}/episodes?pinned=true")).json()["items"]] == [
        str(old)
    ]
    assert (await client.delete(f"{USER}/episodes/{old}/pin")).json()["pinned_at"] is None
    assert (await client.get(f"{USER}/episodes?pinned=true")).json()["items"] == []
    await client.put(f"{USER}/core-memory/human", json={"content": {"allergies": ["peanuts", "cats"]}})
    ids = {each["text"]: each["id"] for each in (await client.get(f"{USER}/memories")).json()["items"]}
    for text, is_pinned in (("cats", True), ("peanuts", True), ("cats", False)):
        pinned = await client.post(f"{USER}/memories/{ids[text]}/pin", json={"pinned": is_pinned})
        assert pinned.status_code == 204, pinned.text
    (section,) = (await client.get(f"{USER}/core-memory")).json()["items"]
    assert section["pinned"] == [{"field": "allergies", "text": "peanuts"}]
    types = [each["type"] for each in (await client.get(f"{USER}/memory-operations")).json()["items"]]
    assert types[:3] == ["core_memory_unpin", "core_memory_pin", "core_memory_pin"]
    assert types[4:6] == ["episode_unpin", "episode_pin"]


async def test_a_pair_is_found_on_request_shown_with_both_sources_accepted_and_undone(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.default = judging(lambda *_: "replaces")
    owner = await someone(services)
    berlin, lisbon = await write(services, owner, "The user lives in Berlin", "The user lives in Lisbon")
    proposals = f"{USER}/memory-proposals"
    assert (await client.post(f"{USER}/upkeep-runs", json={})).status_code == 201
    (waits,) = (await client.get(proposals)).json()["items"]
    assert (waits["kind"], waits["text"], waits["replaces"], waits["state"]) == (
        "contradiction", "The user lives in Lisbon", "The user lives in Berlin", "waiting",
    )  # fmt: skip
    assert [each["id"] for each in waits["memories"]] == [str(lisbon), str(berlin)]
    accepted = await client.post(f"{proposals}/{waits['id']}", json={"accept": True})
    assert accepted.json() == {"accepted": True, "change": None}
    assert [each["id"] for each in (await client.get(f"{USER}/episodes")).json()["items"]] == [str(lisbon)]
    (done,) = (await client.get(proposals, params={"state": "accepted"})).json()["items"]
    undo = f"{USER}/memory-operations/{done['operation_id']}/undo"
    assert (await client.post(undo)).json()["already"] is False
    assert len((await client.get(f"{USER}/episodes")).json()["items"]) == 2
    assert (await client.post(undo)).json()["already"] is True
    await client.post(f"{USER}/upkeep-runs", json={})
    assert (await client.get(proposals)).json()["items"] == []
    (undone,) = (await client.get(proposals, params={"state": "undone"})).json()["items"]
    assert undone["id"] == waits["id"]
    assert (await client.get(proposals, params={"state": "lost"})).status_code == 422


async def test_archived_and_pinned_memories_are_exported_and_imported_as_such(
    client: httpx.AsyncClient, services: Services
) -> None:
    owner = await someone(services)
    await written_before(services, owner, "Owns a red kettle")
    await client.post(f"{USER}/upkeep-runs", json={"fading": "archive"})
    (pinned,) = await write(services, owner, "The user lives in Lisbon")
    await client.put(f"{USER}/episodes/{pinned}/pin")
    whole = await export(client)
    await services.erasure.user(owner.tenant_id, "u-1")
    assert (await send(client, whole.encode()))["refused"] == 0
    assert await export(client) == whole
    listed = (await client.get(f"{USER}/episodes", params={"episode_type": "context"})).json()["items"]
    states = {each["content"]: (bool(each["archived_at"]), bool(each["pinned_at"])) for each in listed}
    assert states == {"Owns a red kettle": (True, False), "The user lives in Lisbon": (False, True)}
    (run,) = (await client.get(f"{USER}/upkeep-runs")).json()["items"]
    assert (run["reason"], len(run["faded_ids"]), run["days"]) == ("import", 1, None)
    assert (await client.post(f"{USER}/upkeep-runs/{run['id']}/undo")).status_code == 200
    assert (await client.get(f"{USER}/episodes", params={"archived": True})).json()["items"] == []
