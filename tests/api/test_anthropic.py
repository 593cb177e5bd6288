"""Anthropic's Messages API, as its clients speak it: the bodies are those that its SDK and coding agents send."""

import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from services.bootstrap import Services
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from tests.api.openai.test_sdk_methods import ROW
from tests.docs.test_site import DOCS
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.openai_clients import contents

TOOL = {
    "name": "get_weather",
    "description": "Weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "cache_control": {"type": "ephemeral"},
}
QUESTION = "What is the weather where I live?"
LOOKS = Reply(["Let me look."], [ToolCall("get_weather", {"city": "Leeds"})])


def _asking(messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    named = {"user_id": "u-1"}
    return {
        "model": "default",
        "max_tokens": 500,
        "messages": messages,
        "tools": [TOOL],
        "metadata": named,
        **more,
    }


def _events(body: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line.startswith("data: ")]


async def test_a_tool_is_used_with_the_results_beside_a_reminder(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.script(LOOKS, Reply(["It ", "rains."]))
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    system = [{"type": "text", "text": "You are kind.", "cache_control": {"type": "ephemeral"}}]
    asked = (await client.post("/v1/messages", json=_asking(said, system=system))).json()
    text, used = asked["content"]
    assert (asked["stop_reason"], text, used["name"]) == (
        "tool_use",
        {"type": "text", "text": "Let me look."},
        "get_weather",
    )
    result = {"type": "tool_result", "tool_use_id": used["id"], "content": "Rain", "is_error": False}
    reminder = {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"}
    said += [{"role": "assistant", "content": asked["content"]}, {"role": "user", "content": [result, reminder]}]
    streamed = await client.post("/v1/messages", json=_asking(said, stream=True))
    events = _events(streamed.text)
    assert [each["type"] for each in events if each["type"] != "content_block_delta"] == [
        *("message_start", "ping", "content_block_start", "content_block_stop", "message_delta", "message_stop")
    ]
    assert (
        "".join(each["delta"]["text"] for each in events if each["type"] == "content_block_delta") == "It rains."
    )
    assert events[-2]["delta"]["stop_reason"] == "end_turn"
    assert events[-2]["usage"]["output_tokens"] > 0
    assert "Be brief." in str(model_server.requests[-1].body)
    assert await contents(services) == [("user", QUESTION), ("assistant", "Let me look.\n\nIt rains.")]


async def test_a_stream_ends_in_calls_and_what_nobody_runs_is_refused(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(Reply([], [ToolCall("get_weather", {"city": "Leeds"})]))
    said = [{"role": "user", "content": QUESTION}]
    choice = {"type": "any", "disable_parallel_tool_use": True}
    events = _events((await client.post("/v1/messages", json=_asking(said, stream=True, tool_choice=choice))).text)
    [begun] = [each["content_block"] for each in events if each["type"] == "content_block_start"]
    given = "".join(each["delta"]["partial_json"] for each in events if each["type"] == "content_block_delta")
    assert (begun["name"], json.loads(given)) == ("get_weather", {"city": "Leeds"})
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    asked = model_server.requests[-1].body
    assert (asked["tool_choice"], asked["parallel_tool_calls"]) == ("required", False)
    assert [each["name"] for each in asked["tools"]] == ["get_weather"]
    counted = await client.post("/v1/messages/count_tokens", json=_asking(said))
    assert 10 < counted.json()["input_tokens"] < 200
    search = {"type": "web_search_20250305", "name": "web_search"}
    refused = await client.post("/v1/messages", json=_asking(said, tools=[search]))
    assert refused.status_code == 400
    assert refused.json()["type"] == "error"
    assert refused.json()["error"]["type"] == "invalid_request_error"
    assert "web_search_20250305 is a tool that nobody runs here" in refused.json()["error"]["message"]
    ignored = await client.post("/v1/messages", json=_asking(said, top_k=5, thinking={"type": "adaptive"}))
    assert ignored.headers["X-Anamnesis-Ignored"] == "thinking, top_k"
    assert ignored.json()["anamnesis"]["ignored"] == ["thinking", "top_k"]


SAID: Any = {"model": "default", "max_tokens": 500, "messages": [{"role": "user", "content": "Hello"}]}
FORM = {"type": "json_schema", "schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
METHODS: dict[str, tuple[str, str, Any]] = {
    "messages.create": ("POST", "/v1/messages", SAID),
    "messages.stream": ("POST", "/v1/messages", {**SAID, "stream": True}),
    "messages.parse": ("POST", "/v1/messages", {**SAID, "output_config": {"format": FORM}}),
    "messages.count_tokens": ("POST", "/v1/messages/count_tokens", SAID),
    "models.list": ("GET", "/v1/models", None),
    "models.retrieve": ("GET", "/v1/models/default", None),
    "messages.batches.create": ("POST", "/v1/messages/batches", {"requests": []}),
    "messages.batches.list": ("GET", "/v1/messages/batches", None),
    "files.list": ("GET", "/v1/files", None),
    "skills.list": ("GET", "/v1/skills", None),
}


async def test_the_guide_says_what_each_method_of_its_sdk_does(client: httpx.AsyncClient) -> None:
    found: dict[str, str] = {}
    for name, (method, path, body) in METHODS.items():
        answered = await client.request(method, path, json=body)
        works = answered.status_code == 200
        found[f"anthropic.{name}"] = "works" if works else f"{answered.status_code}: not supported"
    section = (DOCS / "openai.md").read_text("utf-8").partition("And of Anthropic's:")[2].partition("\n## ")[0]
    assert dict(ROW.findall(section)) == found
    [listed, *_] = (await client.get("/v1/models")).json()["data"]
    assert (listed["type"], listed["id"], listed["display_name"]) == ("model", "default", "default")


@pytest.mark.settings(auth="api_key")
async def test_the_key_is_read_where_its_clients_send_it(client: httpx.AsyncClient, services: Services) -> None:
    _, secret = await ApiKeys(services.database).create(DEFAULT_TENANT, "agent", ["chat"], default_user="u-1")
    device = "user_" + "0a" * 16 + "_account__session_1"
    body = _asking([{"role": "user", "content": "Hello"}], metadata={"user_id": device})
    assert (await client.post("/v1/messages", json=body)).json()["error"]["type"] == "authentication_error"
    answered = await client.post("/v1/messages", json=body, headers={"x-api-key": secret})
    assert answered.status_code == 200
    turn = await services.turns.get(DEFAULT_TENANT, UUID(answered.headers["X-Turn-Id"]), user_id="u-1")
    assert turn.status == "completed"


async def test_a_tool_that_failed_is_told_so_and_a_choice_in_another_form_is_refused(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(LOOKS)
    said: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    asked = (await client.post("/v1/messages", json=_asking(said))).json()["content"]
    result = {"type": "tool_result", "tool_use_id": asked[-1]["id"], "content": "no station", "is_error": True}
    said += [{"role": "assistant", "content": asked}, {"role": "user", "content": [result]}]
    await client.post("/v1/messages", json=_asking(said))
    assert "Error: no station" in str(model_server.requests[-1].body)
    chosen = await client.post("/v1/messages", json=_asking(said[:1], tool_choice="any"))
    assert (chosen.status_code, "tool_choice: must be a JSON object" in chosen.text) == (400, True)
