"""`ChatOpenAI` with a stream that costs a quarter of the CPU and accepts what compatible endpoints really send; a
truncated answer never counts as complete.

The stock class spends most of its time for a streamed answer on building an SDK object and a message chunk for
every few characters, and treats every endpoint like OpenAI's. This class reads the response's events itself
(`services.llm.streams`), and passes text on in the pieces in which the network delivered it. For streams as OpenAI
sends them, the tests compare its messages with those of `ChatOpenAI`.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Any

import httpx2
import openai
import orjson
from langchain_core.callbacks import AsyncCallbackManager, AsyncCallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import _handle_openai_api_error, _handle_openai_bad_request
from pydantic import Field, PrivateAttr

from services.json_levels import check_levels
from services.llm.request_form import OnText
from services.llm.sending import EventData, Sender
from services.llm.streams.answer import BEFORE_TEXT, CALL_FIELDS, REASONING, AnswerStream
from services.llm.streams.chat import ChatStream
from services.llm.streams.faults import AnswerFailed
from services.llm.streams.responses import ResponsesStream
from services.llm.streams.text import BegunCall, CallPiece, ThinkStyles, ThinkTags, looks_thought_first

_CONNECT_TIMEOUT_S = 5.0
_PIECE_BYTES = 256 * 1024
_MOST_OTHER_BYTES = 16 * 1024 * 1024
"""Bytes of events that are not plain text: reasoning, calls of tools, metadata."""
_REPEATED_BYTES = 24
"""Maximum bytes for each character of text, because four closing events repeat the whole text, and a character may
be escaped as six bytes."""
_AFTER_CLOSED_S = 0.1
"""Seconds to wait for the end of the body after the final mark, so that the connection can be reused."""


def connections(timeout_s: float, *, over_socks: bool) -> httpx2.AsyncClient:
    """Make the connections to an endpoint.

    Args:
        timeout_s: seconds without a byte after which a request fails; to connect, at most five.
        over_socks: whether a SOCKS proxy is between: aiohttp, which costs less, would speak HTTP to it.
    """
    make = openai.DefaultAsyncHttpxClient if over_socks else openai.DefaultAioHttpClient
    return make(timeout=timeouts(timeout_s))


def timeouts(timeout_s: float) -> openai.Timeout:
    """Return the time-outs of a request. The SDK's client sends them with each request, so those of the
    connections do not apply."""
    return openai.Timeout(timeout_s, connect=min(_CONNECT_TIMEOUT_S, timeout_s))


class StreamBroken(openai.APIError):
    """The stream ended without a sign that the answer is complete."""

    def __init__(self, request: httpx2.Request) -> None:
        super().__init__("The stream ended before the answer was complete.", request, body=None)


class LeanChatOpenAI(ChatOpenAI):
    """`ChatOpenAI`, reading the response's events itself.

    `ainvoke(messages, on_text=f)` streams: `f` gets the text as it arrives (and reasoning and refusals, as
    `streams.text` tells them apart), `on_begun` is called at the first bytes of the response's body, and the
    complete message is returned, with one pair of callbacks per call.
    `astream` works as in the stock class.
    """

    think_styles: ThinkStyles = Field(default_factory=ThinkStyles, exclude=True)
    """How models write reasoning; shared by the models of one endpoint."""
    _sender: Sender | None = PrivateAttr(default=None)

    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Return the whole answer; without callbacks, skip the work that they cost."""
        config = ensure_config(config)
        listening = AsyncCallbackManager.configure(config.get("callbacks"), self.callbacks, self.verbose).handlers
        if listening or "on_text" not in kwargs:
            return await super().ainvoke(input, config, stop=stop, **kwargs)
        result = await self._agenerate(self._convert_input(input).to_messages(), stop, **kwargs)
        answer = result.generations[0].message
        if not isinstance(answer, AIMessage):
            raise TypeError("An answer is a message of the model.")
        return answer

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        on_text: OnText | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        stream = self._stream_for(kwargs)
        streamed = ""
        async with aclosing(self._pieces(stream, messages, stop, kwargs)) as pieces:
            async for piece in pieces:
                if on_text:
                    on_text(piece)
                if type(piece) is not str:
                    continue
                streamed += piece
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
                if run_manager:
                    await run_manager.on_llm_new_token(piece, chunk=chunk)
                yield chunk
        yield ChatGenerationChunk(message=_last_chunk(stream.message(), streamed))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        on_text: OnText | None = None,
        on_begun: Callable[[], None] | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        stream = self._stream_for(kwargs)
        async with aclosing(self._pieces(stream, messages, stop, kwargs, on_begun)) as pieces:
            async for piece in pieces:
                if on_text:
                    on_text(piece)
        return ChatResult(generations=[ChatGeneration(message=stream.message())])

    def _stream_for(self, options: Mapping[str, Any]) -> AnswerStream:
        tags = ThinkTags(thinks_first=self.think_styles.think_first(self.model_name))
        functions = [each.get("function", each) for each in options.get("tools") or ()]
        offered = {str(each.get("name")): each.get("parameters") or {} for each in functions}
        uses_responses = self._use_responses_api({**options, **self.model_kwargs})
        return ResponsesStream(tags, offered) if uses_responses else ChatStream(tags, offered)

    async def _pieces(
        self,
        stream: AnswerStream,
        messages: list[BaseMessage],
        stop: list[str] | None,
        kwargs: dict[str, Any],
        on_begun: Callable[[], None] | None = None,
    ) -> AsyncGenerator[str]:
        """Yield text, joined for each network read, and the other kinds of pieces, in order.

        `on_begun` is called at the first bytes of the response's body.
        """
        usage = self._should_stream_usage(**kwargs) and isinstance(stream, ChatStream)
        options = {"stream": True, **({"stream_options": {"include_usage": True}} if usage else {}), **kwargs}
        options.pop("stream_usage", None)  # an option of the call, not of the request
        payload = self._get_request_payload(messages, stop=stop, **options)
        try:
            response = await self._post(stream.path, payload)
            try:
                async with aclosing(_read(response, stream, on_begun)) as pieces:
                    async for piece in pieces:
                        yield piece
            finally:
                await response.aclose()
        except openai.BadRequestError as error:
            _handle_openai_bad_request(error)
        except openai.APIError as error:
            _handle_openai_api_error(error)
        if text := stream.text:
            thought_first = stream.tags.thought_first or looks_thought_first(text)
            if self.think_styles.learn(self.model_name, thought_first=thought_first):
                await asyncio.to_thread(self.think_styles.keep)

    def _get_request_payload(
        self,
        input_: LanguageModelInput,
        *,
        stop: list[str] | None = None,
        with_reasoning: bool = True,
        with_bare_calls: bool = True,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Send the reasoning of earlier calls of this turn back, in the fields in which it came. Without bare
        calls, those that have none get an empty one: DeepSeek's thinking models want it."""
        messages = self._convert_input(input_).to_messages()
        payload = super()._get_request_payload(messages, stop=stop, **kwargs)
        for message, sent in zip(messages, payload.get("messages", ()), strict=False):
            if isinstance(message, AIMessage) and message.tool_calls and with_reasoning:
                _send_back(message, sent)
                if not with_bare_calls:
                    sent.setdefault("reasoning_content", "")
        return payload

    async def _post(self, path: str, payload: dict[str, Any]) -> httpx2.Response:
        """Send the request as it is."""
        headers = dict(payload.pop("extra_headers", None) or {})
        query, timeout = payload.pop("extra_query", None), payload.pop("timeout", None)
        extra = payload.pop("extra_body", None) or {}
        body = {**payload, **extra}
        given = {k: v for k, v in body.items() if not isinstance(v, openai.NotGiven | openai.Omit)}
        content = await asyncio.to_thread(orjson.dumps, given) if _has_images(given) else orjson.dumps(given)
        if len(content) > _PIECE_BYTES:
            headers["Content-Length"] = str(len(content))
        if self._sender is None:
            self._sender = Sender(self.root_async_client)
        return await self._sender.post(
            path,
            _in_pieces(content) if len(content) > _PIECE_BYTES else content,
            headers=headers,
            query=query,
            timeout=timeout,
        )


async def _in_pieces(content: bytes) -> AsyncGenerator[bytes]:
    """Yield a long body in pieces: written as a whole, it would hold up the event loop."""
    for begin in range(0, len(content), _PIECE_BYTES):
        yield content[begin : begin + _PIECE_BYTES]


def _has_images(body: Mapping[str, Any]) -> bool:
    """Whether a message has images, which may have megabytes."""
    messages = body.get("messages") or body.get("input")
    contents = [one.get("content") for one in messages] if isinstance(messages, list) else []
    return any("image_url" in part for parts in contents if isinstance(parts, list) for part in parts)


def _send_back(message: AIMessage, sent: dict[str, Any]) -> None:
    """Add to a message with tool calls the fields that its endpoint wants to receive again."""
    fields = dict(message.additional_kwargs.get(REASONING, {}))
    if before := fields.pop(BEFORE_TEXT, ""):
        sent["content"] = f"<think>\n{before.strip()}\n</think>\n\n{sent.get('content') or ''}"
    sent.update(fields)
    for call in sent.get("tool_calls", ()):
        call.update(message.additional_kwargs.get(CALL_FIELDS, {}).get(call["id"], {}))


async def _read(
    response: httpx2.Response, stream: AnswerStream, on_begun: Callable[[], None] | None
) -> AsyncGenerator[str]:
    """Yield the pieces of an answer as they arrive.

    Raises:
        StreamBroken: the body ends before the answer.
        openai.APIError: the endpoint reports an error, or cannot be read on.
        TypeError: it sends something else than an answer.
    """
    data, other_bytes, text_length = EventData(), 0, 0
    try:
        async for received in _reads(response, stream):
            if on_begun is not None:
                on_begun()
                on_begun = None
            last = received is None
            arrived: list[str] = []
            for event in data.end() if received is None else data.feed(received):
                said = 0
                for piece in _pieces_of(event, stream, last=last):
                    arrived.append(piece)
                    if type(piece) is str:
                        said += len(piece)
                text_length += said
                other_bytes += 0 if said else len(event)
                if other_bytes > _MOST_OTHER_BYTES + _REPEATED_BYTES * text_length:
                    raise ValueError("The events that are not text are too many.")
            for kind, adjacent in groupby(arrived, _kind):
                text = "".join(adjacent)
                yield CallPiece.of(text, kind) if isinstance(kind, BegunCall) else kind(text)
        for piece in stream.rest():
            yield piece
    except AttributeError as error:
        raise TypeError("An event of the stream is not of the API's shape.") from error
    except AnswerFailed as failed:
        message = failed.body.get("message") if isinstance(failed.body, dict) else failed.body
        text_of_error = message if isinstance(message, str) and message else "An error occurred during streaming"
        raise openai.APIError(text_of_error, response.request, body=failed.body) from failed
    if not stream.ended:
        raise _unfinished(response)


def _kind(piece: str) -> BegunCall | type[str]:
    """Return a key that is equal for adjacent pieces that may be joined."""
    return piece.call if isinstance(piece, CallPiece) else type(piece)


def _pieces_of(event: bytes, stream: AnswerStream, *, last: bool) -> Sequence[str]:
    """Return the pieces of an event; the `last` event may have been cut off."""
    content = event.strip()
    if not content.startswith(b"{"):
        if content.upper() == b"[DONE]":
            stream.close()
            return []
        if not content:
            return []
    try:
        check_levels(content)
        parsed = orjson.loads(content)
    except orjson.JSONDecodeError:
        if last:
            return []
        raise
    if parsed is None:
        return []
    if not isinstance(parsed, dict):
        raise TypeError("An event of the stream is not a JSON object.")
    return stream.read(parsed)


def _unfinished(response: httpx2.Response) -> Exception:
    """Return the error for a body that ended before the answer was complete."""
    kind = response.headers.get("content-type", "")
    if kind.startswith(("text/html", "application/json")):
        return TypeError(f"The endpoint answered {kind} and not a stream of events.")
    return StreamBroken(response.request)


async def _reads(response: httpx2.Response, stream: AnswerStream) -> AsyncGenerator[bytes | None]:
    """Yield the body as it arrives, and None at its end. Once the answer is complete, wait only briefly for
    more."""
    body = response.aiter_bytes()
    while True:
        patience = _AFTER_CLOSED_S if stream.closed and stream.ended else stream.after_end_s
        try:
            async with asyncio.timeout(patience if stream.ended else None):
                received = await anext(body, b"")
        except TimeoutError:
            break
        except httpx2.RequestError as error:
            if stream.ended:
                break
            if isinstance(error, httpx2.TimeoutException):
                raise openai.APITimeoutError(response.request) from error
            raise openai.APIConnectionError(request=response.request) from error
        if not received:
            break
        yield received
    yield None


def _last_chunk(message: AIMessage, streamed: str) -> AIMessageChunk:
    """Return the part of a message that was not streamed."""
    chunks = [
        tool_call_chunk(name=call["name"], args=orjson.dumps(call["args"]).decode(), id=call["id"], index=index)
        for index, call in enumerate(message.tool_calls)
    ]
    content: Any = message.content
    if isinstance(content, str):
        content = content.removeprefix(streamed)
    return AIMessageChunk(
        content=content,
        tool_call_chunks=chunks,
        invalid_tool_calls=message.invalid_tool_calls,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
    )
