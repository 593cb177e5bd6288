"""Responses as OpenAI's clients read them: whole, and as the events of a stream. Pure functions.

A turn's event becomes a fixed run of events of a response, each numbered by the turn's event and its place in the
run: so a stream can be taken up again from any number, in any process.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from api.openai.chat import citations_of, created_at
from api.openai.turn_request import usage_of
from api.streams import TurnEvents
from services.conversations.turn import StoredTurn
from state.events import TurnEvent

_RUN = 64
"""Numbers for each event of a turn."""
_MOST_CITATIONS = _RUN - 8

_STATUSES = {
    "waiting": "queued",
    "running": "in_progress",
    "completed": "completed",
    "partial": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
}
_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Reasons why a response that has ended is incomplete, by how its answer ended."""


@dataclass(frozen=True)
class ResponseHead:
    """Fields of a response in any state."""

    turn_id: UUID
    model: str
    conversation_id: UUID | None = None
    background: bool = False
    note: Mapping[str, str] | None = None
    """Why nothing is remembered, where that is so."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that its response repeats."""

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
            "id": f"resp_{self.turn_id}",
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
    content = {
        "answer": turn.answer or "",
        "sources": (turn.context_report or {}).get("sources", []),
        "usage": turn.usage,
    }
    reason = _CUT.get((turn.context_report or {}).get("finish", ""))
    status = "incomplete" if reason and turn.status == "completed" else _STATUSES[turn.status]
    output = [_message(head, content, status)] if content["answer"] else []
    usage = _usage(content) if turn.usage else None
    return head.view(status, output=output, usage=usage, error=turn.error, reason=reason)


def response_of_last(head: ResponseHead, last: TurnEvent) -> dict[str, Any]:
    """A response, from its turn's last event."""
    if last.status == "done":
        reason = _CUT.get(last.content.get("finish", ""))
        status = "incomplete" if reason else "completed"
        output = [_message(head, last.content, status)]
        return head.view(status, output=output, usage=_usage(last.content), reason=reason)
    status = "cancelled" if last.content["code"] == "cancelled" else "failed"
    content = {"answer": last.content.get("answer", ""), "sources": []}
    output = [_message(head, content, "incomplete")] if content["answer"] else []
    return head.view(status, output=output, error=last.content)


def event_before(sequence_number: int) -> int:
    """The turn's event behind which to read, for what follows a number of a response's stream."""
    return max(sequence_number // _RUN, 0)


async def response_stream(head: ResponseHead, events: TurnEvents, after: int = -1) -> AsyncGenerator[bytes, None]:
    """The turn's events as those of a response, behind the number `after`."""
    async with aclosing(events):
        async for batch in events:
            frames = b"".join(frame for event in batch for frame in _frames(head, event, after))
            if frames:
                yield frames


def _frames(head: ResponseHead, event: TurnEvent, after: int) -> list[bytes]:
    first = (event.sequence - 1) * _RUN
    if event.status == "token":  # most are: without a detour
        if first <= after:
            return []
        text = orjson.dumps(event.content)
        return [
            b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"msg_%s",'
            b'"output_index":0,"content_index":0,"logprobs":[],"sequence_number":%d,"delta":%s}\n\n'
            % (str(head.turn_id).encode(), first, text)
        ]
    return [
        b"event: %s\ndata: %s\n\n"
        % (shown["type"].encode(), orjson.dumps({**shown, "sequence_number": first + place}))
        for place, shown in enumerate(_run(head, event))
        if first + place > after
    ]


def _run(head: ResponseHead, event: TurnEvent) -> list[dict[str, Any]]:
    if event.status == "turn":
        begun = head.view("in_progress")
        item = _message(head, None, "in_progress")
        return [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.content_part.added", **_place(head), "part": _part("", [])},
        ]
    if event.status == "error":
        ended = response_of_last(head, event)
        return [{"type": "response.failed", "response": ended}]
    if event.status != "done":
        return []
    ended = response_of_last(head, event)
    (item,) = ended["output"]
    (part,) = item["content"]
    annotations = [
        {
            "type": "response.output_text.annotation.added",
            **_place(head),
            "annotation_index": n,
            "annotation": each,
        }
        for n, each in enumerate(part["annotations"])
    ]
    return [
        *annotations,
        {"type": "response.output_text.done", **_place(head), "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **_place(head), "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": f"response.{ended['status']}", "response": ended},
    ]


def _place(head: ResponseHead) -> dict[str, Any]:
    return {"item_id": f"msg_{head.turn_id}", "output_index": 0, "content_index": 0}


def _message(head: ResponseHead, content: Mapping[str, Any] | None, status: str) -> dict[str, Any]:
    shown = status if status in {"in_progress", "completed"} else "incomplete"
    parts = []
    if content is not None:
        cited = citations_of(content["sources"], content["answer"])[:_MOST_CITATIONS]
        parts = [_part(content["answer"], [{"type": "url_citation", **each} for each in cited])]
    return {
        "id": f"msg_{head.turn_id}",
        "type": "message",
        "status": shown,
        "role": "assistant",
        "content": parts,
    }


def _part(text: str, annotations: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def _usage(content: Mapping[str, Any]) -> dict[str, Any]:
    usage = usage_of(content)
    return {
        "input_tokens": usage["input_tokens"],
        "input_tokens_details": {"cached_tokens": usage["cached_tokens"]},
        "output_tokens": usage["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
    }
