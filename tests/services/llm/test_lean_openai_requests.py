"""What the lean client sends, and how it works with the rest of LangChain."""

import httpx2
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from tests.services.llm.clients import Facts, lean, stock, streamed
from tests.support.model_server import ModelServer, Reply, ToolCall

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]


TEXT = ["The ", "train ", "leaves ", "at ", "nine", "."]


@tool
def weather(place: str, days: int = 1) -> str:
    """The weather at a place."""
    return f"{place}: {days} days of rain"


async def test_request_is_the_stock_request(api: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    messages = [
        SystemMessage("Be brief."),
        HumanMessage("你好"),
        AIMessage("你好！"),
        HumanMessage(
            [
                {"type": "text", "text": "Where is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            ]
        ),
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


@pytest.mark.traced
async def test_usage_can_be_left_out_for_one_call(model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    for model in (stock(model_server, http, "chat"), lean(model_server, http, "chat")):
        await streamed(model, stream_usage=False)

    expected, request = model_server.requests
    assert request.body == expected.body
    assert "stream_options" not in request.body


async def test_message_is_the_stock_message(api: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    calls = [ToolCall("current_time", {"zone": "UTC"}), ToolCall("weather", {"place": "北京"}, "call_2")]
    model_server.script(*[Reply(TEXT, calls)] * 3)
    expected = Facts.of(await streamed(stock(model_server, http, api)))

    assert Facts.of(await streamed(lean(model_server, http, api))) == expected
    assert Facts.of(await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)) == expected
    assert len(expected.tool_calls) == 2


async def test_connection_is_used_again(api: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    model = lean(model_server, http, api)

    for _ in range(3):
        await model.ainvoke("Hello", on_text=lambda _: None)

    assert len({request.peer for request in model_server.requests}) == 1
