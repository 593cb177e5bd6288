"""A turn's events as the parts of another protocol's stream: the AI SDK's UI messages, and AG-UI's events."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar
from uuid import UUID

import orjson

from api.openai.chat import citations_of, part_of
from api.streams import TurnEvents
from state.client_tools import ClientCall
from state.events import CALL, CALLS, TurnEvent

Part = dict[str, Any]


async def mapped(events: TurnEvents, mapper: "Mapper", after: int = 0) -> AsyncGenerator[bytes, None]:
    """Yield the frames of a stream, each with the number of its event, without those up to `after`. All events
    of the turn are read, because the mapping of an event depends on the earlier ones."""
    async with aclosing(events):
        async for batch in events:
            frames = b"".join(
                b"id: %d\ndata: %s\n\n" % (event.sequence, orjson.dumps(part))
                for event in batch
                for part in mapper.parts(event)
                if event.sequence > after
            )
            if frames:
                yield frames
    if mapper.end:
        yield mapper.end


class Mapper(ABC):
    """Maps the events of one turn to the parts of another protocol; it keeps state between events."""

    end: ClassVar[bytes] = b""
    """Text after the last part."""

    def __init__(
        self, begin: Sequence[Part], speak: Part, silence: Part, note: Mapping[str, Any] | None = None
    ) -> None:
        """Take the parts before everything, before the answer's text, and after that text, and what is told of
        the request."""
        self._note = {"ignored": note["ignored"]} if note and "ignored" in note else {}
        self._begin, self._speak, self._silence = begin, speak, silence
        self._begun = self._speaks = self._has_spoken = False
        self._called: set[int] = set()
        """Places of the client's calls that have begun."""

    def parts(self, event: TurnEvent) -> list[Part]:
        """Return the parts for the next event."""
        # Of a turn that ended long ago only the last event is left.
        begin, self._begun = ([] if self._begun else self._begin), True
        return [*begin, *self._of(event)]

    def _of(self, event: TurnEvent) -> list[Part]:
        content: Any = event.content
        if event.status == "token":
            return self._said(content)
        if event.status == "done":
            content = part_of(content)
            said = self._said(content["answer"]) if content["answer"] and not self._has_spoken else []
            return [*said, *self._ended_text(), *self._done(content)]
        if event.status == CALL:
            begins = content["place"] not in self._called
            self._called.add(content["place"])
            return [*self._ended_text(), *self._call_piece(content, begins=begins)]
        if event.status == CALLS:
            called = [
                part
                for place, call in enumerate(content["calls"])
                for part in self._call(call, begins=place not in self._called)
            ]
            return [*self._ended_text(), *called, *self._done(content)]
        if event.status == "error":
            return [*self._ended_text(), self._failed(content)]
        return self._other(event.status, content)

    def _said(self, text: str) -> list[Part]:
        begin, self._speaks, self._has_spoken = ([] if self._speaks else [self._speak]), True, True
        return [*begin, self._text(text)]

    def _ended_text(self) -> list[Part]:
        speaks, self._speaks = self._speaks, False
        return [self._silence] if speaks else []

    @abstractmethod
    def _text(self, text: str) -> Part: ...

    @abstractmethod
    def _other(self, status: str, content: Any) -> list[Part]: ...

    @abstractmethod
    def _call_piece(self, piece: dict[str, Any], *, begins: bool) -> list[Part]: ...

    @abstractmethod
    def _call(self, call: ClientCall, *, begins: bool) -> list[Part]:
        """Return the parts that end a call; all its parts if it `begins` with them."""

    @abstractmethod
    def _done(self, content: dict[str, Any]) -> list[Part]: ...

    @abstractmethod
    def _failed(self, content: dict[str, Any]) -> Part: ...


HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
_TEXT = "text"
"""Id of the answer's only text part."""


