"""A scripted OpenAI-compatible server: it answers what the test tells it to, over real HTTP, in both APIs."""

import asyncio
import contextlib
import json
import re
import socket
import struct
import threading
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import web

Ending = Literal["complete", "length", "cut", "abort", "reset"]
_WHOLE = frozenset({"complete", "length"})


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for."""

    name: str
    arguments: dict[str, Any]
    call_id: str = "call_1"


@dataclass(frozen=True)
class Reply:
    """One scripted reply.

    `ending`: `complete` sends the finish event; `length` says that the answer reached its maximum; `cut` ends the
    body without a finish event; `abort` closes the connection and `reset` resets it, both without ending the body.
    `raw` is sent instead of anything composed; a `status` other than 200 is an error answer.
    """

    pieces: Sequence[str] = ()
    tool_calls: Sequence[ToolCall] = ()
    status: int = 200
    error_code: str | None = None
    error_message: str | None = None
    """None = `scripted` and the status."""
    ending: Ending = "complete"
    delay_s: float = 0.0
    """Seconds before the headers."""
    gap_s: float = 0.0
    """Seconds between the pieces."""
    held: threading.Event | None = None
    """Every piece but the first waits until this is set."""
    raw: bytes | None = None
    raw_pieces: Sequence[bytes] = ()
    """Pieces that are sent like `raw`, one after another, `gap_s` apart."""
    linger_s: float = 0.0
    """Seconds between the last piece and the end of the body."""
    silent: bool = False
    """Whether nothing at all is sent, not even headers; for `abort` and `reset`."""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Received:
    """One request as the server received it."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    peer: str = ""
    """Address and port of the client: requests over one connection have the same."""

    @property
    def prompt(self) -> list[tuple[str, str]]:
        """Return role and text of every message, in either API's form; what the service added to the user's
        message counts as a message of the system."""
        items = self.body.get("messages") or self.body.get("input") or []
        shown: list[tuple[str, str]] = []
        for item in items:
            role, text = item.get("role", item.get("type", "")), _text(item.get("content") or "")
            added = _CONTEXT.fullmatch(text) if role == "user" else None
            unanswered, context, said = added.groups() if added else ("", "", text)
            shown += [("user", unanswered.strip())] if unanswered else []
            shown += [("system", context)] if context else []
            shown.append((role, said))
        return shown

    @property
    def roles(self) -> list[str]:
        """The roles of the messages as they were sent."""
        items = self.body.get("messages") or self.body.get("input") or []
        return [str(item.get("role", item.get("type", ""))) for item in items]

    @property
    def said(self) -> list[str]:
        """Return the texts of the user and the model, without the prompt's own parts, such as the time."""
        return [text for role, text in self.prompt if role in {"user", "assistant"}]


SOME_TOKENS = 100


def _some_tokens(_: Received) -> int:
    return SOME_TOKENS


_CONTEXT = re.compile(r"(.*?)<context>\n(.*)\n</context>\s*(.*)", re.DOTALL)

_NUMBERED = re.compile(r"^\d+\. ", re.MULTILINE)

BACKGROUND = "background"
"""Small model of a service that outlives a test. It gets the default reply, and no test sees its requests,
because a job of an earlier test may ask at any moment."""

DEFAULT = Reply(["Certainly", ", ", "here ", "is ", "the ", "answer", "."])

LISTED: Sequence[dict[str, Any]] = ({"id": "small"}, {"id": "scripted"})


@dataclass(frozen=True)
class EmbeddingsScript:
    """The default answers of the embeddings endpoint."""

    status: int = 200
    delay_s: float = 0.0
    """Maximum delay in seconds: it ends when the test sets another script."""
    dimensions: int | None = None
    """Dimensions of its vectors, whatever was asked for."""
    most_texts: int | None = None
    """Maximum texts of a request; it refuses more."""
    refuses_dimensions: bool = False
    """Whether it refuses requests that name dimensions."""
    from_texts: int = 1
    """Minimum texts to which the script applies; smaller requests are answered without delay or error."""


