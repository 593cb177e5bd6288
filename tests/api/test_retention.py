"""Retention over HTTP, and at the command line."""

import httpx

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT


async def test_rules_are_set_previewed_applied_and_reported(client: httpx.AsyncClient, services: Services) -> None:
    said = {"user_id": "u-1", "session_id": "s-1", "message": "My sister Alma bakes bread."}
    assert (await client.post("/api/v1/chat", json=said)).status_code == 200
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE messages SET created_at = created_at - interval '40 days'")

    tried = (await client.post("/api/v1/retention/preview", json={"messages": 30})).json()
    (messages,) = tried["kinds"]
    assert (messages["counts"]["messages"], messages["staying"]) == (2, 0)
    assert (await client.post("/api/v1/retention/preview")).json()["kinds"] == []
    unset = await client.post("/api/v1/retention/run")
    assert (unset.status_code, unset.json()["code"]) == (422, "invalid_input")

    rules = {"messages": 30, "turns": 20, "jobs": None, "operations": None}
    assert (await client.put("/api/v1/retention", json={"messages": 30, "turns": 20})).json() == rules
    assert (await client.get("/api/v1/retention")).json() == rules
    ran = (await client.post("/api/v1/retention/run", json={"seconds": 60})).json()
    assert ran["complete"]
    assert {each["kind"]: each["counts"] for each in ran["kinds"]}["messages"] == messages["counts"]
    assert (await client.get("/api/v1/conversations")).json()["items"] == []
    (report,) = (await client.get("/api/v1/retention/runs")).json()["items"]
    assert report["report"]["complete"]
    assert (await client.put("/api/v1/retention", json={})).json() == dict.fromkeys(rules)
