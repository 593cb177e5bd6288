"""One streamed answer as it is read: what both APIs have in common."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import structlog
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from services.llm.streams.call_pieces import ToolCallPieces
from services.llm.streams.text import Reasoning, Refusal, ThinkTags
from services.llm.streams.written_calls import Offered, Written, WrittenCalls

REASONING = "reasoning"
"""Key of a message's `additional_kwargs`: fields of the request in which its reasoning is sent back."""
CALL_FIELDS = "call_fields"
"""Key of further fields of the answer's tool calls, by their ids."""
UNUSABLE_CALL = "unusable_call"
"""Key of a message's `response_metadata`: its text has a tool call that cannot be run."""
BEFORE_TEXT = "before_text"
"""Key in the fields of `REASONING`: reasoning to send back inside the text, before the answer."""

log = structlog.get_logger(__name__)


class AnswerStream:
    """Collects an answer from the events of its stream.

    `read` returns what a person may be shown at once: plain text, `Refusal`, `Reasoning`.
    """

    path: ClassVar[str]
    after_end_s: float
    """Seconds to wait for more after the answer seems complete."""

    def __init__(self, tags: ThinkTags, offered: Offered | None = None) -> None:
        """Take the object that separates reasoning from text, and the tools that were offered."""
        self.tags = tags
        self._written = WrittenCalls(offered or {})
        self._thought = WrittenCalls(offered or {}, thoughts=True)
        self._unusable = False
        self.ended = False
        """Whether the stream has said that the answer is complete."""
        self.closed = False
        """Whether the stream has said that nothing else follows."""
        self.calls = ToolCallPieces()
        self.usage: UsageMetadata | None = None
        self.finish: str | None = None
        self._model = ""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._tagged: list[str] = []

    def read(self, event: dict[str, Any]) -> Sequence[str]:
        """Take one event. Raises `AnswerFailed` if it reports an error, and `TypeError` if it is not of the
        API's shape."""
        raise NotImplementedError

    def message(self) -> AIMessage:
        """The whole answer; raises `ValueError` where nothing of one came."""
        raise NotImplementedError

    @property
    def begun(self) -> bool:
        """Whether any part of the answer has arrived."""
        return bool(self._text or self._refusal or self.calls or self._written.holds)

    @property
    def text(self) -> str:
        """The answer's text so far, without reasoning."""
        return "".join(self._text)

    def close(self) -> None:
        """Take the mark after which nothing follows; it ends an answer that has begun."""
        self.closed = True
        self.ended = self.ended or self.begun or bool(self._tagged)

    def rest(self) -> Sequence[str]:
        """Return the text that was held back, at the end of the stream, without a tool call written in it."""
        last = self.tags.end(cut=self.finish == "length")
        if any(type(piece) is str for piece in last) and not self.tags.thinks:
            self._tagged.clear()  # the tagged text was not reasoning
        pieces = list(self._kept(last))
        written, thought = self._written.end(), self._thought.end()
        if written.text:
            self._text.append(written.text)
            pieces.append(written.text)
        if thought.text:
            pieces.append(Reasoning(thought.text))
        if self.calls or "".join(self._text).strip():
            thought = Written()
        for place, (name, arguments) in enumerate(written.calls or thought.calls):
            self.calls.odd.add("a tool call written as text")
            self.calls.add({"index": f"written-{place}", "function": {"name": name, "arguments": arguments}})
        self._unusable = (written.unusable or thought.unusable) and not self.calls
        return pieces

    def _say(self, text: str) -> Sequence[str]:
        return self._kept(self.tags.feed(text))

    def _kept(self, pieces: Sequence[str]) -> Sequence[str]:
        """Store pieces of the text, and return the part of them that may be shown already."""
        shown: list[str] = []
        for piece in pieces:
            if isinstance(piece, Reasoning):
                self._tagged.append(piece)
                shown += self._thinks(piece)
            elif text := self._written.feed(piece):
                self._text.append(text)
                shown.append(text)
        return shown

    def _thinks(self, thought: str) -> Sequence[str]:
        """Return the part of a thought that may be shown already."""
        shown = self._thought.feed(thought)
        return [Reasoning(shown)] if shown else []

    def _decline(self, words: str) -> Sequence[str]:
        self._refusal.append(words)
        return [Refusal(words)]

    def _made(self, content: Any, **more: Any) -> AIMessage:
        calls, invalid, call_fields = self.calls.whole()
        if self.calls.odd:
            log.info("the endpoint's tool calls are unusual", how=sorted(self.calls.odd))
        metadata: dict[str, Any] = {"finish_reason": self.finish} if self.finish else {}
        if self._unusable:
            metadata[UNUSABLE_CALL] = True
        if self._model:
            metadata["model_name"] = self._model
        kwargs = dict(more)
        if call_fields:
            kwargs[CALL_FIELDS] = call_fields
        if self._refusal:
            kwargs["refusal"] = "".join(self._refusal)
        return AIMessage(
            content,
            tool_calls=calls,
            invalid_tool_calls=invalid,
            additional_kwargs=kwargs,
            response_metadata=metadata,
            usage_metadata=self.usage,
        )


def usage_of(reported: object, inputs: Iterable[str], outputs: Iterable[str]) -> UsageMetadata | None:
    """Return the tokens that an endpoint reports under any of these names; None where it reports none."""
    if not isinstance(reported, Mapping):
        return None
    input_tokens, output_tokens = _count(reported, inputs), _count(reported, outputs)
    if not (input_tokens or output_tokens):
        return None
    usage = UsageMetadata(
        input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=input_tokens + output_tokens
    )
    details = reported.get("prompt_tokens_details") or reported.get("input_tokens_details")
    cached = _count(details, ["cached_tokens"]) if isinstance(details, Mapping) else 0
    if cached := cached or _count(reported, ["prompt_cache_hit_tokens", "cached_tokens"]):
        usage["input_token_details"] = InputTokenDetails(cache_read=cached)
    return usage


def _count(reported: Mapping[str, Any], names: Iterable[str]) -> int:
    values = (reported.get(name) for name in names)
    return next((int(value) for value in values if isinstance(value, int | float) and value > 0), 0)
