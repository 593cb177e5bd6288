"""Parameters of the model in requests of OpenAI's clients."""

from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.support.model_server import ModelServer, Reply

HELLO = [{"role": "user", "content": "My dog is called Bruno."}]
FORM = {"type": "json_schema", "json_schema": {"name": "dog", "schema": {"type": "object"}, "strict": True}}


class Dog(BaseModel):
    """A form of an answer."""

    name: str


BOTH_APIS = pytest.mark.parametrize(
    "settings", [{"llm_api": "chat"}, {"llm_api": "responses"}], indirect=True, ids=["chat", "responses"]
)
CHAT = pytest.mark.settings(llm_api="chat")
IGNORE = pytest.mark.settings(openai_parameters="ignore")
LIMIT = pytest.mark.settings(llm_answer_tokens=50)


@CHAT
async def test_parameters_reach_a_model_that_knows_them(sdk: Any, model_server: ModelServer) -> None:
    sampling: dict[str, Any] = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 10, "seed": 7, "n": 1}
    penalties = {"presence_penalty": 0.5, "frequency_penalty": -0.5, "logit_bias": {"42": -100}}
    raw = await sdk.chat.completions.with_raw_response.create(
        model="default",
        messages=HELLO,
        user="u-1",
        stop="END",
        tool_choice="auto",
        reasoning_effort="low",
        extra_body={"top_k": 5, "logprobs": False},
        **sampling,
        **penalties,
    )
    assert raw.headers["X-Anamnesis-Ignored"] == "top_k"
    (request,) = model_server.requests
    sent = {**sampling, **penalties, "stop": ["END"], "reasoning_effort": "low"}
    assert {name: request.body.get(name) for name in sent} == sent | {"n": None}
    await sdk.chat.completions.create(model="default", messages=HELLO, user="u-2")
    assert not (sent.keys() | {"max_completion_tokens"}) & model_server.requests[-1].body.keys()


async def test_what_the_models_api_does_not_have_is_named_as_ignored(sdk: Any, model_server: ModelServer) -> None:
    raw = await sdk.chat.completions.with_raw_response.create(
        model="default", messages=HELLO, user="u-1", temperature=0, max_completion_tokens=9, stop=["."], seed=1
    )
    assert raw.headers["X-Anamnesis-Ignored"] == "seed, stop"
    sent = model_server.requests[-1].body
    assert (sent["temperature"], sent["max_output_tokens"]) == (0, 9)
    raw = await sdk.responses.with_raw_response.create(
        model="default",
        input="Hello!",
        user="u-1",
        top_p=0.5,
        max_output_tokens=8,
        reasoning={"effort": "high"},
        text={"verbosity": "low"},
        truncation="auto",
    )
    assert raw.headers["X-Anamnesis-Ignored"] == "truncation"
    sent = model_server.requests[-1].body
    assert (sent["top_p"], sent["max_output_tokens"], sent["reasoning"]) == (0.5, 8, {"effort": "high"})
    assert sent["text"] == {"verbosity": "low"}


@IGNORE
async def test_an_operator_can_keep_parameters_from_the_model(sdk: Any, model_server: ModelServer) -> None:
    raw = await sdk.chat.completions.with_raw_response.create(
        model="default", messages=HELLO, user="u-1", temperature=0.1
    )
    assert raw.headers["X-Anamnesis-Ignored"] == "temperature"
    assert "temperature" not in model_server.requests[-1].body
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.chat.completions.create(model="default", messages=HELLO, user="u-1", response_format=FORM)
    assert refused.value.param == "response_format"


@LIMIT
async def test_a_client_may_ask_for_less_than_the_operators_limit_not_for_more(
    sdk: Any, model_server: ModelServer
) -> None:
    for asked, sent in (({"max_tokens": 20}, 20), ({"max_completion_tokens": 900}, 50), ({}, 50)):
        await sdk.chat.completions.create(model="default", messages=HELLO, user="u-1", store=False, **asked)
        assert model_server.requests[-1].body["max_output_tokens"] == sent


@BOTH_APIS
async def test_a_parameter_that_the_model_does_not_know_is_left_out_and_named(
    sdk: Any, model_server: ModelServer
) -> None:
    reason = "Unsupported value: 'temperature' does not support 0.5 with this model."
    refusal = Reply(status=400, error_message=reason)
    model_server.default = lambda asked: refusal if "temperature" in asked.body else Reply(["Nine."])
    asked = {"model": "default", "messages": HELLO, "user": "u-1", "temperature": 0.5}
    raw = await sdk.chat.completions.with_raw_response.create(**asked)
    assert (raw.headers["X-Anamnesis-Ignored"], len(model_server.requests)) == ("temperature", 2)
    stream = await sdk.chat.completions.create(**asked, stream=True)
    assert [chunk async for chunk in stream][-1].anamnesis == {"ignored": ["temperature"]}
    assert len(model_server.requests) == 3


@BOTH_APIS
async def test_what_the_model_refuses_is_the_clients_error_in_the_endpoints_words(
    sdk: Any, model_server: ModelServer
) -> None:
    reason = "temperature must be at most 0.4: this value does not work."
    for _ in range(2):
        model_server.script(Reply(status=400, error_message=reason))
        with pytest.raises(openai.BadRequestError, match="does not work") as refused:
            await sdk.chat.completions.create(model="default", messages=HELLO, user="u-1", temperature=0.5)
        assert (refused.value.param, refused.value.code) == ("temperature", "llm_parameter_refused")
    model_server.script(Reply(status=400, error_message="max_tokens is too large: 9000. The context length is 8."))
    stream = await sdk.chat.completions.create(
        model="default", messages=HELLO, user="u-1", max_completion_tokens=9000, stream=True
    )
    with pytest.raises(openai.APIError, match="too large: 9000"):
        [chunk async for chunk in stream]


async def test_an_answer_of_the_form_that_was_asked_for(sdk: Any, model_server: ModelServer) -> None:
    model_server.default = Reply(['{"na', 'me": "Bruno"}'])
    parsed = await sdk.chat.completions.parse(model="default", messages=HELLO, user="u-1", response_format=Dog)
    assert parsed.choices[0].message.parsed == Dog(name="Bruno")
    response = await sdk.responses.parse(model="default", input="And my dog?", user="u-1", text_format=Dog)
    assert response.output_parsed == Dog(name="Bruno")
    sent = [each.body for each in model_server.requests]
    asked = [each.get("response_format", {}).get("json_schema") or each["text"]["format"] for each in sent]
    assert [each["schema"]["required"] for each in asked] == [["name"], ["name"]]


async def test_an_answer_that_is_cut_off_says_so_everywhere(sdk: Any, model_server: ModelServer) -> None:
    model_server.default = Reply(["It is a"], ending="length")
    whole = await sdk.chat.completions.create(model="default", messages=HELLO, user="u-1", max_tokens=3)
    assert (whole.choices[0].finish_reason, whole.choices[0].message.content) == ("length", "It is a")
    stream = await sdk.chat.completions.create(model="default", messages=HELLO, user="u-2", stream=True)
    assert [chunk.choices[0].finish_reason async for chunk in stream][-1] == "length"
    response = await sdk.responses.create(model="default", input="Hello!", user="u-3", max_output_tokens=16)
    for each in (response, await sdk.responses.retrieve(response.id)):
        assert (each.status, each.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert (each.output_text, each.output[0].status) == ("It is a", "incomplete")
    events = [event async for event in await sdk.responses.retrieve(response.id, stream=True)]
    assert events[-1].type == "response.incomplete"
