"""A user who has switched memory off: turns neither read it nor add to it, and the chat goes on."""

from typing import Any

import httpx

from services.bootstrap import Services
from tests.support.model_server import ModelServer
from tests.support.talking import say


async def _switch(client: httpx.AsyncClient, *, on: bool) -> Any:
    return (await client.patch("/api/v1/users/u-1", json={"memory": on})).json()


async def test_nothing_is_read_or_remembered_while_memory_is_off(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await say(client, "My dog is called Bruno.")
    assert (await _switch(client, on=False))["memory"] is False
    renamed = (await client.patch("/api/v1/users/u-1", json={"display_name": "Robin"})).json()
    assert (renamed["memory"], renamed["display_name"]) == (False, "Robin")

    asked = await say(client, "What is my dog called?", "s-2")
    assert "Bruno" not in str(model_server.requests[-1].body)
    await say(client, "My cousin plays the tuba.", "s-2")
    await say(client, "Which instrument?", "s-2")
    assert "tuba" in str(model_server.requests[-1].body)  # it is the same conversation
    why = (await client.get(f"/api/v1/turns/{asked['turn_id']}/why")).json()
    assert not {"recall", "core_memory", "memory_filing"} & set(why["features"])
    path = f"/api/v1/conversations/{asked['conversation_id']}"
    said = (await client.get(f"{path}/messages")).json()["items"]
    assert [each["content"] for each in said][::2] == [
        "What is my dog called?",
        "My cousin plays the tuba.",
        "Which instrument?",
    ]
    assert (await client.get(path)).json()["title"] == "What is my dog called?"

    assert (await _switch(client, on=True))["memory"] is True
    await say(client, "Who plays the tuba, and what is my dog called?", "s-3")
    shown = str(model_server.requests[-1].body)
    assert "Bruno" in shown
    assert "My cousin" not in shown
    memories = (await client.get("/api/v1/users/u-1/episodes")).json()["items"]
    assert not [each for each in memories if "My cousin" in each["content"]]
