"""AG-UI's events, version 1.0. Tests hold them to the types of its package."""

from typing import Any
from uuid import UUID

import orjson

from api.frontends.mapping import Part
from state.events import TurnEvent


class AgUiMapper:
    """Maps the events of one turn, which is a run."""

    end = b""

    def __init__(self, turn_id: UUID, *, thread_id: str, run_id: str) -> None:
        self._message_id = f"msg_{turn_id}"
        self._run = {"threadId": thread_id, "runId": run_id}
        self._begun = False
        self._speaks = False

    def parts(self, event: TurnEvent) -> list[Part]:
        """The parts for the next event."""
        begin: list[Part] = []
        if not self._begun:  # the events of a turn that ended long ago are its last one alone
            self._begun = True
            begin = [{"type": "RUN_STARTED", **self._run, "protocolVersion": "1.0"}]
        return begin + self._of(event)

    def _of(self, event: TurnEvent) -> list[Part]:
        content: Any = event.content
        if event.status == "token":
            return [*self._speak(), self._text(content)]
        if event.status == "filler":
            return [{"type": "CUSTOM", "name": "anamnesis.filler", "value": content}]
        if event.status == "tool_call":
            call = {"toolCallId": content["id"]}
            arguments = orjson.dumps(content["arguments"]).decode()
            return [
                {"type": "TOOL_CALL_START", **call, "toolCallName": content["name"]},
                {"type": "TOOL_CALL_ARGS", **call, "delta": arguments},
                {"type": "TOOL_CALL_END", **call},
            ]
        if event.status == "tool_result":
            said = content["result"] if content["ok"] else content["error"]
            text = said if isinstance(said, str) else orjson.dumps(said).decode()
            result = {"messageId": f"result_{content['id']}", "toolCallId": content["id"], "role": "tool"}
            return [{"type": "TOOL_CALL_RESULT", **result, "content": text}]
        if event.status == "done":
            return self._done(content)
        return self._failed(content) if event.status == "error" else []

    def _speak(self) -> list[Part]:
        if self._speaks:
            return []
        self._speaks = True
        return [{"type": "TEXT_MESSAGE_START", "messageId": self._message_id, "role": "assistant"}]

    def _text(self, text: str) -> Part:
        return {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._message_id, "delta": text}

    def _ended_text(self) -> list[Part]:
        return [{"type": "TEXT_MESSAGE_END", "messageId": self._message_id}] if self._speaks else []

    def _done(self, content: dict[str, Any]) -> list[Part]:
        said: list[Part] = []
        if not self._speaks and content["answer"]:
            said = [*self._speak(), self._text(content["answer"])]
        names = ("turn_id", "usage", "degraded", "sources", "memory_changes")
        about = {name: content.get(name) for name in names}
        finished = {"type": "RUN_FINISHED", **self._run, "outcome": {"type": "success"}}
        return [
            *said,
            *self._ended_text(),
            {"type": "CUSTOM", "name": "anamnesis.done", "value": about},
            finished,
        ]

    def _failed(self, content: dict[str, Any]) -> list[Part]:
        if content["code"] == "cancelled":
            return [
                *self._ended_text(),
                {"type": "RUN_FINISHED", **self._run, "outcome": {"type": "cancelled"}},
            ]
        return [*self._ended_text(), {"type": "RUN_ERROR", "message": content["message"], "code": content["code"]}]
