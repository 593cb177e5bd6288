"""Responses in the form that OpenAI's clients read: whole, and as the events of a stream. Pure functions.

One event of the turn becomes several events of the response. Each is numbered by the turn's event and its place
among these, so any process can continue a stream from any number. A turn that calls the client's tools is one
response for each of its parts.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from api.openai.chat import created_at, part_of
from api.openai.response_items import ResponseItems, call_item, message_item
from api.openai.turn_request import usage_of
from api.streams import TurnEvents
from services.conversations.turn import StoredTurn
from state.client_tools import said_in
from state.events import CALL, TurnEvent

_RUN = 64
"""How many numbers each event of a turn has for the events of its response."""

_STATUSES = {
    "waiting": "queued",
    "running": "in_progress",
    "paused": "completed",
    "completed": "completed",
    "partial": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
}
_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Reason why a response is incomplete, by the way its answer ended."""


@dataclass(frozen=True)
class ResponseHead:
    """Fields of a response in any state."""

    turn_id: UUID
    model: str
    conversation_id: UUID | None = None
    background: bool = False
    note: Mapping[str, str] | None = None
    """Reason why nothing is remembered, if that is so."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that its response repeats."""
    part: int = 0
    """Number of the turn's part that the response shows, from 0."""

    @property
    def own(self) -> str:
        """Return the part that an item's id shares with the id of its message, behind the prefix that names the
        kind."""
        return f"{self.turn_id}_{self.part}" if self.part else str(self.turn_id)

    def view(
        self,
        status: str,
        *,
        output: list[dict[str, Any]] | None = None,
        usage: dict[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """The response as a document."""
        return {
            "id": f"resp_{self.own}",
            "object": "response",
            "created_at": created_at(self.turn_id),
            "status": status,
            "background": self.background,
            # Who cancels a response knows why it ended.
            "error": _error(error) if error and status != "cancelled" else None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": None,
            "metadata": {},
            "model": self.model,
            "output": output or [],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "conversation": {"id": f"conv_{self.conversation_id}"} if self.conversation_id else None,
            "store": self.conversation_id is not None,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "truncation": "disabled",
            "usage": usage,
            **self.echo,
            **({"anamnesis": dict(self.note)} if self.note else {}),
        }


def _error(error: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": error["code"], "message": error["message"]}


def response_of_stored(head: ResponseHead, turn: StoredTurn) -> dict[str, Any]:
    """A response, from the current state of its turn."""
    report = turn.context_report or {}
    rounds = report.get("rounds", [])
    if head.part < len(rounds):
        kept = rounds[head.part]
        content = {"answer": kept["text"], "calls": kept["calls"], "sources": [], "usage": kept["usage"]}
        return head.view("completed", output=_output(head, content, "completed"), usage=_usage(content))
    content = {"answer": turn.answer or "", "sources": report.get("sources", []), "usage": turn.usage}
    content["answer"] = content["answer"][len(said_in(rounds)) :]
    reason = _CUT.get(report.get("finish", ""))
    status = "incomplete" if reason and turn.status == "completed" else _STATUSES[turn.status]
    output = _output(head, content, status) if content["answer"] else []
    usage = _usage(content) if turn.usage else None
    return head.view(status, output=output, usage=usage, error=turn.error, reason=reason)


def response_of_last(head: ResponseHead, last: TurnEvent) -> dict[str, Any]:
    """A response, from the last event of its part of a turn."""
    content = part_of(last.content) if "answer" in last.content else last.content
    if last.status != "error":
        reason = _CUT.get(content.get("finish", ""))
        status = "incomplete" if reason else "completed"
        return head.view(status, output=_output(head, content, status), usage=_usage(content), reason=reason)
    status = "cancelled" if content["code"] == "cancelled" else "failed"
    said = {"answer": content.get("answer", ""), "sources": []}
    output = _output(head, said, "incomplete") if said["answer"] else []
    return head.view(status, output=output, error=content)


async def response_stream(head: ResponseHead, events: TurnEvents, after: int = -1) -> AsyncGenerator[bytes, None]:
    """Yield the events of a part of a turn as events of a response, beginning after the number `after`. The whole
    part is read in any case, because the message item begins with its first text."""
    items = ResponseItems(head.own)
    async with aclosing(events):
        async for batch in events:
            shown: list[bytes] = []
            for event in batch:
                first = (event.sequence - 1) * _RUN
                if event.status == "token" and items.begun[:1] == [None]:  # most events: a fast path
                    if first > after:
                        shown.append(_text_frame(head, event, first))
                    continue
                shown += _frames(_run(head, items, event), first, after)
            if frames := b"".join(shown):
                yield frames


def _text_frame(head: ResponseHead, event: TurnEvent, number: int) -> bytes:
    return (
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"msg_%s",'
        b'"output_index":0,"content_index":0,"logprobs":[],"sequence_number":%d,"delta":%s}\n\n'
        % (head.own.encode(), number, orjson.dumps(event.content))
    )


def _frames(run: Sequence[dict[str, Any]], first: int, after: int) -> list[bytes]:
    return [
        b"event: %s\ndata: %s\n\n"
        % (shown["type"].encode(), orjson.dumps({**shown, "sequence_number": first + place}))
        for place, shown in enumerate(run)
        if first + place > after
    ]


def _run(head: ResponseHead, items: ResponseItems, event: TurnEvent) -> list[dict[str, Any]]:
    if event.status == "turn":
        begun = head.view("in_progress")
        return [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
        ]
    if event.status == "token":
        return items.text(event.content)
    if event.status == CALL:
        return items.call(event.content)
    if event.status == "error":
        ended = response_of_last(head, event)
        return [{"type": "response.failed", "response": ended}]
    if event.status not in {"done", "calls"}:
        return []
    ended = response_of_last(head, event)
    run, ended["output"] = items.end(ended["output"])
    return [*run, {"type": f"response.{ended['status']}", "response": ended}]


def _output(head: ResponseHead, content: Mapping[str, Any], status: str) -> list[dict[str, Any]]:
    """Return the items of a response: a message, unless it only calls tools, and its calls."""
    calls = [call_item(each) for each in content.get("calls", ())]
    return [message_item(head.own, content, status), *calls] if content["answer"] or not calls else calls


def _usage(content: Mapping[str, Any]) -> dict[str, Any]:
    usage = usage_of(content)
    return {
        "input_tokens": usage["input_tokens"],
        "input_tokens_details": {"cached_tokens": usage["cached_tokens"]},
        "output_tokens": usage["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
    }
