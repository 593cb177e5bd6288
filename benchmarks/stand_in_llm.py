"""A stand-in for the language model: an OpenAI-compatible server that costs next to nothing.

It listens on a free loopback port and prints it. `/paced/v1` sends the first token after 200 ms and
the others 5 ms apart, `/slow/v1` 250 ms apart; `/burst/v1` sends all at once. Each speaks the Responses
API and Chat Completions, and every token is a separate write. A prompt with the word `slowly` is answered at
the slow pace everywhere. `GET /seen` says how many prompts held which code of a lock (`benchmarks.remembering`).
"""

import asyncio
import json
import re
from collections import Counter
from functools import partial
from typing import Any, Literal, cast

Mode = Literal["paced", "burst"]
Api = Literal["responses", "chat"]

FIRST_TOKEN_S = 0.200
TOKEN_GAP_S = 0.005
SLOW_GAP_S = 0.250
TOKENS = 64
CHARACTERS = 320

_FOLDERS = (b"/paced", b"/slow", b"/burst")
_PIECES = [f"tok{number:02d}" for number in range(TOKENS)]
ANSWER = "".join(_PIECES)
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_CODE = re.compile(rb"lock-\d+-\d+")
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_END = b"0\r\n\r\n"


def _chunk(event: dict[str, Any] | str) -> bytes:
    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
    text = event if isinstance(event, str) else json.dumps(event, separators=(",", ":"))
    data = f"{name}data: {text}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def _whole(answer: dict[str, Any]) -> bytes:
    data = json.dumps(answer).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


class Script:
    """One API's answer, rendered once: what comes before the tokens, the tokens, what comes after."""

    def __init__(self, before: list[Any], tokens: list[Any], after: list[Any], whole: dict[str, Any]) -> None:
        self.before = _HEAD + b"".join(map(_chunk, before))
        self.tokens = [_chunk(token) for token in tokens]
        self.after = b"".join(map(_chunk, after)) + _END
        self.whole = _whole(whole)
        """The answer to a request that does not ask for a stream."""


def chat_script() -> Script:
    """Chat Completions, with usage."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "stand-in"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**base, "system_fingerprint": "fp_1", "choices": [choice]}

    usage = {
        "prompt_tokens": 100,
        "completion_tokens": TOKENS,
        "total_tokens": 100 + TOKENS,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    message = {"role": "assistant", "content": ANSWER}
    return Script(
        [chunk({"role": "assistant", "content": ""})],
        [chunk({"content": piece}) for piece in _PIECES],
        [chunk({}, "stop"), {**base, "choices": [], "usage": usage}, "[DONE]"],
        {
            **base,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        },
    )


def responses_script() -> Script:
    """The Responses API, with usage."""
    response: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "stand-in",
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }
    whole = ANSWER
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    done = {**item, "status": "completed", "content": [{**part, "text": whole}]}
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 100 + TOKENS,
    }
    completed = {**response, "status": "completed", "output": [done], "usage": usage}
    before: list[dict[str, Any]] = [
        {"type": "response.created", "response": response},
        {"type": "response.in_progress", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", "part": part, **place},
    ]
    tokens: list[dict[str, Any]] = [
        {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **place} for piece in _PIECES
    ]
    after: list[dict[str, Any]] = [
        {"type": "response.output_text.done", "text": whole, "logprobs": [], **place},
        {"type": "response.content_part.done", "part": {**part, "text": whole}, **place},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": completed},
    ]
    for number, event in enumerate([*before, *tokens, *after]):
        event["sequence_number"] = number
    return Script(before, tokens, after, completed)


class StandIn(asyncio.Protocol):
    """One connection, kept open; a request at a time."""

    def __init__(self, scripts: dict[bytes, Script], seen: Counter[str]) -> None:
        self._scripts = scripts
        self._seen = seen
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Answer once head and body are there."""
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return
        self._received = b""
        path = head.split(b" ", 2)[1]
        folder = next((name for name in _FOLDERS if path.startswith(name)), b"")
        script = self._scripts.get(path.removeprefix(folder))
        if path == b"/seen":
            self._write(_whole(dict(self._seen)))
        elif script is None:
            self._write(_NOT_FOUND)
        elif b'"stream":true' not in body.replace(b" ", b""):
            self._write(script.whole)
        else:
            self._seen.update({code.decode() for code in _CODE.findall(body)})
            self._stream(script, b"/slow" if b"slowly" in body else folder)

    def _stream(self, script: Script, folder: bytes) -> None:
        self._write(script.before)
        if folder == b"/burst":
            for token in script.tokens:
                self._write(token)
            self._write(script.after)
        else:
            gap_s = SLOW_GAP_S if folder == b"/slow" else TOKEN_GAP_S
            self._pace(script, 0, asyncio.get_running_loop().time() + FIRST_TOKEN_S, gap_s)

    def _pace(self, script: Script, number: int, when: float, gap_s: float) -> None:
        asyncio.get_running_loop().call_at(when, partial(self._paced, script, number, when, gap_s))

    def _paced(self, script: Script, number: int, when: float, gap_s: float) -> None:
        self._write(script.tokens[number])
        if number + 1 < TOKENS:
            self._pace(script, number + 1, when + gap_s, gap_s)
        else:
            self._write(script.after)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def _serve() -> None:
    scripts = {b"/v1/chat/completions": chat_script(), b"/v1/responses": responses_script()}
    loop = asyncio.get_running_loop()
    seen: Counter[str] = Counter()
    server = await loop.create_server(lambda: StandIn(scripts, seen), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    # The standard loop and not uvloop: uvloop would join the writes of one turn of the loop into one.
    asyncio.run(_serve())
