"""The lean client makes the messages that LangChain's own makes, over the same bytes."""

from collections.abc import Callable

import httpx2
import openai
import pytest

from services.llm.streams.text import Said
from tests.services.llm.clients import Facts, in_pieces, lean, stock, streamed
from tests.services.llm.recorded import BODIES, CHAT
from tests.support.model_server import ModelServer, Reply, sse

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

_NOT_STOCK = {
    "usage with every chunk",
    "a tool call that is not JSON",
    "text around the start of a tool call",
    "service tier",
}
"""Bodies that the stock class reads wrongly."""
every_body = pytest.mark.parametrize(
    ("api", "name"), [(api, name) for api, bodies in BODIES.items() for name in bodies if name not in _NOT_STOCK]
)


@every_body
async def test_message_is_the_stock_message(
    api: str, name: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    data = BODIES[api][name]
    model_server.script(*[Reply(raw=data)] * 3, in_pieces(data, 97))
    expected = Facts.of(await streamed(stock(model_server, http, api)))
    heard, heard_in_pieces = Said(), Said()
    model = lean(model_server, http, api)

    merged = await streamed(model)
    answer = await model.ainvoke("Hello", on_text=heard)
    answer_in_pieces = await model.ainvoke("Hello", on_text=heard_in_pieces)

    assert Facts.of(merged) == expected
    assert Facts.of(answer) == expected
    assert Facts.of(answer_in_pieces) == expected
    # A refusal is heard, though the message keeps it apart from its text.
    said = "I cannot." if name == "refusal" else answer.text
    assert heard.text == heard_in_pieces.text == said
    assert all(heard.pieces)
    assert all(heard_in_pieces.pieces)


def _with_comments(data: bytes) -> bytes:
    return b": welcome\n\n" + data.replace(b"\n\n", b"\n\n: keep-alive\n\n")


def _with_names_and_ids(data: bytes) -> bytes:
    return data.replace(b"data: {", b"event: message\nid: 17\nretry: 3000\ndata: {")


def _with_crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def _without_spaces(data: bytes) -> bytes:
    return data.replace(b"data: ", b"data:")


@pytest.mark.parametrize("dress", [_with_comments, _with_names_and_ids, _with_crlf, _without_spaces])
@pytest.mark.parametrize(("api", "name"), [(api, "text, then a tool call") for api in BODIES])
async def test_dress_of_the_events_makes_no_difference(
    dress: Callable[[bytes], bytes], api: str, name: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    data = BODIES[api][name]
    model_server.script(Reply(raw=dress(data)), Reply(raw=dress(data)))
    expected = await streamed(stock(model_server, http, api))

    message = await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)

    assert Facts.of(message) == Facts.of(expected)
    assert message.tool_calls


@pytest.mark.parametrize("missing", [1, 2])
@pytest.mark.parametrize(("api", "name"), [(api, "english") for api in BODIES])
async def test_missing_line_ends_at_the_end_make_no_difference(
    missing: int, api: str, name: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    data = BODIES[api][name]
    model_server.script(Reply(raw=data), Reply(raw=data[:-missing]))
    expected = await streamed(stock(model_server, http, api))

    message = await streamed(lean(model_server, http, api))

    assert Facts.of(message) == Facts.of(expected)


async def test_pings_without_data_are_passed_over(model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    """The stock client takes them for broken JSON."""
    ping = b"event: ping\n\n"
    data = CHAT["english"]
    model_server.script(Reply(raw=data), Reply(raw=ping + data.replace(b"\n\n", b"\n\n" + ping)))
    expected = await streamed(stock(model_server, http, "chat"))

    message = await streamed(lean(model_server, http, "chat"))

    assert Facts.of(message) == Facts.of(expected)


_ERROR = {"message": "overloaded", "type": "server_error", "code": "busy"}
_RESPONSE = {"id": "resp_1", "object": "response", "status": "failed", "error": _ERROR, "output": []}
ERRORS: dict[tuple[str, str], dict[str, object]] = {
    ("chat", "object"): {"error": _ERROR},
    ("chat", "text"): {"error": "overloaded"},
    ("chat", "with choices"): {"choices": [], "error": {"code": 500, "message": ["overloaded"]}},
    ("responses", "object"): {"error": _ERROR},
    ("responses", "event"): {"type": "error", "code": "busy", "message": "overloaded", "param": None},
    ("responses", "event without code"): {"type": "error", "code": None, "message": "overloaded"},
    ("responses", "failed"): {"type": "response.failed", "response": _RESPONSE},
    ("responses", "failed without error"): {
        "type": "response.failed",
        "response": {**_RESPONSE, "error": None},
    },
}


@pytest.mark.parametrize(("api", "shape"), ERRORS)
@pytest.mark.parametrize("events_before", [0, 3])
async def test_error_in_the_stream_is_an_error_of_the_api_as_the_stock_one_is(
    api: str, shape: str, events_before: int, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    before = BODIES[api]["english"].split(b"\n\n")[:events_before]
    data = b"".join(event + b"\n\n" for event in before) + sse(ERRORS[api, shape])
    model_server.script(*[Reply(raw=data)] * 3)
    with pytest.raises((openai.APIError, ValueError)) as expected:
        await streamed(stock(model_server, http, api))

    with pytest.raises(openai.APIError) as streaming:
        await streamed(lean(model_server, http, api))
    with pytest.raises(openai.APIError) as answering:
        await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)

    assert str(streaming.value) == str(answering.value)
    assert "overloaded" in str(answering.value) or "overloaded" not in str(expected.value)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 503])
@pytest.mark.parametrize("api", BODIES)
async def test_error_status_is_the_stock_error(
    status: int, api: str, model_server: ModelServer, http: httpx2.AsyncClient
) -> None:
    model_server.script(*[Reply(status=status)] * 2)
    with pytest.raises(openai.APIStatusError) as expected:
        await streamed(stock(model_server, http, api))

    with pytest.raises(openai.APIStatusError) as error:
        await lean(model_server, http, api).ainvoke("Hello", on_text=lambda _: None)

    assert type(error.value) is type(expected.value)
    assert str(error.value) == str(expected.value)