class ModelServer:
    """The server, in its own thread: `with ModelServer() as server: … server.base_url`."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self._script: deque[Reply] = deque()
        self._script_of: dict[str, deque[Reply]] = {}
        self.default: Reply | Callable[[Received], Reply] = DEFAULT
        self.input_tokens: Callable[[Received], int] = _some_tokens
        """Returns the tokens that it reports for a prompt."""
        self.embeddings = EmbeddingsScript()
        self.listed: Sequence[dict[str, Any]] = LISTED
        self.agrees = True
        """Whether it confirms what it has filed when it is asked again; no test sees those requests."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model server", daemon=True)
        self._runner: web.AppRunner | None = None
        self.base_url = ""

    def script(self, *replies: Reply, model: str | None = None) -> None:
        """Give these replies to the next requests (for `model`, if one is named); after them, the default."""
        if model is None:
            self._script.extend(replies)
        else:
            self._script_of.setdefault(model, deque()).extend(replies)

    def unasked(self, model: str) -> int:
        """Return how many scripted replies for `model` have not been asked for."""
        return len(self._script_of.get(model, ()))

    async def asked(self, words: str = "", times: int = 1) -> None:
        """Wait until this many requests with these words have arrived."""
        async with asyncio.timeout(60):
            while sum(words in json.dumps(each.body, ensure_ascii=False) for each in self.requests) < times:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    def reset(self) -> None:
        """Forget the script and what was received."""
        self._script.clear()
        self._script_of.clear()
        self.default = DEFAULT
        self.input_tokens = _some_tokens
        self.embeddings = EmbeddingsScript()
        self.listed = LISTED
        self.agrees = True
        self.requests.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            self._call(self._runner.cleanup())
        self._call(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _start(self) -> None:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._answer(chat_events))
        app.router.add_post("/v1/responses", self._answer(responses_events))
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_get("/v1/models", self._list)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{port}/v1"

    def _answer(
        self, compose: Callable[[Reply, str, int], list[dict[str, Any]]]
    ) -> Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            received = _received(request, body)
            reply = DEFAULT if body.get("model") == BACKGROUND else self._next(received)
            await asyncio.sleep(reply.delay_s)
            if reply.status != 200 and reply.raw is not None:
                return web.Response(body=reply.raw, status=reply.status, headers=reply.headers)
            if reply.status != 200:
                message = reply.error_message or f"scripted {reply.status}"
                error = {"message": message, "type": "scripted", "code": reply.error_code}
                return web.json_response({"error": error}, status=reply.status, headers=reply.headers)
            if reply.silent:
                _end_badly(request, reply.ending)
                return web.Response()
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **reply.headers})
            with contextlib.suppress(ConnectionResetError):  # the client has heard enough
                await response.prepare(request)
                events = compose(reply, body.get("model", ""), self.input_tokens(received))
                async for data in _bodies(reply, events, request.path):
                    await response.write(data)
                await asyncio.sleep(reply.linger_s)
            _end_badly(request, reply.ending)
            return response

        return handle

    def _next(self, received: Received) -> Reply:
        """Return the reply that is due for a request that tests see."""
        if self.agrees and '"answers"' in received.prompt[0][1]:
            return Reply([json.dumps({"answers": ["yes"] * len(_NUMBERED.findall(received.prompt[-1][1]))})])
        self.requests.append(received)
        script = self._script_of.get(received.body.get("model", "")) or self._script
        default = self.default if isinstance(self.default, Reply) else self.default(received)
        return script.popleft() if script else default

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": list(self.listed)})

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        """Return vectors that depend only on the text; the script of answers does not apply."""
        body = await request.json()
        self.requests.append(_received(request, body))
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        how = self.embeddings if len(texts) >= self.embeddings.from_texts else EmbeddingsScript()
        end = self._loop.time() + how.delay_s
        while self._loop.time() < end and how is self.embeddings:  # noqa: ASYNC110 — set by another thread
            await asyncio.sleep(0.01)
        if how.status != 200:
            return web.json_response({"error": {"message": f"scripted {how.status}"}}, status=how.status)
        if how.most_texts is not None and len(texts) > how.most_texts:
            message = f"batch size is invalid, it should not be larger than {how.most_texts}"
            return web.json_response({"error": {"message": message}}, status=400)
        if how.refuses_dimensions and "dimensions" in body:
            message = "This model does not support matryoshka representation"
            return web.json_response({"error": {"message": message}}, status=400)
        dimensions = how.dimensions or body.get("dimensions") or 4
        data = [
            {"object": "embedding", "index": index, "embedding": vector_of(text, dimensions)}
            for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return web.json_response({"object": "list", "model": body["model"], "data": data, "usage": usage})


def vector_of(text: str, dimensions: int) -> list[float]:
    return [zlib.crc32(f"{place} {text}".encode()) % 1024 / 1024 for place in range(dimensions)]


def _received(request: web.Request, body: dict[str, Any]) -> Received:
    peer = request.transport.get_extra_info("peername") if request.transport else None
    return Received(request.path, body, dict(request.headers), str(peer))


async def _cancel_others() -> None:
    """End the handlers that are still asleep."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _end_badly(request: web.Request, ending: Ending) -> None:
    if request.transport is None or ending not in {"abort", "reset"}:
        return
    if ending == "reset":
        peer = request.transport.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()


async def _bodies(reply: Reply, events: list[dict[str, Any]], path: str) -> AsyncIterator[bytes]:
    if reply.raw is not None:
        yield reply.raw
        return
    if reply.raw_pieces:
        for piece in reply.raw_pieces:
            yield piece
            await asyncio.sleep(reply.gap_s)
        return
    for event in events:
        yield sse(event)
        if _has_text(event):
            await asyncio.sleep(reply.gap_s)
            while reply.held and not reply.held.is_set():  # noqa: ASYNC110 — by another thread
                await asyncio.sleep(0.01)
    if path.endswith("completions") and reply.ending in _WHOLE:
        yield b"data: [DONE]\n\n"


def _has_text(event: dict[str, Any]) -> bool:
    deltas = [event.get("delta"), *(choice["delta"].get("content") for choice in event.get("choices", ()))]
    return any(deltas)


def sse(event: dict[str, Any]) -> bytes:
    """One server-sent event."""
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def chat_events(reply: Reply, model: str, input_tokens: int = SOME_TOKENS) -> list[dict[str, Any]]:
    """The chunks of Chat Completions."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": piece}) for piece in reply.pieces]
    for index, call in enumerate(reply.tool_calls):
        function = {"name": call.name, "arguments": ""}
        events.append(
            chunk({"tool_calls": [{"index": index, "id": call.call_id, "type": "function", "function": function}]})
        )
        for part in _halves(json.dumps(call.arguments)):
            events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]}))
    if reply.ending in _WHOLE:
        finish = "length" if reply.ending == "length" else "tool_calls" if reply.tool_calls else "stop"
        events.append(chunk({}, finish))
        usage = {
            "prompt_tokens": input_tokens,
            "completion_tokens": len(reply.pieces),
            "total_tokens": input_tokens + len(reply.pieces),
            "prompt_tokens_details": {"cached_tokens": min(64, input_tokens)},
        }
        events.append({**base, "choices": [], "usage": usage})
    return events


