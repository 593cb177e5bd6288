"""A stand-in for the language model: an OpenAI-compatible server that costs next to nothing.

It listens on a free loopback port and prints it. `/paced/v1` sends the first token after 200 ms and
the others 5 ms apart, `/slow/v1` 250 ms apart; `/burst/v1` sends all at once. Each speaks the Responses
API and Chat Completions, and every token is a separate write. A prompt with `SLOWLY` is answered at the slow
pace everywhere. A prompt with Chinese in it is answered in Chinese. What is to be filed gets an answer that files
two statements of the user.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, cast

Mode = Literal["paced", "burst"]
Api = Literal["responses", "chat"]

FIRST_TOKEN_S = 0.200
TOKEN_GAP_S = 0.005
SLOW_GAP_S = 0.250
TOKENS = 64
CHARACTERS = 320

SLOWLY = "[at the slow pace]"
"""No ordinary message says this."""
_FOLDERS = (b"/paced", b"/slow", b"/burst")
ANSWER = (
    "That sounds like a good day, and I am glad that it worked out in the end. If it's dry, you could go "
    "back on Sunday morning, take the early train and have lunch by the water before the others arrive. I would "
    "ask the owner about the key first, since the office closes at noon, and take something warm "
    "for the way home too."
)
_PIECES = [ANSWER[begin : begin + CHARACTERS // TOKENS] for begin in range(0, CHARACTERS, CHARACTERS // TOKENS)]
_CHINESE = (
    "听起来是很不错的一天，最后能顺利解决真让人高兴。如果天气一直不下雨，你周日早上可以再去一次，坐早一点的火车，等其他"
    "人到之前先在水边吃个午饭。我会先问问房东钥匙的事，因为办公室中午就关门了，路上最好再带一件厚一点的衣服，免得晚上回"
    "家的路上太冷，也别忘了带伞和水。"
)
_CHINESE_PIECES = [_CHINESE[begin : begin + 2] for begin in range(0, 2 * TOKENS, 2)]
_IS_CHINESE = re.compile(rb"[\xe4-\xe9][\x80-\xbf]{2}")
"""A Chinese character as it stands in a request's body."""
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_FILES = b"leave_out {message, quote}"
"""Words by which a prompt for filing is known."""
_SAID = re.compile(rb"\[u\d+\] .{6,40}?:\\n> ([^\"\\\\]{8,200})")
"""The first line of a user's message in such a prompt, as it stands in a request's body."""
_MOST_FILED = 2
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


def chat_script(pieces: Sequence[str]) -> Script:
    """An answer of Chat Completions, with usage."""
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
    message = {"role": "assistant", "content": "".join(pieces)}
    return Script(
        [chunk({"role": "assistant", "content": ""})],
        [chunk({"content": piece}) for piece in pieces],
        [chunk({}, "stop"), {**base, "choices": [], "usage": usage}, "[DONE]"],
        {
            **base,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        },
    )


def responses_script(pieces: Sequence[str]) -> Script:
    """An answer of the Responses API, with usage."""
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
    whole = "".join(pieces)
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
        {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **place} for piece in pieces
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

    def __init__(self, scripts: dict[bytes, tuple[Script, Script]]) -> None:
        self._scripts = scripts
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
        scripts = self._scripts.get(path.removeprefix(folder))
        if scripts is None:
            self._write(_NOT_FOUND)
            return
        script = scripts[1 if _IS_CHINESE.search(body) else 0]
        if _FILES in body:
            script = _WRITERS[path.removeprefix(folder)]([_filed(body)])
        if b'"stream":true' not in body.replace(b" ", b""):
            self._write(script.whole)
        elif _FILES in body:
            self._write(script.before + script.tokens[0] + script.after)
        else:
            self._stream(script, b"/slow" if SLOWLY.encode() in body else folder)

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


_WRITERS = {b"/v1/chat/completions": chat_script, b"/v1/responses": responses_script}


def _filed(body: bytes) -> str:
    """Answer the question what to file: the first statements, as they were said."""
    said = dict.fromkeys(each.decode(errors="ignore") for each in _SAID.findall(body))
    told = [each for each in said if not each.rstrip().endswith(("?", "？"))]
    operations = [{"op": "add", "field": "facts", "text": each, "quote": each} for each in told[:_MOST_FILED]]
    return json.dumps({"operations": operations, "story": False}, ensure_ascii=False)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def _serve() -> None:
    scripts = {path: (written(_PIECES), written(_CHINESE_PIECES)) for path, written in _WRITERS.items()}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: StandIn(scripts), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    # The standard loop and not uvloop: uvloop would join the writes of one turn of the loop into one.
    asyncio.run(_serve())
