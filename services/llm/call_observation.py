"""Observe each call of a language model: a span, durations, tokens."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

import orjson
from langchain_core.messages import AIMessage, BaseMessage
from opentelemetry.trace import Span, SpanKind

from services.errors import ModelFailed
from services.llm.message_form import OnText
from services.llm.streams.pieces import Reasoning, Said
from services.platform import span_names as names
from services.platform.metrics import GEN_AI_SECONDS, GEN_AI_TOKENS
from services.platform.tracing import TRACING, span
from services.usage.ledger import Spent, note_spent


class Heard:
    """The text of an answer as it arrives; passes it on."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self.said = Said()
        self.first_at: float | None = None
        self.prompt: Sequence[BaseMessage] = ()

    def __call__(self, piece: str) -> None:
        """Take the next piece, of any kind."""
        if self.first_at is None and not isinstance(piece, Reasoning):
            self.first_at = perf_counter()
        self.said(piece)
        self._on_text(piece)


@dataclass
class ObservedCall:
    """A call under way."""

    begun: float = field(default_factory=perf_counter)
    answer: AIMessage | None = None
    """Set by the caller, once it is there."""


@contextmanager
def observed_call(model: str, provider: str, heard: Heard) -> Iterator[ObservedCall]:
    """Observe one call of a model."""
    call = ObservedCall()
    about = {names.OPERATION: "chat", names.PROVIDER: provider, names.REQUEST_MODEL: model}
    failure = "cancelled"
    with span(f"chat {model}", about, kind=SpanKind.CLIENT) as current:
        try:
            yield call
            failure = ""
        except ModelFailed as failed:
            failure = failed.failure
            raise
        finally:
            GEN_AI_SECONDS.labels("chat", provider, model, failure).observe(perf_counter() - call.begun)
            _count_tokens(call.answer, provider, model)
            if current.is_recording():
                _describe(current, call, heard)


def _count_tokens(answer: AIMessage | None, provider: str, model: str) -> None:
    spent = Spent(calls=1)
    if answer is not None and (usage := answer.usage_metadata):
        cached = (usage.get("input_token_details") or {}).get("cache_read") or 0
        spent = Spent(1, usage["input_tokens"], usage["output_tokens"], cached)
        GEN_AI_TOKENS.labels("chat", provider, model, "input").observe(usage["input_tokens"])
        GEN_AI_TOKENS.labels("chat", provider, model, "output").observe(usage["output_tokens"])
    note_spent(model, spent)


def _describe(current: Span, call: ObservedCall, heard: Heard) -> None:
    if heard.first_at is not None:
        current.set_attribute(names.FIRST_CHUNK, heard.first_at - call.begun)
    if TRACING.shows_content:
        told = [{"role": each.type, "parts": [{"type": "text", "content": each.text}]} for each in heard.prompt]
        said = [{"role": "assistant", "parts": [{"type": "text", "content": heard.said.text}]}]
        current.set_attribute(names.INPUT_MESSAGES, orjson.dumps(told).decode())
        current.set_attribute(names.OUTPUT_MESSAGES, orjson.dumps(said).decode())
    if call.answer is None:
        return
    if usage := call.answer.usage_metadata:
        current.set_attribute(names.INPUT_TOKENS, usage["input_tokens"])
        current.set_attribute(names.OUTPUT_TOKENS, usage["output_tokens"])
        current.set_attribute(names.CACHED_TOKENS, (usage.get("input_token_details") or {}).get("cache_read") or 0)
    metadata = call.answer.response_metadata
    if reason := metadata.get("finish_reason") or metadata.get("status"):
        current.set_attribute(names.FINISH_REASONS, [str(reason)])
    if name := metadata.get("model_name") or metadata.get("model"):
        current.set_attribute(names.RESPONSE_MODEL, str(name))
