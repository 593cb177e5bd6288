"""What the lean client sends, and how it works with the rest of LangChain."""

import json
from typing import Any
from uuid import UUID

import httpx2
import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import LLMResult
from langchain_core.tools import tool
from pydantic import BaseModel

from tests.services.llm.clients import Facts, lean, stock, streamed
from tests.services.llm.recorded import BODIES, ENGLISH, MIXED, TWO_CALLS
from tests.support.model_server import ModelServer, Reply, ToolCall, responses_events

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

both_apis = pytest.mark.parametrize("api", BODIES)


class Trip(BaseModel):
    """A journey."""

    place: str
    days: int


@tool
def weather(place: str, days: int = 1) -> str:
    """The weather at a place."""
    return f"{place}: {days} days of rain"


@both_apis
async def test_request_is_the_stock_request(api: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    messages = [
        SystemMessage("Be brief."),
        HumanMessage("你好"),
        AIMessage("", tool_calls=[{"name": "weather", "args": {"place": "北京"}, "id": "call_1"}]),
        ToolMessage("rain", tool_call_id="call_1"),
    ]
    options = {"temperature": 0.3, "max_completion_tokens": 50}
    bound = [make(model_server, http, api, **options).bind_tools([weather]) for make in (stock, lean)]
    for model in bound:
        async for _ in model.astream(messages, stop=["END"] if api == "chat" else None):
            pass

    await bound[1].ainvoke(messages, on_text=lambda _: None, stop=["END"] if api == "chat" else None)

    expected, streaming, answering = (request.body for request in model_server.requests)
    assert streaming == expected
    assert answering == expected


@both_apis
async def test_request_asks_for_a_stream_and_offers_the_tools(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    await lean(model_server, http, api).bind_tools([weather]).ainvoke("Hello", on_text=lambda _: None)

    (request,) = model_server.requests
    (offered,) = request.body["tools"]
    assert request.body["stream"] is True
    assert offered.get("function", offered)["name"] == "weather"
    assert request.body.get("stream_options") == ({"include_usage": True} if api == "chat" else None)


@both_apis
async def test_nothing_refers_to_answers_that_the_provider_kept(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model = lean(model_server, http, api, store=False if api == "responses" else None)
    first = await model.ainvoke("Hello", on_text=lambda _: None)

    await model.ainvoke([HumanMessage("Hello"), first, HumanMessage("And?")], on_text=lambda _: None)

    for request in model_server.requests:
        assert "previous_response_id" not in json.dumps(request.body)
        assert request.body.get("store") is (False if api == "responses" else None)
    assert [role for role, _ in model_server.requests[1].prompt] == ["user", "assistant", "user"]


@both_apis
async def test_image_is_sent_as_a_part_of_the_content(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    message = HumanMessage(
        [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    )

    await lean(model_server, http, api).ainvoke([message], on_text=lambda _: None)

    body = model_server.requests[0].body
    if api == "chat":
        text, image = body["messages"][0]["content"]
        assert text == {"type": "text", "text": "What is this?"}
        assert image == {"type": "image_url", "image_url": {"url": url}}
    else:
        text, image = body["input"][0]["content"]
        assert text == {"type": "input_text", "text": "What is this?"}
        assert (image["type"], image["image_url"]) == ("input_image", url)


@pytest.mark.traced
async def test_usage_can_be_left_out_for_one_call(model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    for model in (stock(model_server, http, "chat"), lean(model_server, http, "chat")):
        await streamed(model, stream_usage=False)

    expected, request = model_server.requests
    assert request.body == expected.body
    assert "stream_options" not in request.body


@both_apis
async def test_structured_output_is_read_from_a_tool_call(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(tool_calls=[ToolCall("Trip", {"place": "大理", "days": 4})]))
    chain = lean(model_server, http, api, streaming=True).with_structured_output(Trip, method="function_calling")

    assert await chain.ainvoke("Plan") == Trip(place="大理", days=4)
    assert model_server.requests[0].body["tool_choice"]


@both_apis
async def test_tool_calls_of_an_answer_can_be_carried_out(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(MIXED, TWO_CALLS))

    answer = await lean(model_server, http, api).bind_tools([weather]).ainvoke("?", on_text=lambda _: None)

    result = await weather.ainvoke(answer.tool_calls[1])
    assert answer.tool_calls[0]["args"] == {"zone": "Asia/Shanghai"}
    assert result.content == "北京: 3 days of rain"
    assert result.tool_call_id == "call_2"


class Recorder(AsyncCallbackHandler):
    """Notes the callbacks of the model."""

    def __init__(self) -> None:
        self.starts: list[list[list[BaseMessage]]] = []
        self.tokens: list[str] = []
        self.ends: list[LLMResult] = []
        self.errors: list[BaseException] = []

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        self.starts.append(messages)

    async def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.tokens.append(kwargs["chunk"].text)

    async def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.ends.append(response)

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self.errors.append(error)


@both_apis
async def test_one_pair_of_callbacks_a_call(api: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    model_server.script(Reply(ENGLISH))
    seen = Recorder()

    answer = await lean(model_server, http, api).ainvoke("Hi", {"callbacks": [seen]}, on_text=lambda _: None)

    assert [messages[0][0].text for messages in seen.starts] == ["Hi"]
    assert [end.generations[0][0].text for end in seen.ends] == [answer.text]
    assert seen.tokens == []
    assert seen.errors == []


@both_apis
async def test_stream_reports_its_tokens(api: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    model_server.script(Reply(ENGLISH))
    seen = Recorder()

    async for _ in lean(model_server, http, api).astream("Hi", {"callbacks": [seen]}):
        pass

    assert "".join(seen.tokens) == "".join(ENGLISH)
    assert (len(seen.starts), len(seen.ends)) == (1, 1)


@both_apis
async def test_failure_is_reported_once(api: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    model_server.script(Reply(ENGLISH, ending="cut"))
    seen = Recorder()

    with pytest.raises(Exception, match="before the answer was complete") as failure:
        await lean(model_server, http, api).ainvoke("Hi", {"callbacks": [seen]}, on_text=lambda _: None)

    assert seen.errors == [failure.value]
    assert (len(seen.starts), len(seen.ends)) == (1, 0)


_COMPLETION = {
    "id": "chatcmpl-7",
    "object": "chat.completion",
    "created": 1,
    "model": "m-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}],
}
_PART = {"type": "output_text", "text": "Yes.", "annotations": []}
_RESPONSE = {
    **responses_events(Reply(), "m-1")[0]["response"],
    "output": [{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [_PART]}],
}


@pytest.mark.parametrize(("api", "answer"), [("chat", _COMPLETION), ("responses", _RESPONSE)])
async def test_answer_that_is_no_stream_is_read_as_the_stock_class_reads_it(
    api: str, answer: Any, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    whole = Reply(raw=json.dumps(answer).encode(), headers={"Content-Type": "application/json"})
    model_server.script(whole, whole)
    expected = await stock(model_server, http, api).ainvoke("Hello")

    pieces: list[str] = []
    message = await lean(model_server, http, api).ainvoke("Hello", on_text=pieces.append)

    assert Facts.of(message) == Facts.of(expected)
    assert message.text == "".join(pieces) == "Yes."
    assert [request.body.get("stream", False) for request in model_server.requests] == [False, True]


@both_apis
async def test_connection_is_used_again(api: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    model = lean(model_server, http, api)

    for _ in range(3):
        await model.ainvoke("Hello", on_text=lambda _: None)

    assert len({request.peer for request in model_server.requests}) == 1
