"""What the lean client does with streams as they arrive, and with those that end too early."""

from itertools import accumulate

import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.llm.lean_openai import StreamBroken
from tests.services.llm.clients import Facts, cut_at, lean, stock, streamed
from tests.services.llm.recorded import BODIES, CHAT, DONE, ENGLISH, MIXED, RESPONSES, TWO_CALLS, body, chunk
from tests.support.model_server import Ending, ModelServer, Reply, responses_events, sse

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

both_apis = pytest.mark.parametrize("api", BODIES)


async def heard(model_server: ModelServer, http: httpx2.AsyncClient, api: str, reply: Reply) -> list[str]:
    """What `on_text` gets of a reply."""
    model_server.script(reply)
    pieces: list[str] = []
    await lean(model_server, http, api).ainvoke("Hello", on_text=pieces.append)
    return pieces


@both_apis
async def test_text_arrives_in_order_as_the_pieces_come(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    pieces = await heard(model_server, http, api, Reply(MIXED, gap_s=0.02))

    assert "".join(pieces) == "".join(MIXED)
    assert len(pieces) > 1
    assert set(accumulate(pieces)) <= set(accumulate(MIXED))


@both_apis
async def test_text_comes_while_the_endpoint_still_writes(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(ENGLISH, gap_s=0.01, ending="cut"))
    pieces: list[str] = []

    with pytest.raises(StreamBroken):
        await lean(model_server, http, api).ainvoke("Hello", on_text=pieces.append)

    assert "".join(pieces) == "".join(ENGLISH)


async def test_text_of_one_network_read_arrives_joined(
    model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    assert await heard(model_server, http, "chat", Reply(raw=CHAT["english"])) == ["".join(ENGLISH)]


async def test_text_of_several_parts_in_one_network_read_arrives_joined(
    model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    pieces = await heard(model_server, http, "responses", Reply(raw=RESPONSES["several parts"]))

    assert pieces == ["一二三four5"]


@both_apis
async def test_tool_calls_alone_are_not_heard(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    assert await heard(model_server, http, api, Reply(tool_calls=TWO_CALLS)) == []


@both_apis
async def test_stream_passes_the_same_text_to_on_text_as_to_its_reader(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(MIXED, TWO_CALLS))
    pieces: list[str] = []

    message = await streamed(lean(model_server, http, api), on_text=pieces.append)

    assert "".join(pieces) == message.text == "".join(MIXED)
    assert len(message.tool_calls) == 2


@both_apis
@settings(max_examples=15)
@given(places=st.lists(st.integers(min_value=0), max_size=30))
async def test_cuts_anywhere_make_no_difference(
    api: str, places: list[int], model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    data = BODIES[api]["text, then a tool call"]
    model_server.script(Reply(raw=data), Reply(raw_pieces=cut_at(data, places), gap_s=0.0005))
    expected = await streamed(stock(model_server, http, api))
    pieces: list[str] = []

    message = await lean(model_server, http, api).ainvoke("Hello", on_text=pieces.append)

    assert Facts.of(message) == Facts.of(expected)
    assert "".join(pieces) == "".join(MIXED)


BROKEN = {
    ("chat", "empty"): b"",
    ("chat", "only a comment"): b": hello\n\n",
    ("chat", "only the end mark"): DONE,
    ("chat", "no finish reason"): body([chunk({"content": "Hel"}), chunk({"content": "lo"})]),
    ("chat", "cut within an event"): body([chunk({"content": "Hel"})]) + b'data: {"id": "chatcmpl-7", "cho',
    ("chat", "cut within a character"): body([chunk({"content": "Hel"})]) + sse(chunk({"content": "好"}))[:-40],
    ("responses", "empty"): b"",
    ("responses", "only created"): body(responses_events(Reply(), "m-1")[:2]),
    ("responses", "no completed event"): body(responses_events(Reply(ENGLISH), "m-1")[:-1]),
    ("responses", "cut within the completed event"): body(responses_events(Reply(ENGLISH), "m-1"))[:-30],
    ("responses", "the call alone"): body(responses_events(Reply(tool_calls=TWO_CALLS), "m-1")[:5]),
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


async def test_end_mark_ends_an_answer_without_a_finish_reason(
    model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    without_last = responses_events(Reply(ENGLISH), "m-1")[:-1]
    for api, raw in {
        "chat": body([chunk({"content": "".join(ENGLISH)})], done=True),
        "responses": body(without_last) + DONE,
    }.items():
        model_server.script(Reply(raw=raw))
        message = await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)
        assert message.text == "".join(ENGLISH)


@both_apis
@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "application/json"])
async def test_body_that_is_no_stream_is_not_taken_for_a_broken_one(
    api: str, content_type: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(raw=b"<html>\n\n{}\n\n</html>", headers={"Content-Type": content_type}))

    with pytest.raises(TypeError, match=content_type):
        await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)


@pytest.mark.parametrize(
    "event",
    [
        b"{nonsense",
        b"[1]",
        b'"text"',
        b"\xff\xfe",
    ],
)
@both_apis
async def test_event_that_is_no_object_is_an_error(
    event: bytes, api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(raw=b"data: " + event + b"\n\n" + BODIES[api]["english"]))

    with pytest.raises((TypeError, ValueError, KeyError)):
        await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)


@pytest.mark.parametrize(
    ("api", "event"),
    [
        ("chat", b'{"choices": ["x"]}'),
        ("chat", b'{"choices": [{"delta": "x"}]}'),
        ("responses", b'{"type": "response.output_text.delta", "delta": ["x"]}'),
    ],
)
async def test_event_of_another_shape_is_an_error(
    api: str, event: bytes, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(raw=b"data: " + event + b"\n\n" + BODIES[api]["english"]))

    with pytest.raises((TypeError, ValueError, KeyError)):
        await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)


@both_apis
@pytest.mark.parametrize("ending", ["abort", "reset"])
async def test_connection_that_breaks_in_mid_answer_is_an_error(
    ending: Ending, api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(ENGLISH, ending=ending, gap_s=0.02))
    pieces: list[str] = []

    with pytest.raises(openai.APIConnectionError):
        await lean(model_server, http, api).ainvoke("Hello", on_text=pieces.append)

    assert "".join(pieces) == "".join(ENGLISH)


@both_apis
@pytest.mark.parametrize(("ending", "linger"), [("complete", 30.0), ("abort", 0.05), ("reset", 0.05)])
async def test_complete_answer_does_not_wait_for_an_end_that_does_not_come(
    ending: Ending, linger: float, api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(raw=BODIES[api]["english"], linger_s=linger, ending=ending))

    message = await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)

    assert message.text == "".join(ENGLISH)


async def test_usage_that_follows_a_little_later_is_waited_for(
    model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    data = CHAT["scripted with usage"]
    usage_at = data.rindex(b"data: ", 0, data.index(b'"usage"'))
    model_server.script(Reply(raw_pieces=[data[:usage_at], data[usage_at:]], gap_s=0.1))

    message = await lean(model_server, http, "chat").ainvoke("Hello", on_text=lambda _: None)

    assert message.usage_metadata
    assert message.usage_metadata["input_tokens"] == 100


@both_apis
async def test_read_time_out_after_the_complete_answer_is_no_error(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(Reply(raw=BODIES[api]["english"], linger_s=30))
    model = lean(model_server, http, api, timeout=1)

    message = await model.ainvoke("Hello", on_text=lambda _: None)

    assert message.text == "".join(ENGLISH)


@both_apis
async def test_time_out_in_mid_answer_is_an_error(
    api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    data = BODIES[api]["english"]
    model_server.script(Reply(raw_pieces=[data[:900], data[900:]], gap_s=1.0))

    with pytest.raises(openai.APITimeoutError):
        await lean(model_server, http, api, timeout=0.1).ainvoke("Hello", on_text=lambda _: None)
