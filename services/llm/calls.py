"""Calls of a language model, observed and within bounds."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import orjson
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from opentelemetry.trace import Span, SpanKind

from services.errors import ModelFailed
from services.llm.request_form import LENGTHS, OnText
from services.llm.streams.text import CallPiece, Reasoning, Said
from services.llm.token_estimates import TokenEstimator
from services.platform import span_names as names
from services.platform.metrics import GEN_AI_SECONDS, GEN_AI_TOKENS
from services.platform.tracing import TRACING, span
from services.usage.ledger import Spent, note_spent
from state.prompt import Finish
from state.turn import Sampling

_OVER = 1.5
"""Multiple of the token limit at which an answer is cut off here, if its server ignores the limit."""
_OVER_TOKENS = 16
"""Tokens allowed beyond that multiple, because short answers are estimated badly."""


def finish_of(message: AIMessage) -> Finish:
    """Return why a model's message ends where it does."""
    about = message.response_metadata
    reason = about.get("finish_reason") or (about.get("incomplete_details") or {}).get("reason")
    if reason in {"length", "max_output_tokens"}:
        return "length"
    return "content_filter" if reason == "content_filter" else "stop"


class EnoughSaid(Exception):
    """The answer is as long as it may be: nothing more of it is read."""


class Heard:
    """A call under way: collects the text of the answer and passes it on, up to `most_characters`."""

    def __init__(self, on_text: OnText, most_characters: int, calls: Collection[str] = ()) -> None:
        self._on_text = on_text
        self._calls = calls
        """Names of the tools whose calls are passed on as they are written."""
        self._left = most_characters
        self.said = Said()
        self.first_at: float | None = None
        self.begun = perf_counter()
        self.prompt: Sequence[BaseMessage] = ()
        self.answer: AIMessage | None = None
        """The answer, set by the caller when it is complete."""
        self.passed_on = False
        """Whether anything of the answer was passed on."""

    def __call__(self, piece: str) -> None:
        """Take the next piece, of any kind; raises `EnoughSaid` if it does not fit."""
        if isinstance(piece, CallPiece):
            if piece.call.name in self._calls:
                self.passed_on = True
                self._on_text(piece)
            return
        if self.first_at is None and not isinstance(piece, Reasoning):
            self.first_at = perf_counter()
        length = 0 if isinstance(piece, Reasoning) else len(piece)
        fits = length <= self._left
        piece = piece if fits else piece[: self._left]
        self._left -= length
        self.said(piece)
        self.passed_on = self.passed_on or not isinstance(piece, Reasoning)
        self._on_text(piece)
        if not fits:
            raise EnoughSaid


@contextmanager
def observed_call(model: str, provider: str, heard: Heard) -> Iterator[None]:
    about = {names.OPERATION: "chat", names.PROVIDER: provider, names.REQUEST_MODEL: model}
    failure = "cancelled"
    with span(f"chat {model}", about, kind=SpanKind.CLIENT) as current:
        try:
            yield
            failure = ""
        except ModelFailed as failed:
            failure = failed.failure
            raise
        finally:
            GEN_AI_SECONDS.labels("chat", provider, model, failure).observe(perf_counter() - heard.begun)
            _count_tokens(heard.answer, provider, model)
            if current.is_recording():
                _describe(current, heard)


def _count_tokens(answer: AIMessage | None, provider: str, model: str) -> None:
    spent = Spent(calls=1)
    if answer is not None and (usage := answer.usage_metadata):
        cached = (usage.get("input_token_details") or {}).get("cache_read") or 0
        spent = Spent(1, usage["input_tokens"], usage["output_tokens"], cached)
        GEN_AI_TOKENS.labels("chat", provider, model, "input").observe(usage["input_tokens"])
        GEN_AI_TOKENS.labels("chat", provider, model, "output").observe(usage["output_tokens"])
    note_spent(model, spent)


