"""`ChatOpenAI` with a stream that costs a quarter of the CPU and is never taken for complete when it is not.

Of the stock class's time for a streamed answer, most goes into building an object of the SDK and a
message chunk for every few characters. Here the response's lines are read as they are: plain text is
passed on at once, in the pieces in which the network delivered it, and everything else (tool calls,
usage, refusals, reasoning) goes through LangChain's own conversion. What comes out at the end is the
message that `ChatOpenAI` would have made; the tests compare the two over the same streams.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol

import httpx2
import openai
import orjson
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.outputs.chat_generation import merge_chat_generation_chunks
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import (
    _convert_responses_chunk_to_generation_chunk,
    _handle_openai_api_error,
    _handle_openai_bad_request,
)
from openai._models import construct_type
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from services.llm.sse_frames import EventData

OnText = Callable[[str], None]
"""Called with each piece of the answer's text as it arrives."""

_USAGE_S = 1.0
"""How long to wait for the usage that follows a complete answer."""
_REST_S = 0.1
"""How long to wait for the end of the body after that, so that its connection can be used again."""


class StreamBroken(openai.APIError):
    """The stream ended without the event that says that the answer is complete."""

    def __init__(self, request: httpx2.Request) -> None:
        super().__init__("The stream ended before the answer was complete.", request, body=None)


class AnswerFailed(ValueError):
    """An event of the stream says that the endpoint failed; LangChain raises a `ValueError` for it."""


