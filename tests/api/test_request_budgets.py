"""What one request may use, over every interface."""

import json
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.model_server import ModelServer, Reply, ToolCall


async def _say(http: httpx.AsyncClient, message: str = "Hello", **more: Any) -> httpx.Response:
    return await http.post(
        "/api/v1/chat", json={"user_id": "u-1", "session_id": "s-1", "message": message, **more}
    )


async def test_a_turn_keeps_within_its_calls_and_says_so_now_and_later(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    look = ToolCall("search_memory", {"query": "tea"})
    model_server.script(Reply(["Let me see. "], [look]), Reply(["Green tea."]))
    done = (await _say(client, "Which tea?", budget={"model_calls": 2})).json()
    assert (done["answer"], done["usage"]["model_calls"]) == ("Let me see. Green tea.", 2)
    assert done["degraded"] == ["request_budget"]
    assert done["request_budget"] == {"limits": {"model_calls": 2}, "measures": ["no_tools"]}
    assert [bool(request.body.get("tools")) for request in model_server.requests] == [True, False]

    stored = (await client.get(f"/api/v1/turns/{done['turn_id']}")).json()
    assert stored["context_report"]["request_budget"] == done["request_budget"]
    streamed = await client.get(f"/api/v1/turns/{done['turn_id']}/stream")
    last = json.loads(streamed.text.strip().rsplit("data: ", 1)[1])
    assert last["content"]["request_budget"] == done["request_budget"]
    metrics = (await client.get("/metrics")).text
    assert 'anamnesis_degraded_total{source="request_budget"}' in metrics


async def test_a_message_longer_than_its_tokens_is_refused_before_anything_is_stored(
    client: httpx.AsyncClient,
) -> None:
    refused = await _say(client, "word " * 1000, budget={"tokens": 200})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    assert "budget.tokens: must be more than 1251" in refused.json()["detail"]
    assert (await client.get("/api/v1/conversations")).json()["items"] == []


async def test_openai_clients_name_it_in_a_header_or_in_metadata(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    body: dict[str, Any] = {"model": "default", "user": "u-1", "messages": [{"role": "user", "content": "Hello"}]}
    header = {"X-Anamnesis-Budget": "model_calls=1, tokens=900"}
    assert (await client.post("/v1/chat/completions", json=body, headers=header)).status_code == 200
    asked = {"model": "default", "user": "u-2", "input": "Hello", "metadata": {"budget": "tokens=900"}}
    assert (await client.post("/v1/responses", json=asked)).status_code == 200
    assert [bool(request.body.get("tools")) for request in model_server.requests] == [False, False]
    assert all(request.body["max_output_tokens"] < 900 for request in model_server.requests)
    wrong = await client.post("/v1/chat/completions", json=body, headers={"X-Anamnesis-Budget": "fast"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "X-Anamnesis-Budget")


@pytest.mark.settings(request_budget="seconds=50", request_budget_max="seconds=80,tokens=30000")
class TestOfTheService:
    async def test_the_usual_one_applies_and_none_is_above_the_highest(
        self, client: httpx.AsyncClient, services: Services
    ) -> None:
        usual = (await _say(client)).json()
        assert usual["request_budget"] == {"limits": {"seconds": 50, "tokens": 30000}, "measures": []}
        more = (await _say(client, budget={"seconds": 500, "tokens": 99_999, "model_calls": 7})).json()
        assert more["request_budget"]["limits"] == {"seconds": 80, "tokens": 30000, "model_calls": 7}
        assert usual["degraded"] == more["degraded"] == []
