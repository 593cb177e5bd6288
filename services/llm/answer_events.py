"""The events of a streamed answer, in the terms of each of the two APIs.

Plain text is taken directly from an event; every other event goes through LangChain's conversion, and the SDK's
object is made only if the conversion reads it in depth.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol, get_args

import httpx2
import openai
import orjson
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai.chat_models.base import _convert_responses_chunk_to_generation_chunk
from openai._models import construct_type, validate_type
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel, ValidationError

_USAGE_S = 1.0
"""Seconds to wait for the usage that follows a complete answer."""
_MOST_OTHER_BYTES = 16 * 1024 * 1024
_REPEATED_BYTES = 24
"""Bytes for each character of text: four closing events repeat all of it, a character as up to six bytes."""
"""Bytes of events that are not plain text: reasoning, calls of tools, metadata."""
_REST_S = 0.1
"""Seconds to wait for the end of the body after that, so that its connection can be reused."""


def warm() -> None:
    """Make the SDK build the type that ends every answer of the Responses API.

    Otherwise the first answer would block the process for a tenth of a second.
    """
    _sdk_event("response.completed", {"type": "response.completed", "response": {"output": []}})


class AnswerFailed(ValueError):
    """An event of the stream says that the endpoint failed; LangChain raises a `ValueError` for it."""


class Refusal(str):
    """Words with which the model declines. A person reads them like text; the message keeps them separate."""

    __slots__ = ()


class Events(Protocol):
    """The events of one of the two APIs."""

    path: str
    patience: float | None
    """None until the answer is complete; then the seconds to wait for what may still follow."""
    place: Any
    """Position of the text that `text_of` returned last."""
    other_bytes: int
    """Bytes of the events so far that were not plain text."""
    text_characters: int
    """Characters of plain text so far."""

    def options(self, usage: bool) -> dict[str, Any]:
        """Options of the request that belong to this API."""
        ...

    def text_of(self, event: dict[str, Any]) -> str | None:
        """Return the event's text, if it continues the text before it and holds nothing else."""
        ...

    def refusal_of(self, event: dict[str, Any]) -> str | None:
        """Return the event's part of a refusal."""
        ...

    def convert(self, event: dict[str, Any]) -> ChatGenerationChunk | None:
        """Convert with LangChain."""
        ...

    def as_chunk(self, text: str, place: Any) -> ChatGenerationChunk:
        """Return the chunk for text that `text_of` returned at `place`."""
        ...


class ChatEvents:
    """Chat Completions."""

    path = "/chat/completions"
    place: Any = None  # there is only one

    def __init__(self, convert: Callable[..., ChatGenerationChunk | None]) -> None:
        self._convert = convert
        self.patience: float | None = None
        self.other_bytes = 0
        self.text_characters = 0

    def options(self, usage: bool) -> dict[str, Any]:
        return {"stream_options": {"include_usage": True}} if usage else {}

    def text_of(self, event: dict[str, Any]) -> str | None:
        choices = event.get("choices")
        if not choices or len(choices) != 1 or event.get("usage"):
            return None
        choice = choices[0]
        delta = choice.get("delta")
        if not delta or choice.get("finish_reason") or choice.get("logprobs"):
            return None
        text = delta.get("content")
        if any(delta[key] for key in delta if key not in {"content", "role"}):
            return None
        return text if text and isinstance(text, str) else None

    def refusal_of(self, event: dict[str, Any]) -> str | None:
        said = [(choice.get("delta") or {}).get("refusal") for choice in event.get("choices") or ()]
        return "".join(part for part in said if isinstance(part, str)) or None

    def convert(self, event: dict[str, Any]) -> ChatGenerationChunk | None:
        if any(choice.get("finish_reason") for choice in event.get("choices") or ()):
            self.patience = _USAGE_S
        # The SDK's object fills in what an endpoint left out, such as the index of a tool call.
        typed: Any = construct_type(type_=ChatCompletionChunk, value=event)
        return self._convert(typed.model_dump(warnings=False), AIMessageChunk, {})

    def as_chunk(self, text: str, place: Any) -> ChatGenerationChunk:
        chunk = self._convert({"choices": [{"delta": {"content": text}}]}, AIMessageChunk, {})
        if chunk is None:
            raise AssertionError("LangChain makes a chunk of every text")
        return chunk