class LeanChatOpenAI(ChatOpenAI):
    """`ChatOpenAI`, reading the response's lines itself.

    `ainvoke(messages, on_text=f)` streams: `f` gets the text as it arrives, and the complete message
    is returned, with one pair of callbacks a call. `astream` works as in the stock class.
    """

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        on_text: OnText | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        events = self._events({**kwargs, **self.model_kwargs}, kwargs.get("response_format"))
        async for part in self._parts(events, messages, stop, kwargs):
            chunk = events.as_chunk(part, events.place) if isinstance(part, str) else part
            if on_text and chunk.text:
                on_text(chunk.text)
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        on_text: OnText | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if on_text is None:
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        events = self._events({**kwargs, **self.model_kwargs}, kwargs.get("response_format"))
        chunks: list[ChatGenerationChunk] = []
        text: list[str] = []
        place: object = None
        async for part in self._parts(events, messages, stop, kwargs):
            if isinstance(part, str):
                on_text(part)
                text.append(part)
                place = events.place
                continue
            if text:
                chunks.append(events.as_chunk("".join(text), place))
                text.clear()
            if part.text:
                on_text(part.text)
            chunks.append(part)
        if text:
            chunks.append(events.as_chunk("".join(text), place))
        whole = merge_chat_generation_chunks(chunks)
        if whole is None:
            raise ValueError("The response holds no events.")
        message = message_chunk_to_message(whole.message)
        return ChatResult(generations=[ChatGeneration(message=message, generation_info=whole.generation_info)])

    def _events(self, options: dict[str, Any], schema: Any) -> "_Events":
        if self._use_responses_api(options):
            return _ResponsesEvents(self.output_version, schema)
        return _ChatEvents(self._convert_chunk_to_generation_chunk)

    async def _parts(
        self, events: "_Events", messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> AsyncIterator[str | ChatGenerationChunk]:
        """Yield text as strings, one for each network read, and all else as chunks, in order."""
        options = {"stream": True, **events.options(self._should_stream_usage(**kwargs)), **kwargs}
        options.pop("stream_usage", None)  # an option of the call, not of the request
        payload = self._get_request_payload(messages, stop=stop, **options)
        create = self.root_async_client.responses.create if events.responses else self.async_client.create
        try:
            async with await create(**payload) as stream:
                data = EventData()
                async for received in _reads(stream.response, events):
                    for part in _parts_of(events, data.feed(received), stream.response.request):
                        yield part
                for part in _parts_of(events, data.end(), stream.response.request, last=True):
                    yield part
                if events.patience is None:
                    raise _unfinished(stream.response)
        except AttributeError as error:
            raise TypeError("An event of the stream is not of the API's shape.") from error
        except openai.BadRequestError as error:
            _handle_openai_bad_request(error)
        except openai.APIError as error:
            _handle_openai_api_error(error)


class _Events(Protocol):
    """How one of the two APIs says things."""

    responses: bool
    patience: float | None
    """None until the answer is complete; then how many seconds to wait for what may still follow."""
    place: Any
    """Where the text belongs that `text_of` returned last."""

    def options(self, usage: bool) -> dict[str, Any]:
        """Options of the request that belong to this API."""
        ...

    def text_of(self, event: dict[str, Any]) -> str | None:
        """The event's text, when it continues the text before it and holds nothing else."""
        ...

    def convert(self, event: dict[str, Any]) -> ChatGenerationChunk | None:
        """LangChain's own conversion."""
        ...

    def as_chunk(self, text: str, place: Any) -> ChatGenerationChunk:
        """The chunk for text that `text_of` returned while `place` was the place."""
        ...


class _ChatEvents:
    """Chat Completions."""

    responses = False
    place: Any = None  # there is only one

    def __init__(self, convert: Callable[..., ChatGenerationChunk | None]) -> None:
        self._convert = convert
        self.patience: float | None = None

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


class _ResponsesEvents:
    """The Responses API."""

    responses = True

    # What LangChain's conversion passes over, and what it reads so little of that the SDK's object can be spared.
    _IGNORED = frozenset(
        {
            "response.in_progress",
            "response.queued",
            "response.content_part.added",
            "response.content_part.done",
            "response.function_call_arguments.done",
        }
    )
    _SHALLOW = frozenset({"response.output_text.delta", "response.output_text.done"})
    _NO_PLACE: ClassVar[dict[str, Any]] = {"item_id": None, "output_index": None, "content_index": None}

    def __init__(self, output_version: str | None, schema: Any) -> None:
        self._output_version = output_version
        self._schema = schema
        self._indexes = (-1, -1, -1)
        self._item_indexes: dict[str, int] = {}
        self._has_reasoning = False
        self.patience: float | None = None
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

    def convert(self, event: dict[str, Any]) -> ChatGenerationChunk | None:
        kind = event["type"]
        if kind in self._IGNORED:
            return None
        if kind in {"response.completed", "response.incomplete"}:
            self.patience = _REST_S
        typed: Any
        if kind in self._SHALLOW:
            typed = SimpleNamespace(**{**self._NO_PLACE, **event})
        elif kind == "response.created":
            typed = SimpleNamespace(type=kind, response=SimpleNamespace(id=event["response"]["id"]))
        else:
            typed = construct_type(type_=ResponseStreamEvent, value=event)
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


def _parts_of(
    events: _Events, received: list[bytes], request: httpx2.Request, *, last: bool = False
) -> Iterator[str | ChatGenerationChunk]:
    """Join the text of neighbouring events; convert the others. The `last` may have been cut off."""
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
            continue
        if text:
            yield "".join(text)
            text.clear()
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


def _unfinished(response: httpx2.Response) -> Exception:
    """What to raise for a body that ended before the answer was complete."""
    kind = response.headers.get("content-type", "")
    if kind.startswith(("text/html", "application/json")):
        return TypeError(f"The endpoint answered {kind} and not a stream of events.")
    return StreamBroken(response.request)


async def _reads(response: httpx2.Response, events: _Events) -> AsyncIterator[bytes]:
    """Yield the body as it comes; once the answer is complete, wait no longer than its patience."""
    body = response.aiter_bytes()
    while True:
        try:
            async with asyncio.timeout(events.patience):
                received = await anext(body, b"")
        except TimeoutError:
            return
        except httpx2.RequestError as error:
            if events.patience is not None:
                return
            if isinstance(error, httpx2.TimeoutException):
                raise openai.APITimeoutError(response.request) from error
            raise openai.APIConnectionError(request=response.request) from error
        if not received:
            return
        yield received
