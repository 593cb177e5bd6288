"""Chat completions as OpenAI's clients read them: whole, and as chunks of a stream. Pure functions."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any
from uuid import UUID

import orjson

from api.openai.citations import citations_of
from api.openai.errors import error_of_turn
from api.openai.turn_request import StartedTurn, usage_of
from api.streams import TurnEvents
from state.events import TurnEvent

_DONE = b"data: [DONE]\n\n"
_FIELDS = {"token": b"content", "reasoning": b"reasoning_content"}
"""Fields of a delta, by the event that they come from."""


def completion(asked: StartedTurn, last: TurnEvent, reasoning: str = "") -> dict[str, Any]:
    """A whole answer, from the event `done`; with the model's reasoning, for clients that show it."""
    content = last.content
    message: dict[str, Any] = {"role": "assistant", "content": content["answer"], "refusal": None}
    if reasoning:
        message["reasoning_content"] = reasoning
    if annotations := _annotations(content):
        message["annotations"] = annotations
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": content.get("finish", "stop")}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": usage_view(content), **_note(asked)}


async def chunks(
    asked: StartedTurn, events: TurnEvents, *, with_usage: bool, with_own: bool = False
) -> AsyncGenerator[bytes, None]:
    """Yield the turn's events as chunks; only `with_own` events also the tools that the service runs itself."""
    head = orjson.dumps(_head(asked, "chat.completion.chunk"))[:-1]
    usage = b',"usage":null' if with_usage else b""
    before = b"data: " + head + b',"choices":[{"index":0,"delta":{"'
    after = b'},"logprobs":null,"finish_reason":null}]' + usage + b"}\n\n"

    def frame(event: TurnEvent) -> bytes:
        if field := _FIELDS.get(event.status):
            return before + field + b'":' + orjson.dumps(event.content) + after
        return _own(event) if with_own else b""

    first: dict[str, Any] = {"role": "assistant", "content": ""}
    yield _chunk(head, first, None, usage, orjson.dumps(_note(asked))[1:-1])
    async with aclosing(events):
        async for batch in events:
            frames = [frame(event) for event in batch]
            if batch[-1].is_last:
                frames += _end(head, batch[-1], usage, with_usage=with_usage)
            if shown := b"".join(frames):
                yield shown


def _own(event: TurnEvent) -> bytes:
    """An event of the service under its own name; the last one without the answer."""
    content = event.content
    if event.is_last:
        content = {name: value for name, value in content.items() if name != "answer"}
    return b"event: anamnesis.%s\ndata: %s\n\n" % (event.status.encode(), orjson.dumps(content))


def _end(head: bytes, last: TurnEvent, usage: bytes, *, with_usage: bool) -> list[bytes]:
    if last.status == "error":
        return [b"data: " + orjson.dumps(error_of_turn(last)) + b"\n\n", _DONE]
    frames = []
    if annotations := _annotations(last.content):
        frames.append(_chunk(head, {"annotations": annotations}, None, usage))
    frames.append(_chunk(head, {}, last.content.get("finish", "stop"), usage))
    if with_usage:
        shown = orjson.dumps(usage_view(last.content))
        frames.append(b"data: " + head + b',"choices":[],"usage":' + shown + b"}\n\n")
    return [*frames, _DONE]


def usage_view(content: Mapping[str, Any]) -> dict[str, Any]:
    """Tokens as chat completions count them."""
    usage = usage_of(content)
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": usage["cached_tokens"]},
    }


def created_at(turn_id: UUID) -> int:
    """Return when a turn was opened, in seconds since 1970, from its id: the same for every reader."""
    return (turn_id.int >> 80) // 1000


def _head(asked: StartedTurn, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{asked.turn_id}",
        "object": kind,
        "created": created_at(asked.turn_id),
        "model": asked.model,
    }


def _chunk(head: bytes, delta: dict[str, Any], finish: str | None, usage: bytes, more: bytes = b"") -> bytes:
    choice = orjson.dumps([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])
    return b"data: " + head + b',"choices":' + choice + usage + (b"," + more if more else b"") + b"}\n\n"


def _note(asked: StartedTurn) -> dict[str, Any]:
    return {"anamnesis": asked.note} if asked.note else {}


def _annotations(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    cited = citations_of(content["sources"], content["answer"])
    return [{"type": "url_citation", "url_citation": each} for each in cited]
