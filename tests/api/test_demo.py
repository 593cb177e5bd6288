"""The demo: a month of turns with all that turns have, which goes without a trace."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow

_USER = "/api/v1/users/demo:lin"


async def test_the_demo_has_what_a_month_of_use_has_and_goes_without_a_trace(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    loaded = await client.post("/api/v1/demo")
    assert loaded.status_code == 201, loaded.text
    assert loaded.json()["turns"] > 40
    assert (await client.post("/api/v1/demo")).status_code == 409

    found = (await client.get("/api/v1/conversations", params={"user_id": "demo:lin", "limit": 50})).json()[
        "items"
    ]
    assert len(found) > 15
    assert found[-1]["created_at"] < found[0]["created_at"][:10]  # on earlier days
    for conversation in found[:3]:
        turns = (await client.get(f"/api/v1/conversations/{conversation['id']}/turns")).json()["items"]
        why = (await client.get(f"/api/v1/turns/{turns[-1]['id']}/why")).json()
        assert why["sections"]
        assert turns[-1]["accepted_at"][:10] == conversation["created_at"][:10]
    in_clear = services.database.vault is None  # otherwise no conversation takes documents
    for title in ("How long hide glue dries", "皮胶要干多久") if in_clear else ():
        glue = next(each for each in found if each["title"] == title)
        (turn,) = (await client.get(f"/api/v1/conversations/{glue['id']}/turns")).json()["items"]
        assert turn["sources"][0]["document"] == "glue-and-finish.md"
        assert turn["experiments"]
    visits = (await client.get(f"{_USER}/visits", params={"limit": 100})).json()["items"]
    assert len(visits) == len(found)
    assert all(visit["message_count"] and visit["summary"] for visit in visits)
    dates = {"from": visits[-1]["started_at"][:10], "to": visits[0]["started_at"][:10], "limit": 100}
    for expert, least in (("default", 14), ("demo-workshop", 1)):
        days = (await client.get(f"{_USER}/daily-summaries", params={**dates, "expert": expert})).json()
        assert len(days["items"]) >= least
        assert not days["pending"]
        assert not any(day["stale"] for day in days["items"])
    night = datetime.now(UTC).replace(minute=0) + timedelta(days=1)
    for hour in range(24):
        assert await services.upkeep_scheduler.find(night + timedelta(hours=hour)) == 0
    assert await services.daily_scheduler.find(night) == 0
    known = (await client.get(f"{_USER}/memories")).json()["items"]
    allergy = next(each for each in known if "hazelnuts" in each["text"])
    assert "allergic to hazelnuts" in allergy["sources"][0]["content"]
    operations = (await client.get(f"{_USER}/memory-operations", params={"limit": 100})).json()["items"]
    assert {"memory_command", "core_memory_change", "episode_insert"} <= {each["type"] for each in operations}
    assert len((await client.get(f"{_USER}/memory-proposals")).json()["items"]) == 1
    (experiment,) = (await client.get("/api/v1/experiments")).json()["items"]
    assert experiment["status"] == "stopped"

    mine = {"user_id": "me", "session_id": "mine", "message": "How long must hide glue dry?"}
    assert not (await client.post("/api/v1/chat", json=mine)).json()["sources"]
    assert len(model_server.requests) == 1  # mine

    assert (await client.delete("/api/v1/demo")).status_code == 204
    assert (await client.delete("/api/v1/users/me")).status_code == 200
    assert (await client.delete("/api/v1/demo")).status_code == 404
    for path in ("users", "experiments", "knowledge-bases"):
        assert (await client.get(f"/api/v1/{path}")).json()["items"] == []
    assert [each["name"] for each in (await client.get("/api/v1/experts")).json()["items"]] == ["default"]
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        assert await (await connection.execute("SELECT FROM messages")).fetchall() == []
