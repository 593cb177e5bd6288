"""What the lean client sends and returns, streams as they arrive, and those that end too early."""

from itertools import accumulate

import httpx2
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from services.llm.lean_openai import StreamBroken
from tests.services.llm.clients import facts_of, lean, stock, streamed
from tests.services.llm.streams.families import DONE, chunk, frames, said
from tests.support.model_server import Ending, ModelServer, Reply, ToolCall, chat_events, responses_events, sse

pytestmark = pytest.mark.untraced


TEXT = ["你好", "，世", "界", " – ", "naïve ", "👩‍🚀", "🇨🇳", "！\n", "“好”"]
CHAT = b"".join(map(sse, chat_events(Reply(TEXT), "m-1"))) + DONE
RESPONSES = b"".join(map(sse, responses_events(Reply(TEXT), "m-1")))
CALL = ToolCall("weather", {"place": "北京", "days": 3})


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
    expected = facts_of(await streamed(stock(model_server, http, api)))

    assert facts_of(await streamed(lean(model_server, http, api))) == expected
    assert facts_of(await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)) == expected


async def test_connection_is_used_again(api: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    model = lean(model_server, http, api)

    for _ in range(3):
        await model.ainvoke("Hello", on_text=lambda _: None)

    assert len({request.peer for request in model_server.requests}) == 1


async def test_text_arrives_in_order_as_the_pieces_come(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(TEXT, gap_s=0.02))
    pieces: list[str] = []

    await lean(model_server, http, api).ainvoke("Hello", on_text=pieces.append)

    assert "".join(pieces) == "".join(TEXT)
    assert len(pieces) > 1
    assert set(accumulate(pieces)) <= set(accumulate(TEXT))


BROKEN = {
    ("chat", "empty"): b"",
    ("chat", "only a comment"): b": hello\n\n",
    ("chat", "only the end mark"): DONE,
    ("chat", "no finish reason"): frames(*said("Hel", "lo"), done=False),
    ("chat", "cut within a character"): frames(*said("Hel"), done=False) + sse(chunk({"content": "好"}))[:-40],
    ("responses", "only created"): b"".join(map(sse, responses_events(Reply(), "m-1")[:2])),
    ("responses", "cut within the completed event"): RESPONSES[:-30],
    ("responses", "the call alone"): b"".join(map(sse, responses_events(Reply(tool_calls=[CALL]), "m-1")[:5])),
}


@pytest.mark.parametrize(("api", "how"), BROKEN)
async def test_stream_without_its_finish_event_is_broken(
    api: str, how: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(*[Reply(raw=BROKEN[api, how])] * 2)

    with pytest.raises(StreamBroken):
        await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)
    with pytest.raises(StreamBroken):
        await streamed(lean(model_server, http, api))


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "application/json"])
async def test_body_that_is_no_stream_is_not_taken_for_a_broken_one(
    api: str, content_type: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(raw=b"<html>\n\n{}\n\n</html>", headers={"Content-Type": content_type}))

    with pytest.raises(TypeError, match=content_type):
        await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)


@pytest.mark.parametrize(("ending", "linger"), [("complete", 30.0), ("abort", 0.05), ("reset", 0.05)])
async def test_complete_answer_does_not_wait_for_an_end_that_does_not_come(
    ending: Ending, linger: float, api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    raw = CHAT if api == "chat" else RESPONSES
    model_server.script(Reply(raw=raw, linger_s=linger, ending=ending))

    message = await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)

    assert message.text == "".join(TEXT)


async def test_usage_that_follows_a_little_later_is_waited_for(
    model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    usage_at = CHAT.rindex(b"data: ", 0, CHAT.index(b'"usage"'))
    model_server.script(Reply(raw_pieces=[CHAT[:usage_at], CHAT[usage_at:]], gap_s=0.1))

    message = await lean(model_server, http, "chat").ainvoke("Hello", on_text=lambda _: None)

    assert message.usage_metadata
    assert message.usage_metadata["input_tokens"] == 100
