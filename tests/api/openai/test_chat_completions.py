"""Chat completions, as OpenAI's SDK asks for them and reads them."""

from typing import Any

import httpx
import openai
import pytest

from services.bootstrap import Services
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.openai_clients import contents

HELLO = [{"role": "user", "content": "My dog is called Bruno."}]


async def test_a_whole_answer_has_text_and_usage(sdk: Any) -> None:
    raw = await sdk.chat.completions.with_raw_response.create(model="default", messages=HELLO, user="u-1")
    answer = raw.parse()
    assert answer.choices[0].message.content == "Certainly, here is the answer."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert raw.headers["X-Session-Id"].startswith("v1-")
    assert answer.id == f"chatcmpl-{raw.headers['X-Turn-Id']}"


async def test_a_stream_begins_with_the_role_and_ends_with_the_usage(sdk: Any) -> None:
    stream = await sdk.chat.completions.create(
        model="default", messages=HELLO, user="u-1", stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert (
        "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Certainly, here is the answer."
    )
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert not chunks[-1].choices
    assert chunks[-1].usage.completion_tokens > 0


async def test_tools_of_the_service_are_never_shown_as_calls(sdk: Any, model_server: ModelServer) -> None:
    model_server.script(Reply(tool_calls=[ToolCall("get_current_time", {})]), Reply(["It is noon."]))
    stream = await sdk.chat.completions.create(model="default", messages=HELLO, user="u-1", stream=True)
    chunks = [chunk async for chunk in stream]
    assert all(chunk.choices and chunk.usage is None for chunk in chunks), "usage was not asked for"
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert all(delta.tool_calls is None for delta in deltas)
    assert "".join(delta.content or "" for delta in deltas) == "It is noon."


async def test_a_client_that_asks_for_them_gets_the_services_own_events(
    url: str, model_server: ModelServer
) -> None:
    model_server.script(Reply(tool_calls=[ToolCall("get_current_time", {})]), Reply(["It is noon."]))
    body = {"model": "default", "messages": HELLO, "user": "u-1", "stream": True}
    async with httpx.AsyncClient(base_url=url, verify=False, timeout=120) as client:
        answered = await client.post("/v1/chat/completions", json=body, headers={"X-Anamnesis-Events": "on"})
    named = [line.removeprefix("event: ") for line in answered.text.splitlines() if line.startswith("event: ")]
    assert named == [
        f"anamnesis.{status}" for status in ("turn", "route_decision", "tool_call", "tool_result", "done")
    ]
    assert answered.text.rstrip().endswith("data: [DONE]")


async def test_without_a_user_nothing_is_kept_and_the_client_is_told_why(
    sdk: Any, services: Services, model_server: ModelServer
) -> None:
    messages = [*HELLO, {"role": "assistant", "content": "Noted."}, {"role": "user", "content": "And my dog?"}]
    raw = await sdk.chat.completions.with_raw_response.create(model="default", messages=messages)
    assert raw.headers["X-Anamnesis-Memory"].startswith("off")
    assert raw.parse().anamnesis["memory"] == "off"
    assert model_server.requests[-1].said == [each["content"] for each in messages]
    assert await contents(services) == []


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"n": 2}, "n"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"user": ".."}, "user"),
        ({"temperature": "warm"}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop": ["."] * 5}, "stop"),
        ({"logit_bias": {"50256": 200}}, "logit_bias.50256"),
        ({"stream_options": {"include_usage": "perhaps"}}, "stream_options.include_usage"),
        ({"messages": [*HELLO, {"role": "tool", "tool_call_id": "c", "content": "42"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages.0.content"),
    ],
)
async def test_what_cannot_be_done_is_refused_by_name(
    shared_sdk: Any, wrong: dict[str, object], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await shared_sdk.chat.completions.create(**{"model": "default", "messages": HELLO, "user": "u-1", **wrong})
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"


async def test_a_model_that_fails_is_an_error_in_both_forms(sdk: Any, model_server: ModelServer) -> None:
    model_server.script(*[Reply(status=401)] * 2)
    with pytest.raises(openai.InternalServerError) as failed:
        await sdk.chat.completions.create(model="default", messages=HELLO, user="u-1")
    assert failed.value.code == "llm_unauthorized"
    stream = await sdk.chat.completions.create(model="default", messages=HELLO, user="u-1", stream=True)
    with pytest.raises(openai.APIError, match="refused the service's key"):
        [chunk async for chunk in stream]


async def test_experts_are_models_and_have_aliases(sdk: Any) -> None:
    assert [model.id for model in (await sdk.models.list()).data] == ["default", "embedding"]
    assert (await sdk.models.retrieve("default")).owned_by == "anamnesis"
    for asked in (
        sdk.models.retrieve("gpt-9"),
        sdk.chat.completions.create(model="gpt-9", messages=HELLO, user="u"),
    ):
        with pytest.raises(openai.NotFoundError) as unknown:
            await asked
        assert unknown.value.code == "model_not_found"


async def test_paths_that_are_not_there_are_answered_in_the_same_form(shared_client: httpx.AsyncClient) -> None:
    found = await shared_client.get("/v1/engines")
    assert found.status_code == 404
    assert found.json()["error"]["message"] == "GET /v1/engines is not supported here."
    assert set(found.json()["error"]) == {"message", "type", "param", "code"}
    malformed = await shared_client.post(
        "/v1/chat/completions", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert malformed.status_code == 400
    assert malformed.json()["error"]["code"] == "malformed"
