"""Tools that a client brings: called by the model, run by the client, and answered in the same exchange."""

import json
from typing import Any

import pytest
from openai import AsyncOpenAI

from services.bootstrap import Services
from tests.support.model_server import ModelServer, Received, Reply, ToolCall
from tests.support.openai_clients import contents

pytestmark = pytest.mark.anyio

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "strict": True,
    },
}
QUESTION = "What is the weather where I live?"


def _calls(*cities: str) -> Reply:
    return Reply(
        ["Let me look."],
        [ToolCall("get_weather", {"city": city}, f"call_{place}") for place, city in enumerate(cities)],
    )


async def _ask(sdk: AsyncOpenAI, messages: list[dict[str, Any]], **more: Any) -> Any:
    asked: Any = {"model": "default", "messages": messages, "tools": [WEATHER], "user": "u-1", **more}
    return await sdk.chat.completions.create(**asked)


def _with_results(messages: list[dict[str, Any]], answer: Any, *results: str) -> list[dict[str, Any]]:
    message = answer.choices[0].message
    said = [
        {"role": "tool", "tool_call_id": call.id, "content": result}
        for call, result in zip(message.tool_calls, results, strict=True)
    ]
    return [*messages, message.model_dump(exclude_none=True), *said]


def _prompts(model_server: ModelServer) -> list[Received]:
    """What the model was asked with tools."""
    return [each for each in model_server.requests if "tools" in each.body]


async def test_a_call_goes_to_the_client_and_its_result_back_into_the_same_turn(
    sdk: AsyncOpenAI, services: Services, model_server: ModelServer
) -> None:
    await _ask(sdk, [{"role": "user", "content": "I live in Leeds."}], extra_headers={"X-Session-Id": "s-0"})
    headers = {"X-Session-Id": "s-1"}
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    model_server.script(_calls("Leeds"), Reply(["It ", "rains."]))
    asked = await _ask(sdk, messages, extra_headers=headers)
    choice = asked.choices[0]
    assert choice.finish_reason == "tool_calls"
    [call] = choice.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Leeds"})
    messages = _with_results(messages, asked, "Rain, 9 degrees")
    answer = await _ask(sdk, messages, extra_headers=headers)
    assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("stop", "It rains.")
    first, second = _prompts(model_server)[-2:]
    assert second.body["input"][: len(first.body["input"])] == first.body["input"]
    assert second.body["input"][-1]["output"] == "Rain, 9 degrees"
    assert any("Leeds" in text for role, text in first.prompt if role == "system")
    stored = (await contents(services))[-2:]
    assert stored == [("user", QUESTION), ("assistant", "Let me look.\n\nIt rains.")]
    repeated = await _ask(sdk, messages, extra_headers=headers)
    assert repeated.choices[0].message.content == "It rains."
    said = answer.choices[0].message.model_dump(exclude_none=True)
    more = [*messages, said, {"role": "user", "content": "Thanks"}]
    await _ask(sdk, more, extra_headers=headers)
    assert [text for _, text in (await contents(services))[-4:-1]] == [QUESTION, stored[1][1], "Thanks"]
