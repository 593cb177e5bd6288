"""`ChatOpenAI` with a stream that costs a quarter of the CPU, and in which a truncated answer is never complete.

The stock class spends most of its time for a streamed answer on building an SDK object and a message chunk for
every few characters. This class reads the response's lines directly: plain text is passed on at once, in the
pieces in which the network delivered it, and everything else (tool calls, usage, refusals, reasoning) goes
through LangChain's conversion. The resulting message is the one that `ChatOpenAI` would have made; the tests
compare the two over the same streams.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, cast

import httpx2
import openai
import orjson
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.outputs.chat_generation import merge_chat_generation_chunks
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import _handle_openai_api_error, _handle_openai_bad_request
from openai._types import RequestOptions

from services.llm.answer_events import ChatEvents, Events, Refusal, ResponsesEvents, parts_of
from services.llm.message_form import OnText
from services.llm.sse_frames import EventData

_PIECE_BYTES = 256 * 1024


class StreamBroken(openai.APIError):
    """The stream ended without the event that says that the answer is complete."""

    def __init__(self, request: httpx2.Request) -> None:
        super().__init__("The stream ended before the answer was complete.", request, body=None)


class LeanChatOpenAI(ChatOpenAI):
    """`ChatOpenAI`, reading the response's lines itself.

    `ainvoke(messages, on_text=f)` streams: `f` gets the text as it arrives, and the complete message
    is returned, with one pair of callbacks per call. `astream` works as in the stock class.
    """

    longest_answer: int = 200_000
    """Characters of text after which nothing more is read of an answer to `ainvoke`. It then ends like one that
    has reached the model's own limit, without usage, which comes last."""

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
        if isinstance(events, ChatEvents) and "response_format" in kwargs:
            # The stock class lets the SDK parse these while streaming; there is no plain text to speed up.
            async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
                yield chunk
            return
        async for part in self._parts(events, messages, stop, kwargs):
            if isinstance(part, Refusal):
                if on_text:
                    on_text(part)
                continue
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
        heard = 0
        async with aclosing(self._parts(events, messages, stop, kwargs)) as parts:
            async for part in parts:
                said = part if isinstance(part, str) else part.text
                if heard + len(said) > self.longest_answer:
                    said = said[: self.longest_answer - heard]
                    on_text(said)
                    return _cut_off([*(chunk.text for chunk in chunks), *text, said])
                heard += len(said)
                if said:
                    on_text(said)
                if isinstance(part, str):
                    if not isinstance(part, Refusal):
                        text.append(part)
                        place = events.place
                    continue
                if text:
                    chunks.append(events.as_chunk("".join(text), place))
                    text.clear()
                chunks.append(part)
        if text:
            chunks.append(events.as_chunk("".join(text), place))
        whole = merge_chat_generation_chunks(chunks)
        if whole is None:
            raise ValueError("The response holds no events.")
        message = message_chunk_to_message(whole.message)
        return ChatResult(generations=[ChatGeneration(message=message, generation_info=whole.generation_info)])

    def _events(self, options: dict[str, Any], schema: Any) -> Events:
        if self._use_responses_api(options):
            return ResponsesEvents(self.output_version, schema)
        return ChatEvents(self._convert_chunk_to_generation_chunk)

    async def _parts(
        self, events: Events, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> AsyncGenerator[str | ChatGenerationChunk]:
        """Yield text as strings, one per network read, refusals as such, and the rest as chunks, in order."""
        options = {"stream": True, **events.options(self._should_stream_usage(**kwargs)), **kwargs}
        options.pop("stream_usage", None)  # an option of the call, not of the request
        payload = self._get_request_payload(messages, stop=stop, **options)
        try:
            async with await self._post(events.path, payload) as stream:
                data = EventData()
                async for received in _reads(stream.response, events):
                    for part in parts_of(events, data.feed(received), stream.response.request):
                        yield part
                for part in parts_of(events, data.end(), stream.response.request, last=True):
                    yield part
                if events.patience is None:
                    raise _unfinished(stream.response)
        except AttributeError as error:
            raise TypeError("An event of the stream is not of the API's shape.") from error
        except openai.BadRequestError as error:
            _handle_openai_bad_request(error)
        except openai.APIError as error:
            _handle_openai_api_error(error)

    async def _post(self, path: str, payload: dict[str, Any]) -> openai.AsyncStream[object]:
        """Send the request as it is.

        The SDK's own methods validate every message of the prompt against its types: at 60 turns that took more
        time than the rest of a turn."""
        options: dict[str, Any] = {"headers": {"Content-Type": "application/json"}}
        for name in ("extra_headers", "extra_query", "extra_body", "timeout"):
            if (value := payload.pop(name, None)) is not None:
                options[name] = value
        body = {**payload, **options.pop("extra_body", {})}
        options["headers"] |= options.pop("extra_headers", {})
        if "extra_query" in options:
            options["params"] = options.pop("extra_query")
        client: openai.AsyncOpenAI = self.root_async_client
        given = {k: v for k, v in body.items() if not isinstance(v, openai.NotGiven | openai.Omit)}
        content = await asyncio.to_thread(orjson.dumps, given) if _has_parts(given) else orjson.dumps(given)
        if len(content) > _PIECE_BYTES:
            options["headers"]["Content-Length"] = str(len(content))
        return await client.post(
            path,
            content=_pieces(content) if len(content) > _PIECE_BYTES else content,
            options=cast(RequestOptions, options),
            cast_to=object,
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )


async def _pieces(content: bytes) -> AsyncGenerator[bytes]:
    """Yield a long body in pieces: written as a whole, it would hold up the event loop."""
    for begin in range(0, len(content), _PIECE_BYTES):
        yield content[begin : begin + _PIECE_BYTES]


def _has_parts(body: Mapping[str, Any]) -> bool:
    """Whether a message has parts, such as images with megabytes."""
    messages = body.get("messages") or body.get("input")
    return isinstance(messages, list) and any(isinstance(one.get("content"), list) for one in messages)


def _cut_off(text: list[str]) -> ChatResult:
    """Return an answer that was longer than any may be, without the calls that it may have begun."""
    message = AIMessage("".join(text), response_metadata={"finish_reason": "length"})
    return ChatResult(generations=[ChatGeneration(message=message)])


def _unfinished(response: httpx2.Response) -> Exception:
    """Return the error for a body that ended before the answer was complete."""
    kind = response.headers.get("content-type", "")
    if kind.startswith(("text/html", "application/json")):
        return TypeError(f"The endpoint answered {kind} and not a stream of events.")
    return StreamBroken(response.request)


async def _reads(response: httpx2.Response, events: Events) -> AsyncIterator[bytes]:
    """Yield the body as it arrives; once the answer is complete, wait only for a limited time."""
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