def responses_events(reply: Reply, model: str, input_tokens: int = SOME_TOKENS) -> list[dict[str, Any]]:
    response: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": model,
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
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response},
        {"type": "response.in_progress", "response": response},
    ]
    output: list[dict[str, Any]] = []
    if reply.pieces:
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        part = {"type": "output_text", "text": "", "annotations": []}
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        events.append({"type": "response.output_item.added", "output_index": 0, "item": item})
        events.append({"type": "response.content_part.added", "part": part, **place})
        events += [
            {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **place}
            for piece in reply.pieces
        ]
        whole = "".join(reply.pieces)
        done = {**item, "status": "completed", "content": [{**part, "text": whole}]}
        if reply.ending == "complete":
            events.append({"type": "response.output_text.done", "text": whole, "logprobs": [], **place})
            events.append({"type": "response.content_part.done", "part": {**part, "text": whole}, **place})
            events.append({"type": "response.output_item.done", "output_index": 0, "item": done})
        output.append(done)
    for call in reply.tool_calls:
        index = len(output)
        arguments = json.dumps(call.arguments)
        item = {
            "id": f"fc_{index}",
            "type": "function_call",
            "status": "in_progress",
            "name": call.name,
            "call_id": call.call_id,
            "arguments": "",
        }
        place = {"item_id": item["id"], "output_index": index}
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events += [
            {"type": "response.function_call_arguments.delta", "delta": part, **place}
            for part in _halves(arguments)
        ]
        done = {**item, "status": "completed", "arguments": arguments}
        events.append({"type": "response.function_call_arguments.done", "arguments": arguments, **place})
        events.append({"type": "response.output_item.done", "output_index": index, "item": done})
        output.append(done)
    if reply.ending in _WHOLE:
        usage = {
            "input_tokens": input_tokens,
            "input_tokens_details": {"cached_tokens": min(64, input_tokens)},
            "output_tokens": len(reply.pieces),
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input_tokens + len(reply.pieces),
        }
        ended = {**response, "status": "completed", "output": output, "usage": usage}
        if reply.ending == "length":
            ended |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        events.append({"type": f"response.{ended['status']}", "response": ended})
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return events


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())