class UiMessageMapper(Mapper):
    """Maps to version 1 of the AI SDK's stream of UI messages, which `useChat` reads."""

    end = b"data: [DONE]\n\n"

    def __init__(self, turn_id: UUID, note: Mapping[str, Any] | None = None) -> None:
        super().__init__(
            [{"type": "start", "messageId": f"msg_{turn_id}"}, {"type": "start-step"}],
            {"type": "text-start", "id": _TEXT},
            {"type": "text-end", "id": _TEXT},
            note,
        )

    def _text(self, text: str) -> Part:
        return {"type": "text-delta", "id": _TEXT, "delta": text}

    def _other(self, status: str, content: Any) -> list[Part]:
        if status == "filler":
            return [{"type": "data-filler", "data": content, "transient": True}]
        if status not in {"tool_call", "tool_result"}:
            return []
        usual = {"toolCallId": content["id"], "providerExecuted": True, "dynamic": True}
        if status == "tool_call":
            called = {"toolName": content["name"], "input": content["arguments"]}
            return [{"type": "tool-input-available", **usual, **called}]
        if content["ok"]:
            return [{"type": "tool-output-available", **usual, "output": content["result"]}]
        return [{"type": "tool-output-error", **usual, "errorText": str(content["error"])}]

    def _call_piece(self, piece: dict[str, Any], *, begins: bool) -> list[Part]:
        begin = {"type": "tool-input-start", "toolCallId": piece["id"], "toolName": piece["name"]}
        delta = {"type": "tool-input-delta", "toolCallId": piece["id"], "inputTextDelta": piece["arguments"]}
        return [begin, delta] if begins else [delta]

    def _call(self, call: ClientCall, *, begins: bool) -> list[Part]:
        named = {"toolCallId": call["id"], "toolName": call["name"]}
        whole = {"type": "tool-input-available", **named, "input": call["arguments"]}
        return [{"type": "tool-input-start", **named}, whole] if begins else [whole]

    def _done(self, content: dict[str, Any]) -> list[Part]:
        cited = citations_of(content.get("sources") or [], content["answer"])
        sources = [
            {"type": "source-url", "sourceId": str(number), "url": each["url"], "title": each["title"]}
            for number, each in enumerate(cited, 1)
        ]
        about = {name: content.get(name) for name in ("turn_id", "usage", "degraded", "memory_changes")}
        about |= self._note
        reason = "tool-calls" if "calls" in content else "stop"
        finish = {"type": "finish", "finishReason": reason, "messageMetadata": about}
        return [*sources, {"type": "finish-step"}, finish]

    def _failed(self, content: dict[str, Any]) -> Part:
        if content["code"] == "cancelled":
            return {"type": "abort", "reason": content["message"]}
        return {"type": "error", "errorText": content["message"]}


class AgUiMapper(Mapper):
    """Maps a turn to a run in AG-UI's events, version 1.0. Tests check them against the types of its package."""

    def __init__(
        self, turn_id: UUID, note: Mapping[str, Any] | None = None, *, thread_id: str, run_id: str
    ) -> None:
        self._message = {"messageId": f"msg_{turn_id}"}
        self._run = {"threadId": thread_id, "runId": run_id}
        self._open = ""
        super().__init__(
            [{"type": "RUN_STARTED", **self._run, "protocolVersion": "1.0"}],
            {"type": "TEXT_MESSAGE_START", **self._message, "role": "assistant"},
            {"type": "TEXT_MESSAGE_END", **self._message},
            note,
        )

    def _text(self, text: str) -> Part:
        return {"type": "TEXT_MESSAGE_CONTENT", **self._message, "delta": text}

    def _other(self, status: str, content: Any) -> list[Part]:
        if status == "filler":
            return [{"type": "CUSTOM", "name": "anamnesis.filler", "value": content}]
        if status == "tool_call":
            return self._call(content, begins=True)
        if status == "tool_result":
            said = content["result"] if content["ok"] else content["error"]
            text = said if isinstance(said, str) else orjson.dumps(said).decode()
            result = {"messageId": f"result_{content['id']}", "toolCallId": content["id"], "role": "tool"}
            return [{"type": "TOOL_CALL_RESULT", **result, "content": text}]
        return []

    def _call_piece(self, piece: dict[str, Any], *, begins: bool) -> list[Part]:
        begin = {"type": "TOOL_CALL_START", "toolCallId": piece["id"], "toolCallName": piece["name"]}
        delta = {"type": "TOOL_CALL_ARGS", "toolCallId": piece["id"], "delta": piece["arguments"]}
        ended = self._ended_call() if begins else []
        self._open = piece["id"]
        return [*ended, begin, delta] if begins else [delta]

    def _call(self, call: ClientCall, *, begins: bool) -> list[Part]:
        whole = {**call, "arguments": orjson.dumps(call["arguments"]).decode()}
        begun = self._call_piece(whole, begins=True) if begins else []
        return [*begun, *(self._ended_call() if self._open == call["id"] else [])]

    def _ended_call(self) -> list[Part]:
        """Return the part that ends the open call; no other call begins before it."""
        ended = [{"type": "TOOL_CALL_END", "toolCallId": self._open}] if self._open else []
        self._open = ""
        return ended

    def _done(self, content: dict[str, Any]) -> list[Part]:
        names = ("turn_id", "usage", "degraded", "sources", "memory_changes")
        about = {name: content.get(name) for name in names} | self._note
        return [{"type": "CUSTOM", "name": "anamnesis.done", "value": about}, self._finished("success")]

    def _failed(self, content: dict[str, Any]) -> Part:
        if content["code"] == "cancelled":
            return self._finished("cancelled")
        return {"type": "RUN_ERROR", "message": content["message"], "code": content["code"]}

    def _finished(self, outcome: str) -> Part:
        return {"type": "RUN_FINISHED", **self._run, "outcome": {"type": outcome}}
