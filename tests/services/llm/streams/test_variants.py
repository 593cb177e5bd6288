"""Single oddities of streams, each apart from the family that it was seen in."""

from collections.abc import Sequence
from dataclasses import dataclass

import httpx2
import orjson
import pytest

from tests.services.llm.clients import lean
from tests.services.llm.streams.families import DONE, SEARCH, Call, call, chunk, frames, said, usage
from tests.services.llm.streams.test_families import Pieces
from tests.support.model_server import ModelServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

ARGUMENTS = '{"query": "面馆"}'
END = chunk({}, "stop")
CALLS_END = chunk({}, "tool_calls")


@dataclass(frozen=True)
class Odd:
    """A stream, and what it says."""

    raw: bytes
    text: str = ""
    calls: Sequence[Call] = ()


def _of_calls(*deltas: object) -> bytes:
    return frames(*(chunk(each) for each in deltas if isinstance(each, dict)), CALLS_END)


VARIANTS = {
    "a byte order mark": Odd(b"\xef\xbb\xbf" + frames(*said("你", "好")), "你好"),
    "no blank line at the end": Odd(frames(*said("Hi")).rstrip(b"\n"), "Hi"),
    "an unknown finish reason amid the text": Odd(
        frames(chunk({"content": "A"}, "eos"), chunk({"content": "B"}), END), "AB"
    ),
    "a finish reason in capitals": Odd(frames(chunk({"content": "A"}), chunk({}, "STOP")), "A"),
    "an index as text": Odd(_of_calls(call("0", "c-1", "search", ARGUMENTS)), calls=[SEARCH]),
    "calls that end with stop": Odd(frames(chunk(call(0, "c-1", "search", ARGUMENTS)), END), calls=[SEARCH]),
    "arguments that are empty": Odd(_of_calls(call(0, "c-1", "now", "")), calls=[("now", {})]),
    "two calls with one index": Odd(
        _of_calls(call(0, "c-1", "search", ARGUMENTS), call(0, "c-2", "now", "{}")), calls=[SEARCH, ("now", {})]
    ),
    "a name in every delta": Odd(
        _of_calls(call(0, "c-1", "search", '{"query": '), call(0, "c-1", "search", '"面馆"}')), calls=[SEARCH]
    ),
    "arguments in a fence": Odd(_of_calls(call(0, "c-1", "search", f"```json\n{ARGUMENTS}\n```")), calls=[SEARCH]),
    "arguments as text within text": Odd(
        _of_calls(call(0, "c-1", "search", orjson.dumps(ARGUMENTS).decode())), calls=[SEARCH]
    ),
    "the function call of old": Odd(
        frames(chunk({"function_call": {"name": "search", "arguments": ARGUMENTS}}), chunk({}, "function_call")),
        calls=[SEARCH],
    ),
    "a message in place of deltas": Odd(
        frames({"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}), "Hello"
    ),
    "content in parts": Odd(
        frames(chunk({"content": [{"type": "text", "text": "He"}, {"type": "text", "text": "y"}]}), END), "Hey"
    ),
    "two end marks": Odd(frames(*said("Hi")) + DONE, "Hi"),
    "a second choice": Odd(
        frames({"choices": [{"index": at, "delta": {"content": text}} for at, text in enumerate("AZ")]}, END),
        "A",
    ),
    "JSON in place of a stream": Odd(
        orjson.dumps(
            {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}], "usage": usage(5, 2)}
        ),
        "whole",
    ),
    "reasoning under another name": Odd(frames(chunk({"reasoning": "hm"}), chunk({"content": "ok"}), END), "ok"),
}


@pytest.mark.parametrize("name", VARIANTS)
async def test_it_is_read(name: str, model_server: ModelServer, http: httpx2.AsyncClient) -> None:
    odd = VARIANTS[name]
    model_server.script(Reply(raw=odd.raw))
    message = await lean(model_server, http, "chat", model="m-1").ainvoke("Hello", on_text=Pieces())
    assert message.text == odd.text
    assert [(each["name"], each["args"]) for each in message.tool_calls] == list(odd.calls)
    assert not message.invalid_tool_calls