def _describe(current: Span, heard: Heard) -> None:
    if heard.first_at is not None:
        current.set_attribute(names.FIRST_CHUNK, heard.first_at - heard.begun)
    if TRACING.shows_content:
        told = [{"role": each.type, "parts": [{"type": "text", "content": each.text}]} for each in heard.prompt]
        said = [{"role": "assistant", "parts": [{"type": "text", "content": heard.said.text}]}]
        current.set_attribute(names.INPUT_MESSAGES, orjson.dumps(told).decode())
        current.set_attribute(names.OUTPUT_MESSAGES, orjson.dumps(said).decode())
    if heard.answer is None:
        return
    if usage := heard.answer.usage_metadata:
        current.set_attribute(names.INPUT_TOKENS, usage["input_tokens"])
        current.set_attribute(names.OUTPUT_TOKENS, usage["output_tokens"])
        current.set_attribute(names.CACHED_TOKENS, (usage.get("input_token_details") or {}).get("cache_read") or 0)
    metadata = heard.answer.response_metadata
    if reason := metadata.get("finish_reason") or metadata.get("status"):
        current.set_attribute(names.FINISH_REASONS, [str(reason)])
    if name := metadata.get("model_name") or metadata.get("model"):
        current.set_attribute(names.RESPONSE_MODEL, str(name))


@dataclass(frozen=True)
class Bounds:
    """Limits of one answer; None = no limit."""

    seconds: float | None = None
    tokens: int | None = None
    prompt_tokens: int = 0
    """Estimated number of tokens of the prompt, for the usage of an answer that is cut off."""


@dataclass(frozen=True)
class BoundedAnswer:
    """An answer, and what ended it."""

    message: AIMessage
    text: str
    """The part of the answer that was passed on; empty if the limit came first."""
    ended_by: Literal["model", "seconds", "tokens"]


class _Counted:
    """Passes text on until it is much longer than the limit allows."""

    def __init__(self, on_text: OnText, tokens: TokenEstimator, most: int | None) -> None:
        self._on_text, self._tokens, self._most = on_text, tokens, most
        self.said = Said()
        self.passed_on = False

    def __call__(self, piece: str) -> None:
        self.said(piece)
        self.passed_on = self.passed_on or not isinstance(piece, Reasoning)
        self._on_text(piece)
        if self._most is not None and self._tokens.count(self.said.text) > self._most * _OVER + _OVER_TOKENS:
            raise EnoughSaid


async def answer_within(
    ask: Callable[..., Awaitable[AIMessage]],
    bounds: Bounds,
    tokens: TokenEstimator,
    *,
    on_text: OnText,
    model: str,
    sampling: Sampling | None,
) -> BoundedAnswer:
    """Ask with `ChatModels.answer` and stop at the bounds; `ask` holds the other arguments.

    Tool calls of an answer that is cut off are dropped, and its usage is estimated. The usage of an answer that
    broke off or was cancelled after its first text is estimated too, because the provider bills it and reports
    usage only at the end. Raises `ModelFailed` if no model answered, or the answer broke off.
    """
    heard = _Counted(on_text, tokens, bounds.tokens)
    ended_by: Literal["seconds", "tokens"] = "seconds"
    deadline = asyncio.timeout(bounds.seconds)

    def estimated() -> Spent:
        spent = Spent(0, bounds.prompt_tokens, tokens.count(heard.said.text))
        note_spent(model, spent)
        return spent

    try:
        async with deadline:
            reply = await ask(on_text=heard, model=model, sampling=sampling, most_tokens=bounds.tokens)
        by_limit = bounds.tokens is not None and finish_of(reply) == "length"
        return BoundedAnswer(
            reply, heard.said.text, "tokens" if by_limit and not _is_shorter(sampling, bounds) else "model"
        )
    except TimeoutError:
        if not deadline.expired():
            raise
    except EnoughSaid:
        ended_by = "tokens"
    except asyncio.CancelledError:
        if heard.passed_on:
            estimated()
        raise
    except ModelFailed as failure:
        if heard.passed_on:
            estimated()
            raise
        # The model used all tokens up before it said anything.
        if bounds.tokens is None or failure.parameter not in LENGTHS or _is_shorter(sampling, bounds):
            raise
        ended_by = "tokens"
    return BoundedAnswer(_cut_off(heard.said.text, estimated()), heard.said.text, ended_by)


def _is_shorter(sampling: Sampling | None, bounds: Bounds) -> bool:
    """Whether the caller has asked for a shorter answer anyway."""
    asked: Any = sampling or {}
    return any(asked[name] <= (bounds.tokens or 0) for name in LENGTHS if name in asked)


def _cut_off(text: str, spent: Spent) -> AIMessage:
    usage = UsageMetadata(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        total_tokens=spent.input_tokens + spent.output_tokens,
    )
    return AIMessage(text, usage_metadata=usage, response_metadata={"finish_reason": "length"})
