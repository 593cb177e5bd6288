"""Messages in the form of Anthropic's API: whole, and as the events of a stream. Pure functions."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson

from api.openai.chat import part_of
from api.openai.turn_request import StartedTurn, usage_of
from api.problems import anthropic_error, problem_of_failed
from state.events import CALL, TurnEvent

_STOPS: Mapping[str, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
}


def message_of(asked: StartedTurn, last: TurnEvent) -> dict[str, Any]:
    """Return a whole message, made from the last event of a turn's part."""
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
    """Yield the events of a turn's part as events of a message."""
    yield _frame({"type": "message_start", "message": _head(asked)}) + _frame({"type": "ping"})
    blocks = _Blocks()
    async with aclosing(asked.events) as events:
        async for batch in events:
            frames: list[bytes] = []
            for event in batch:
                if event.status == "token":
                    frames += blocks.text(event.content)
                elif event.status == CALL:
                    frames += blocks.call(event.content)
                elif event.is_last:
                    frames += _end(asked, event, blocks)
            if frames:
                yield b"".join(frames)


class _Blocks:
    """The blocks of a message while it is streamed: its text, and one for each call."""

    def __init__(self) -> None:
        self.begun: list[int | None] = []
        """Place of the call of each block; None = the text."""

    def text(self, text: str) -> list[bytes]:
        """Return the frames for a piece of the text."""
        begin = self._begin(None, {"type": "text", "text": ""})
        return [*begin, _delta(self.begun.index(None), {"type": "text_delta", "text": text})]

    def call(self, piece: Mapping[str, Any]) -> list[bytes]:
        """Return the frames for a piece of a call."""
        block = {"type": "tool_use", "id": piece["id"], "name": piece["name"], "input": {}}
        begin = self._begin(piece["place"], block)
        delta = {"type": "input_json_delta", "partial_json": piece["arguments"]}
        return [*begin, _delta(self.begun.index(piece["place"]), delta)]

    def end(self) -> list[bytes]:
        """Return the frame that ends the last block; none without a block."""
        return [_frame({"type": "content_block_stop", "index": len(self.begun) - 1})] if self.begun else []

    def _begin(self, place: int | None, block: dict[str, Any]) -> list[bytes]:
        if place in self.begun:
            return []
        ended = self.end()
        self.begun.append(place)
        begun = {"type": "content_block_start", "index": len(self.begun) - 1, "content_block": block}
        return [*ended, _frame(begun)]


def _end(asked: StartedTurn, last: TurnEvent, blocks: _Blocks) -> list[bytes]:
    if last.status == "error":
        return [_frame(anthropic_error(problem_of_failed(last)))]
    whole = message_of(asked, last)
    frames: list[bytes] = []
    texts = [block["text"] for block in whole["content"] if block["type"] == "text"]
    if texts and None not in blocks.begun:
        frames += blocks.text(texts[0])
    for place, block in enumerate(each for each in whole["content"] if each["type"] == "tool_use"):
        if place not in blocks.begun:
            frames += blocks.call({**block, "place": place, "arguments": orjson.dumps(block["input"]).decode()})
    frames += blocks.end()
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    frames.append(_frame({"type": "message_delta", "delta": ended, "usage": whole["usage"]}))
    return [*frames, _frame({"type": "message_stop"})]


def _delta(index: int, delta: dict[str, Any]) -> bytes:
    return _frame({"type": "content_block_delta", "index": index, "delta": delta})


def _frame(event: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event))
