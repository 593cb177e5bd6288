"""Messages as Anthropic's clients read them: whole, and as the events of a stream. Pure functions."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson

from api.openai.chat import part_of
from api.openai.turn_request import StartedTurn, usage_of
from api.problems import anthropic_error, problem_of_failed
from state.events import TurnEvent

_STOPS: Mapping[str, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
}


def message_of(asked: StartedTurn, last: TurnEvent) -> dict[str, Any]:
    """A whole message, from the last event of a turn's part."""
    content = part_of(last.content)
    blocks: list[dict[str, Any]] = [{"type": "text", "text": content["answer"]}] if content["answer"] else []
    blocks += [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}
        for call in content.get("calls", ())
    ]
    return {
        **_head(asked),
        "content": blocks,
        "stop_reason": _STOPS[content.get("finish", "stop")],
        "usage": _usage(content),
    }


def _head(asked: StartedTurn) -> dict[str, Any]:
    return {
        "id": f"msg_{asked.turn_id.hex}{f'_{asked.part}' if asked.part else ''}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
        **({"anamnesis": asked.note} if asked.note else {}),
    }


def _usage(content: Mapping[str, Any]) -> dict[str, int]:
    usage = usage_of(content)
    return {
        "input_tokens": usage["input_tokens"] - usage["cached_tokens"],
        "cache_read_input_tokens": usage["cached_tokens"],
        "cache_creation_input_tokens": 0,
        "output_tokens": usage["output_tokens"],
    }


async def message_stream(asked: StartedTurn) -> AsyncGenerator[bytes, None]:
    """The events of a turn's part as those of a message."""
    yield _frame({"type": "message_start", "message": _head(asked)}) + _frame({"type": "ping"})
    speaks = False
    async with aclosing(asked.events) as events:
        async for batch in events:
            frames: list[bytes] = []
            for event in batch:
                if event.status == "token":
                    if not speaks:
                        frames.append(_begin(0, {"type": "text", "text": ""}))
                    speaks = True
                    frames.append(_delta(0, {"type": "text_delta", "text": event.content}))
                elif event.is_last:
                    frames += _end(asked, event, speaks=speaks)
            if frames:
                yield b"".join(frames)


def _end(asked: StartedTurn, last: TurnEvent, *, speaks: bool) -> list[bytes]:
    if last.status == "error":
        return [_frame(anthropic_error(problem_of_failed(last)))]
    whole = message_of(asked, last)
    frames: list[bytes] = []
    for index, block in enumerate(whole["content"]):
        if block["type"] == "tool_use":
            frames.append(_begin(index, {**block, "input": {}}))
            given = orjson.dumps(block["input"]).decode()
            frames.append(_delta(index, {"type": "input_json_delta", "partial_json": given}))
        elif not speaks:
            frames.append(_begin(index, {"type": "text", "text": ""}))
            frames.append(_delta(index, {"type": "text_delta", "text": block["text"]}))
        frames.append(_frame({"type": "content_block_stop", "index": index}))
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    frames.append(_frame({"type": "message_delta", "delta": ended, "usage": whole["usage"]}))
    return [*frames, _frame({"type": "message_stop"})]


def _begin(index: int, block: dict[str, Any]) -> bytes:
    return _frame({"type": "content_block_start", "index": index, "content_block": block})


def _delta(index: int, delta: dict[str, Any]) -> bytes:
    return _frame({"type": "content_block_delta", "index": index, "delta": delta})


def _frame(event: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event))
