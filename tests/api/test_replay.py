"""Past turns asked again: with the prompt as it was, and with today's memory."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.caller import Scope
from services.identity.tenants import DEFAULT_TENANT
from tests.support.issuer import bearer
from tests.support.model_server import ModelServer, Reply
from tests.support.talking import say

QUESTION = "What is my dog called?"
IMAGE = "https://example.org/dog.png"


async def _replay(client: httpx.AsyncClient, turn_id: str, **body: Any) -> dict[str, Any]:
    response = await client.post(f"/api/v1/turns/{turn_id}/replay", json=body)
    replayed: dict[str, Any] = response.raise_for_status().json()
    return replayed


async def _refused(client: httpx.AsyncClient, turn_id: str, **body: Any) -> tuple[int, str]:
    response = await client.post(f"/api/v1/turns/{turn_id}/replay", json=body)
    return response.status_code, response.json()["detail"]


async def test_the_prompt_is_sent_again_byte_for_byte(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await say(client, "My dog is called Bruno.", "told")
    await say(client, "Look at this.", "here", images=[IMAGE])
    model_server.default = Reply(["It is Bruno."])
    asked = await say(client, QUESTION, "here", images=[IMAGE])
    sent = model_server.requests[-1]
    await say(client, "I have a cat too, she is called Mieze.", "later")

    model_server.default = Reply(["It is Bruno, I think."])
    replayed = await _replay(client, asked["turn_id"])
    again = model_server.requests[-1]
    assert again.prompt == sent.prompt
    assert (again.body.get("input"), again.body.get("messages")) == (
        sent.body.get("input"),
        sent.body.get("messages"),
    )
    assert replayed["same_prompt"] is True
    assert (replayed["then"]["answer"], replayed["now"]["answer"]) == ("It is Bruno.", "It is Bruno, I think.")
    assert replayed["now"]["sections"] == replayed["then"]["sections"] != []
    assert 0 < replayed["overlap"] < 1


async def test_a_section_is_left_out(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    await say(client, "My dog is called Bruno.", "told")
    asked = await say(client, QUESTION, "here")
    assert "Bruno" in str(model_server.requests[-1].body)
    replayed = await _replay(client, asked["turn_id"], without_sections=["recall"])
    assert "Bruno" not in str(model_server.requests[-1].body)
    assert replayed["same_prompt"] is False
    names = {section["name"] for section in replayed["now"]["sections"]}
    assert "recall" not in names
    status, detail = await _refused(client, asked["turn_id"], without_sections=["weather"])
    assert (status, "'weather'" in detail, "recall" in detail) == (422, True, True)


async def test_today_s_memory_answers_and_nothing_is_stored(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await say(client, "Hello there.", "here")
    asked = await say(client, QUESTION, "here")
    await say(client, "My dog is called Bruno.", "later")
    before = (await client.get("/api/v1/turns")).json()["items"]

    replayed = await _replay(client, asked["turn_id"], memory="now")
    prompt = model_server.requests[-1]
    assert "My dog is called Bruno." in str(prompt.body)
    assert prompt.said[-1] == QUESTION
    assert "Hello there." in prompt.said
    assert replayed["same_prompt"] is None
    assert replayed["now"]["recalled"]
    assert not replayed["then"]["recalled"]
    assert (await client.get("/api/v1/turns")).json()["items"] == before

    left_out = replayed["now"]["recalled"]
    await _replay(client, asked["turn_id"], memory="now", without=left_out)
    assert "Bruno" not in str(model_server.requests[-1].body)


async def test_another_expert_and_another_model_answer(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    expert = {"name": "vet", "system_prompt": "You are a vet."}
    (await client.post("/api/v1/experts", json=expert)).raise_for_status()
    asked = await say(client, QUESTION, "here")
    await _replay(client, asked["turn_id"], expert="vet", model="other-model")
    assert "You are a vet." in str(model_server.requests[-1].body)
    assert model_server.requests[-1].body["model"] == "other-model"
    await _replay(client, asked["turn_id"], model="other-model")
    assert model_server.requests[-1].body["model"] == "other-model"
    assert (await _refused(client, asked["turn_id"], expert="nobody"))[0] == 422


async def test_a_model_that_fails_is_reported_beside_the_old_answer(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    asked = await say(client, QUESTION, "here")
    model_server.default = Reply(status=401)
    replayed = await _replay(client, asked["turn_id"])
    assert replayed["now"]["error"]["code"] == "llm_unauthorized"
    assert replayed["now"]["answer"] is None
    assert replayed["then"]["answer"] == asked["answer"]


async def test_a_prompt_goes_when_memory_forgets_what_it_showed(client: httpx.AsyncClient) -> None:
    await say(client, "My dog is called Bruno.", "told")
    asked = await say(client, QUESTION, "here")
    await say(client, "Forget that my dog is called Bruno.", "told")
    status, detail = await _refused(client, asked["turn_id"])
    assert (status, "forgotten" in detail) == (409, True)
    replayed = await _replay(client, asked["turn_id"], memory="now")
    assert replayed["then"]["sections"] is None


async def test_what_does_not_fit_together_is_refused_by_name(client: httpx.AsyncClient) -> None:
    asked = await say(client, QUESTION, "here")
    unfit: list[tuple[dict[str, Any], str]] = [
        ({"memory": "now", "without_sections": ["recall"]}, "without_sections"),
        ({"expert": "default", "without_sections": ["recall"]}, "without_sections"),
        ({"without": [str(uuid4())]}, "without"),
        ({"memory": "now", "ask": False}, "ask"),
    ]
    for body, field in unfit:
        response = await client.post(f"/api/v1/turns/{asked['turn_id']}/replay", json=body)
        assert (response.status_code, response.json()["detail"].startswith(f"{field}: ")) == (422, True)


@pytest.mark.settings(auth="api_key")
async def test_a_replay_needs_both_to_read_memory_and_to_chat(
    client: httpx.AsyncClient, services: Services
) -> None:
    async def key(*scopes: Scope) -> dict[str, str]:
        return bearer((await ApiKeys(services.database).create(DEFAULT_TENANT, "k", scopes))[1])

    both = await key("chat", "memory:read")
    body = {"user_id": "u-1", "session_id": "here", "message": QUESTION}
    turn_id = (await client.post("/api/v1/chat", json=body, headers=both)).raise_for_status().json()["turn_id"]
    path = f"/api/v1/turns/{turn_id}/replay"
    assert (await client.post(path, json={}, headers=await key("chat"))).status_code == 403
    assert (await client.post(path, json={}, headers=await key("memory:read"))).status_code == 403
    assert (await client.post(path, json={}, headers=both)).status_code == 200
