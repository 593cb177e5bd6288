"""Reads the streams of the Responses API, also of servers that leave out events or fields."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson
from langchain_core.messages import AIMessage

from services.llm.streams.answer import AnswerStream, usage_of
from services.llm.streams.call_pieces import StreamedObject
from services.llm.streams.faults import AnswerFailed, refuse_fault
from services.llm.streams.text import BegunCall, CallPiece, ThinkTags
from services.llm.streams.written_calls import Offered

_ENDS: Mapping[str, str] = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
}
_TEXT_DELTA = "response.output_text.delta"
_REASONING_DELTAS = frozenset(
    {
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary.delta",
        "response.reasoning_text.delta",
        "response.reasoning.delta",
    }
)
_CUT = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "content_filter"}


class ResponsesStream(AnswerStream):
    """Reads the streamed answer of the Responses API."""

    path: ClassVar[str] = "/responses"
    after_end_s = 0.1  # nothing follows the last event

    def __init__(self, tags: ThinkTags, offered: Offered | None = None) -> None:
        super().__init__(tags, offered)
        self._called: list[dict[str, Any]] = []
        self._reasoning_items: dict[object, dict[str, Any]] = {}
        self._has_thought = False

    def read(self, event: dict[str, Any]) -> Sequence[str]:
        kind = event.get("type")
        if kind == _TEXT_DELTA:  # nearly every event
            return self._say(_delta(event))
        if not isinstance(kind, str):
            refuse_fault(event)
            if event and event.get("object") != "response" and "output" not in event:
                raise TypeError("An event of the stream has no type.")
            return self._whole(event) if event else []
        if kind in {"error", "response.error", "response.failed"}:
            body = event.get("response") if isinstance(event.get("response"), Mapping) else event
            raise AnswerFailed((body or {}).get("error") or event.get("error") or dict(event))
        match kind:
            case "response.refusal.delta":
                return self._decline(_delta(event))
            case "response.output_item.added" | "response.output_item.done":
                self._note_item(event, event.get("item"))
            case "response.function_call_arguments.delta" | "response.function_call_arguments.done":
                self._add_arguments(event)
            case _ if kind in _REASONING_DELTAS:
                return self._think(_delta(event))
            case _ if kind in _ENDS:
                response = event.get("response")
                return self._whole({"status": _ENDS[kind], **(response if isinstance(response, Mapping) else {})})
        return self._news()

    def _think(self, thought: str) -> Sequence[str]:
        self._has_thought = True
        return [*self._kept(self.tags.reasoning_is_apart()), *self._thinks(thought)]

    def _note_item(self, event: Mapping[str, Any], item: object) -> None:
        if not isinstance(item, Mapping):
            return
        place = event.get("output_index", item.get("id"))
        if item.get("type") == "function_call":
            call = self._call_of(place, item)
            call |= {name: item[name] for name in ("id", "call_id", "name") if item.get(name)}
            if arguments := item.get("arguments"):
                call["arguments"] = arguments
        elif item.get("type") == "reasoning":
            self._reasoning_items[item.get("encrypted_content")] = dict(item)

    def _call_of(self, place: object, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return the call that an item belongs to: the call with the item's id, or else the call at its place that
        has no other id."""
        call_id = item.get("call_id")
        same = [call for call in self._called if call_id and call.get("call_id") == call_id]
        here = [call for call in self._called if call["place"] == place and not (call_id and call.get("call_id"))]
        if not (found := [*here, *same]):
            found = [{"place": place, "arguments": "", "streamed": StreamedObject()}]
            self._called += found
        return found[-1]

    def _add_arguments(self, event: Mapping[str, Any]) -> None:
        if not self._called:
            return
        ids = [call for call in self._called if call.get("id") and call.get("id") == event.get("item_id")]
        places = [call for call in self._called if call["place"] == event.get("output_index")]
        # The ids of its events may differ, or not be there.
        call = [*self._called, *places, *ids][-1]
        if event["type"].endswith("done"):
            call["arguments"] = event.get("arguments") or call["arguments"]
            call["name"] = call.get("name") or event.get("name")
        else:
            call["arguments"] += _delta(event)

    def _news(self) -> Sequence[str]:
        """Return what may be passed on of the arguments of calls."""
        pieces: list[str] = []
        for place, call in enumerate(self._called):
            if call.get("name") and (news := call["streamed"].feed(call["arguments"])):
                before = tuple(str(each.get("name") or "") for each in self._called[:place])
                pieces.append(CallPiece.of(news, BegunCall(call["name"], before)))
        return pieces

    def _whole(self, response: Mapping[str, Any]) -> Sequence[str]:
        """Take the response as a whole: the part that was not streamed, its usage, and why it ended."""
        if (status := response.get("status")) == "failed" or (response.get("error") and not self.begun):
            raise AnswerFailed(response.get("error") or {"message": f"The response has status {status}."})
        output = response.get("output")
        items = [each for each in output if isinstance(each, Mapping)] if isinstance(output, list) else []
        for place, item in enumerate(items):
            if item.get("type") != "function_call" or item.get("call_id") or not self._called:
                self._note_item({"output_index": ("whole", place)}, item)
        if not self._model and isinstance(model := response.get("model"), str):
            self._model = model
        self.usage = usage_of(
            response.get("usage"), ["input_tokens", "prompt_tokens"], ["output_tokens", "completion_tokens"]
        )
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        self.finish = _CUT.get(str(reason)) or ("length" if status == "incomplete" else "stop")
        self.ended = True
        streamed = self._text or self._refusal or self._tagged or self._written.holds
        return [] if streamed else self._unstreamed(response, items)

    def _unstreamed(self, response: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        if not items and isinstance(text := response.get("output_text"), str) and text:
            return self._say(text)
        said: list[str] = []
        for item in items:
            parts = item.get("content") if item.get("type") == "message" else None
            for part in parts if isinstance(parts, list) else ():
                if isinstance(part, Mapping) and isinstance(text := part.get("text"), str) and text:
                    said += self._say(text)
                elif isinstance(part, Mapping) and isinstance(refusal := part.get("refusal"), str) and refusal:
                    said += self._decline(refusal)
        return said

    @property
    def begun(self) -> bool:
        return super().begun or bool(self._called)

    def close(self) -> None:
        super().close()
        self.ended = self.ended or self._has_thought

    def message(self) -> AIMessage:
        for place, call in enumerate(self._called):
            self.calls.add({"index": place, "id": call.get("call_id") or call.get("id"), "function": call})
        text = "".join(self._text)
        # The API takes encrypted reasoning back; what is not encrypted it knows only where it stores answers.
        back = [item for item in self._reasoning_items.values() if item.get("encrypted_content")]
        if not back or not self.calls:
            return self._made(text)
        message = self._made(text)
        called = [
            {
                "type": "function_call",
                "name": call["name"],
                "call_id": call["id"],
                "arguments": orjson.dumps(call["args"]).decode(),
            }
            for call in message.tool_calls
        ]
        said = [{"type": "text", "text": text}] if text else []
        return message.model_copy(update={"content": [*back, *said, *called]})


def _delta(event: Mapping[str, Any]) -> str:
    delta = event.get("delta")
    if isinstance(delta, str):
        return delta
    if isinstance(delta, Mapping):
        delta = delta.get("text")
    if delta is None:
        return ""
    if not isinstance(delta, str):
        raise TypeError("A delta is not text.")
    return delta
