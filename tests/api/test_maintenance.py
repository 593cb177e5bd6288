"""Maintenance over HTTP: the tenant's policy, previews, runs, reports, and bringing back."""

import httpx
import pytest

from services.bootstrap import Services
from tests.support.compressing import everything, someone
from tests.support.fading import written_before

pytestmark = pytest.mark.anyio

POLICY = "/api/v1/maintenance-policy"
USER = "/api/v1/users/u-1"


async def test_a_policy_is_previewed_set_carried_out_reported_and_undone(
    client: httpx.AsyncClient, services: Services
) -> None:
    owner = await someone(services)
    (old,) = await written_before(services, owner, "Owns a red kettle")
    before = await everything(services, owner)
    assert (await client.get(POLICY)).json() == {
        "fading": "never", "fading_days": 90, "fading_importance": 0.3, "proposals": "propose",
    }  # fmt: skip
    assert (await client.get(f"{USER}/fading-preview")).json()["total"] == 0
    refused = await client.post(f"{USER}/fading-runs", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    tried = (await client.get(f"{USER}/fading-preview", params={"fading": "archive"})).json()
    assert (tried["total"], tried["items"][0]["id"], tried["items"][0]["content"]) == (
        1,
        str(old),
        "Owns a red kettle",
    )
    later = await client.get(f"{USER}/fading-preview", params={"fading": "archive", "fading_days": 92})
    assert later.json()["total"] == 0
    assert await everything(services, owner) == before
    assert (await client.put(POLICY, json={"fading": "archive"})).json()["fading_days"] == 90
    run = await client.post(f"{USER}/fading-runs", json={})
    assert (run.status_code, run.json()["count"], run.json()["action"]) == (201, 1, "archive")
    listed = (await client.get(f"{USER}/episodes")).json()["items"]
    assert [(each["id"], each["archived_at"] is not None) for each in listed] == [(str(old), True)]
    assert (await client.get(f"{USER}/episodes", params={"archived": False})).json()["items"] == []
    assert (await client.get(f"{USER}/fading-runs")).json()["items"] == [run.json()]
    undone = await client.post(f"{USER}/fading-runs/{run.json()['id']}/undo")
    assert undone.json()["undone_at"]
    assert await everything(services, owner) == before
    again = await client.post(f"{USER}/fading-runs/{run.json()['id']}/undo")
    assert again.status_code == 409


async def test_one_memory_is_brought_back(client: httpx.AsyncClient, services: Services) -> None:
    owner = await someone(services)
    first, second = await written_before(services, owner, "first", "second")
    run = (await client.post(f"{USER}/fading-runs", json={"fading": "remove"})).json()
    assert set(run["episode_ids"]) == {str(first), str(second)}
    assert (await client.get(f"{USER}/episodes")).json()["items"] == []
    back = await client.post(f"{USER}/episodes/{first}/restore")
    assert (back.status_code, back.json()["content"], back.json()["superseded_by"]) == (200, "first", None)
    assert (await client.post(f"{USER}/episodes/{first}/restore")).status_code == 409
    assert (await client.post(f"{USER}/episodes/{run['id']}/restore")).status_code == 404


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"fading": "sometimes"}, "fading"),
        ({"fading": "archive", "fading_days": 0}, "fading_days"),
        ({"fading_importance": 1.5}, "fading_importance"),
        ({"proposals": "guess"}, "proposals"),
        ({"fade": "archive"}, "fade"),
    ],
)
async def test_a_wrong_policy_is_refused_by_name(
    client: httpx.AsyncClient, body: dict[str, object], named: str
) -> None:
    refused = await client.put(POLICY, json=body)
    assert refused.status_code == 422
    assert named in refused.text
    assert (await client.get(POLICY)).json()["fading"] == "never"


async def test_users_that_are_not_there_have_no_runs(client: httpx.AsyncClient) -> None:
    for path in ("fading-preview", "fading-runs"):
        assert (await client.get(f"/api/v1/users/u-9/{path}")).status_code == 404
