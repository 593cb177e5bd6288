"""The items of a response: its message and its calls, whole and as the events of a stream."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from api.openai.chat import citations_of
from state.client_tools import ClientCall

_MOST_CITATIONS = 56
"""Maximum number of citations in one item. With these, its last events fit into the numbers of one event of the
turn."""


class ResponseItems:
    """The items of a response while it is streamed: its message, and the calls by their places."""

    def __init__(self, own: str) -> None:
        """Take the part of the response's id behind the prefix that names its kind."""
        self._own = own
        self.begun: list[int | None] = []
        """Place of each item in order; None = the message."""
        self._arguments: dict[int, str] = {}

    def text(self, text: str) -> list[dict[str, Any]]:
        """Events for a piece of the text."""
        delta = {"type": "response.output_text.delta", "logprobs": [], "delta": text}
        return [*self._message_begins(), {**delta, **self._place()}]

    def call(self, piece: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Events for a piece of a call."""
        place, arguments, run = piece["place"], piece["arguments"], []
        if place not in self.begun:
            item = {**_call_item(piece["id"], piece["name"], ""), "status": "in_progress"}
            run.append({"type": "response.output_item.added", "output_index": len(self.begun), "item": item})
            self.begun.append(place)
        self._arguments[place] = self._arguments.get(place, "") + arguments
        about = {"item_id": _item_id(piece["id"]), "output_index": self.begun.index(place)}
        return [*run, {"type": "response.function_call_arguments.delta", **about, "delta": arguments}]

    def end(self, output: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the events that end the items, and the items in the order in which they began."""
        run: list[dict[str, Any]] = []
        ended: dict[int | None, dict[str, Any]] = {}
        for item in (each for each in output if each["type"] == "message"):
            run += self._message_begins()
            run += self._message_ends(item)
            ended[None] = item
        for place, item in enumerate(each for each in output if each["type"] == "function_call"):
            if place not in self.begun:
                run += self.call({**item, "id": item["call_id"], "place": place})
            ended[place] = {**item, "arguments": self._arguments[place]}
            run += self._call_ends(place, ended[place])
        return run, [ended[place] for place in self.begun if place in ended]

    def _message_begins(self) -> list[dict[str, Any]]:
        if None in self.begun:
            return []
        item, at = message_item(self._own, None, "in_progress"), len(self.begun)
        self.begun.append(None)
        return [
            {"type": "response.output_item.added", "output_index": at, "item": item},
            {"type": "response.content_part.added", **self._place(), "part": _part("", [])},
        ]

    def _message_ends(self, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        (part,), place = item["content"], self._place()
        added = {"type": "response.output_text.annotation.added", **place}
        return [
            *({**added, "annotation_index": n, "annotation": each} for n, each in enumerate(part["annotations"])),
            {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []},
            {"type": "response.content_part.done", **place, "part": part},
            {"type": "response.output_item.done", "output_index": place["output_index"], "item": item},
        ]

    def _call_ends(self, place: int, item: Mapping[str, Any]) -> list[dict[str, Any]]:
        index = self.begun.index(place)
        named = {"name": item["name"], "arguments": item["arguments"]}
        about = {"item_id": item["id"], "output_index": index}
        return [
            {"type": "response.function_call_arguments.done", **about, **named},
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]

    def _place(self) -> dict[str, Any]:
        return {"item_id": f"msg_{self._own}", "output_index": self.begun.index(None), "content_index": 0}


def call_item(call: ClientCall) -> dict[str, Any]:
    """A call as an item."""
    return _call_item(call["id"], call["name"], orjson.dumps(call["arguments"]).decode())


def _item_id(call: str) -> str:
    return call.replace("call_", "fc_", 1)


def _call_item(call: str, name: str, arguments: str) -> dict[str, Any]:
    return {
        "id": _item_id(call),
        "type": "function_call",
        "status": "completed",
        "call_id": call,
        "name": name,
        "arguments": arguments,
    }


def message_item(own: str, content: Mapping[str, Any] | None, status: str) -> dict[str, Any]:
    """Return a message as an item; without content, as the item with which it begins. `own` is the part of its id
    behind the prefix that names the kind."""
    shown = status if status in {"in_progress", "completed"} else "incomplete"
    parts = []
    if content is not None:
        cited = citations_of(content["sources"], content["answer"])[:_MOST_CITATIONS]
        parts = [_part(content["answer"], [{"type": "url_citation", **each} for each in cited])]
    return {"id": f"msg_{own}", "type": "message", "status": shown, "role": "assistant", "content": parts}


def _part(text: str, annotations: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}
