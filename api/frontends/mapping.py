"""A turn's events as the parts of another protocol's stream: the AI SDK's UI messages, and AG-UI's events."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, ClassVar
from uuid import UUID

import orjson

from api.openai.chat import citations_of, part_of
from api.streams import TurnEvents
from state.client_tools import ClientCall
from state.events import TurnEvent

Part = dict[str, Any]


async def mapped(events: TurnEvents, mapper: "Mapper", after: int = 0) -> AsyncGenerator[bytes, None]:
    """Yield the frames of a stream, each with the number of its event; those up to `after` are not repeated.

    All events of the turn are read, because the mapping of an event depends on those before it.
    """
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

    def __init__(self, begin: Sequence[Part], speak: Part, silence: Part) -> None:
        """Take the parts before everything, before the answer's text and behind it."""
        self._begin, self._speak, self._silence = begin, speak, silence
        self._begun = False
        self._speaks = False

    def parts(self, event: TurnEvent) -> list[Part]:
        """The parts for the next event."""
        # The events of a turn that ended long ago are its last one alone.
        begin, self._begun = ([] if self._begun else self._begin), True
        return [*begin, *self._of(event)]

    def _of(self, event: TurnEvent) -> list[Part]:
        content: Any = event.content
        if event.status == "token":
            return self._said(content)
        if event.status == "done":
            content = part_of(content)
            said = self._said(content["answer"]) if content["answer"] and not self._speaks else []
            return [*said, *self._ended_text(), *self._done(content)]
        if event.status == "calls":
            return [*self._ended_text(), *self._calls(content["calls"]), *self._done(content)]
        if event.status == "error":
            return [*self._ended_text(), self._failed(content)]
        return self._other(event.status, content)

    def _said(self, text: str) -> list[Part]:
        begin, self._speaks = ([] if self._speaks else [self._speak]), True
        return [*begin, self._text(text)]

    def _ended_text(self) -> list[Part]:
        return [self._silence] if self._speaks else []

    @abstractmethod
    def _text(self, text: str) -> Part: ...

    @abstractmethod
    def _other(self, status: str, content: Any) -> list[Part]: ...

    @abstractmethod
    def _calls(self, calls: Sequence[ClientCall]) -> list[Part]: ...

    @abstractmethod
    def _done(self, content: dict[str, Any]) -> list[Part]: ...

    @abstractmethod
    def _failed(self, content: dict[str, Any]) -> Part: ...


HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
_TEXT = "text"
"""Id of the answer's one part of text."""


class UiMessageMapper(Mapper):
    """The AI SDK's stream of UI messages, version 1: what `useChat` reads."""

    end = b"data: [DONE]\n\n"

    def __init__(self, turn_id: UUID) -> None:
        super().__init__(
            [{"type": "start", "messageId": f"msg_{turn_id}"}, {"type": "start-step"}],
            {"type": "text-start", "id": _TEXT},
            {"type": "text-end", "id": _TEXT},
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

    def _calls(self, calls: Sequence[ClientCall]) -> list[Part]:
        parts: list[Part] = []
        for call in calls:
            named = {"toolCallId": call["id"], "toolName": call["name"]}
            parts += [
                {"type": "tool-input-start", **named},
                {"type": "tool-input-available", **named, "input": call["arguments"]},
            ]
        return parts

    def _done(self, content: dict[str, Any]) -> list[Part]:
        cited = citations_of(content.get("sources") or [], content["answer"])
        sources = [
            {"type": "source-url", "sourceId": str(number), "url": each["url"], "title": each["title"]}
            for number, each in enumerate(cited, 1)
        ]
        about = {name: content.get(name) for name in ("turn_id", "usage", "degraded", "memory_changes")}
        reason = "tool-calls" if "calls" in content else "stop"
        finish = {"type": "finish", "finishReason": reason, "messageMetadata": about}
        return [*sources, {"type": "finish-step"}, finish]

    def _failed(self, content: dict[str, Any]) -> Part:
        if content["code"] == "cancelled":
            return {"type": "abort", "reason": content["message"]}
        return {"type": "error", "errorText": content["message"]}


class AgUiMapper(Mapper):
    """AG-UI's events, version 1.0, of a turn, which is a run. Tests hold them to the types of its package."""

    def __init__(self, turn_id: UUID, *, thread_id: str, run_id: str) -> None:
        self._message = {"messageId": f"msg_{turn_id}"}
        self._run = {"threadId": thread_id, "runId": run_id}
        super().__init__(
            [{"type": "RUN_STARTED", **self._run, "protocolVersion": "1.0"}],
            {"type": "TEXT_MESSAGE_START", **self._message, "role": "assistant"},
            {"type": "TEXT_MESSAGE_END", **self._message},
        )

    def _text(self, text: str) -> Part:
        return {"type": "TEXT_MESSAGE_CONTENT", **self._message, "delta": text}

    def _other(self, status: str, content: Any) -> list[Part]:
        if status == "filler":
            return [{"type": "CUSTOM", "name": "anamnesis.filler", "value": content}]
        if status == "tool_call":
            return self._calls([content])
        if status == "tool_result":
            said = content["result"] if content["ok"] else content["error"]
            text = said if isinstance(said, str) else orjson.dumps(said).decode()
            result = {"messageId": f"result_{content['id']}", "toolCallId": content["id"], "role": "tool"}
            return [{"type": "TOOL_CALL_RESULT", **result, "content": text}]
        return []

    def _calls(self, calls: Sequence[ClientCall]) -> list[Part]:
        return [
            part
            for call in calls
            for named in ({"toolCallId": call["id"]},)
            for part in (
                {"type": "TOOL_CALL_START", **named, "toolCallName": call["name"]},
                {"type": "TOOL_CALL_ARGS", **named, "delta": orjson.dumps(call["arguments"]).decode()},
                {"type": "TOOL_CALL_END", **named},
            )
        ]

    def _done(self, content: dict[str, Any]) -> list[Part]:
        names = ("turn_id", "usage", "degraded", "sources", "memory_changes")
        about = {name: content.get(name) for name in names}
        return [{"type": "CUSTOM", "name": "anamnesis.done", "value": about}, self._finished("success")]

    def _failed(self, content: dict[str, Any]) -> Part:
        if content["code"] == "cancelled":
            return self._finished("cancelled")
        return {"type": "RUN_ERROR", "message": content["message"], "code": content["code"]}

    def _finished(self, outcome: str) -> Part:
        return {"type": "RUN_FINISHED", **self._run, "outcome": {"type": outcome}}
