"""The AI SDK's stream of UI messages, version 1: what `useChat` reads."""

from typing import Any
from uuid import UUID

from api.frontends.mapping import Part
from api.openai.citations import citations_of
from state.events import TurnEvent

HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
_TEXT = "text"
"""Id of the answer's one part of text."""


class UiMessageMapper:
    """Maps the events of one turn."""

    end = b"data: [DONE]\n\n"

    def __init__(self, turn_id: UUID) -> None:
        self._message_id = f"msg_{turn_id}"
        self._begun = False
        self._speaks = False

    def parts(self, event: TurnEvent) -> list[Part]:
        """The parts for the next event."""
        begin: list[Part] = []
        if not self._begun:  # the events of a turn that ended long ago are its last one alone
            self._begun = True
            begin = [{"type": "start", "messageId": self._message_id}, {"type": "start-step"}]
        return begin + self._of(event)

    def _of(self, event: TurnEvent) -> list[Part]:
        content: Any = event.content
        if event.status == "token":
            return [*self._speak(), {"type": "text-delta", "id": _TEXT, "delta": content}]
        if event.status == "filler":
            return [{"type": "data-filler", "data": content, "transient": True}]
        if event.status == "tool_call":
            called = {"toolCallId": content["id"], "toolName": content["name"], "input": content["arguments"]}
            return [{"type": "tool-input-available", **called, "providerExecuted": True, "dynamic": True}]
        if event.status == "tool_result":
            return [_result(content)]
        if event.status == "done":
            return self._done(content)
        return self._failed(content) if event.status == "error" else []

    def _speak(self) -> list[Part]:
        if self._speaks:
            return []
        self._speaks = True
        return [{"type": "text-start", "id": _TEXT}]

    def _done(self, content: dict[str, Any]) -> list[Part]:
        said: list[Part] = []
        if not self._speaks and content["answer"]:
            said = [*self._speak(), {"type": "text-delta", "id": _TEXT, "delta": content["answer"]}]
        if self._speaks:
            said.append({"type": "text-end", "id": _TEXT})
        cited = citations_of(content.get("sources") or [], content["answer"])
        sources = [
            {"type": "source-url", "sourceId": str(number), "url": each["url"], "title": each["title"]}
            for number, each in enumerate(cited, 1)
        ]
        about = {name: content.get(name) for name in ("turn_id", "usage", "degraded", "memory_changes")}
        finish = {"type": "finish", "finishReason": "stop", "messageMetadata": about}
        return [*said, *sources, {"type": "finish-step"}, finish]

    def _failed(self, content: dict[str, Any]) -> list[Part]:
        ended: list[Part] = [{"type": "text-end", "id": _TEXT}] if self._speaks else []
        if content["code"] == "cancelled":
            return [*ended, {"type": "abort", "reason": content["message"]}]
        return [*ended, {"type": "error", "errorText": content["message"]}]


def _result(content: dict[str, Any]) -> Part:
    usual = {"toolCallId": content["id"], "providerExecuted": True, "dynamic": True}
    if content["ok"]:
        return {"type": "tool-output-available", **usual, "output": content["result"]}
    return {"type": "tool-output-error", **usual, "errorText": str(content["error"])}