class ResponsesEvents:
    """The Responses API."""

    path = "/responses"

    # Events that LangChain's conversion ignores, or reads so little of that the SDK's object is unnecessary.
    _IGNORED = frozenset(
        {
            "response.in_progress",
            "response.queued",
            "response.content_part.added",
            "response.content_part.done",
            "response.function_call_arguments.done",
        }
    )
    _IGNORED_WHEN_DONE = frozenset({"message", "function_call"})
    _SHALLOW = frozenset({"response.output_text.delta", "response.output_text.done"})
    _NO_PLACE: ClassVar[dict[str, Any]] = {"item_id": None, "output_index": None, "content_index": None}

    def __init__(self, output_version: str | None, schema: Any) -> None:
        self._output_version = output_version
        self._schema = schema
        self._indexes = (-1, -1, -1)
        self._item_indexes: dict[str, int] = {}
        self._has_reasoning = False
        self.patience: float | None = None
        self.other_bytes = 0
        self.text_characters = 0
        self.place: Any = ({}, self._indexes)
        """The last text event that was converted, and the indexes after it."""

    def options(self, usage: bool) -> dict[str, Any]:
        return {}

    def text_of(self, event: dict[str, Any]) -> str | None:
        if event["type"] != "response.output_text.delta":
            return None
        last, indexes = self.place
        if indexes != self._indexes or any(event.get(key) != last.get(key) for key in self._NO_PLACE):
            return None
        return str(event["delta"])

    def refusal_of(self, event: dict[str, Any]) -> str | None:
        return str(event["delta"]) if event["type"] == "response.refusal.delta" else None

    def convert(self, event: dict[str, Any]) -> ChatGenerationChunk | None:
        kind = event["type"]
        if kind in self._IGNORED:
            return None
        if kind == "response.output_item.done" and event["item"]["type"] in self._IGNORED_WHEN_DONE:
            return None
        if kind in {"response.completed", "response.incomplete"}:
            self.patience = _REST_S
        typed = self._typed(kind, event)
        try:
            *indexes, chunk = self._converted(typed, self._indexes)
        except ValueError as error:
            if kind in {"response.failed", "error"}:
                raise AnswerFailed(str(error)) from error
            raise
        self._indexes = (indexes[0], indexes[1], indexes[2])
        if kind == "response.output_text.delta":
            self.place = (event, self._indexes)
        if chunk and "reasoning" in chunk.message.additional_kwargs:
            self._has_reasoning = True
        return chunk

    def _typed(self, kind: str, event: dict[str, Any]) -> Any:
        """Return the event as the conversion needs it; the SDK's object only if it is read in depth."""
        if kind in self._SHALLOW:
            return SimpleNamespace(**{**self._NO_PLACE, **event})
        if kind == "response.created":
            return SimpleNamespace(type=kind, response=SimpleNamespace(id=event["response"]["id"]))
        if kind == "response.output_item.added" and event["item"]["type"] in self._IGNORED_WHEN_DONE:
            return SimpleNamespace(**{**event, "item": SimpleNamespace(**event["item"])})
        if kind == "response.completed" and self._schema is None:
            # The output has been streamed; only usage and metadata are read of the rest.
            event = {**event, "response": {**event["response"], "output": []}}
        return _sdk_event(kind, event)

    def as_chunk(self, text: str, place: Any) -> ChatGenerationChunk:
        event, indexes = place
        *_, chunk = self._converted(SimpleNamespace(**{**self._NO_PLACE, **event, "delta": text}), indexes)
        if chunk is None:
            raise AssertionError("LangChain makes a chunk of every text")
        return chunk

    def _converted(
        self, event: Any, indexes: tuple[int, int, int]
    ) -> tuple[int, int, int, ChatGenerationChunk | None]:
        return _convert_responses_chunk_to_generation_chunk(
            event,
            *indexes,
            schema=self._schema,
            metadata={},
            has_reasoning=self._has_reasoning,
            output_version=self._output_version,
            item_output_indices=self._item_indexes,
        )


@lru_cache(maxsize=1)
def _event_types() -> Mapping[str, type[BaseModel]]:
    """The SDK's classes of events by their kind."""
    union, *_ = get_args(ResponseStreamEvent)
    return {kind: each for each in get_args(union) for kind in get_args(each.model_fields["type"].annotation)}


def _sdk_event(kind: str, event: dict[str, Any]) -> Any:
    """Return the SDK's object for an event, as its own stream makes it: validated if possible, complete in any
    case.

    The SDK builds the validators of all event classes, 25 MB in total; here only those of kinds that occur are
    built.
    """
    found = _event_types().get(kind)
    if found is None:
        return construct_type(type_=ResponseStreamEvent, value=event)
    try:
        return validate_type(type_=found, value=event)
    except ValidationError:
        return construct_type(type_=found, value=event)


def parts_of(
    events: Events, received: list[bytes], request: httpx2.Request, *, last: bool = False
) -> Iterator[str | ChatGenerationChunk]:
    """Join the text of adjacent events; convert the others. The `last` may have been cut off.

    Raises:
        ValueError: the model thinks, or calls tools, without end.
    """
    text: list[str] = []
    for data in received:
        if data == b"[DONE]":
            if events.patience is not None:
                events.patience = _REST_S
            continue
        try:
            event = _parse(data, request)
        except orjson.JSONDecodeError:
            if last:
                return
            raise
        more = events.text_of(event)
        if more is not None:
            text.append(more)
            events.text_characters += len(more)
            continue
        if text:
            yield "".join(text)
            text.clear()
        events.other_bytes += len(data)
        if events.other_bytes > _MOST_OTHER_BYTES + _REPEATED_BYTES * events.text_characters:
            raise ValueError("The events that are not text are too many.")
        if refusal := events.refusal_of(event):
            yield Refusal(refusal)
        if chunk := events.convert(event):
            yield chunk
    if text:
        yield "".join(text)


def _parse(data: bytes, request: httpx2.Request) -> dict[str, Any]:
    event = orjson.loads(data)
    if not isinstance(event, dict):
        raise TypeError("An event of the stream is not a JSON object.")
    if error := event.get("error"):
        message = error.get("message") if isinstance(error, dict) else None
        if not message or not isinstance(message, str):
            message = "An error occurred during streaming"
        raise openai.APIError(message, request, body=error)
    return event
