"""One streamed answer as it is read: what both APIs have in common."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from services.llm.streams.pieces import Reasoning, Refusal
from services.llm.streams.think_tags import ThinkTags
from services.llm.streams.tool_calls import ToolCallPieces

REASONING = "reasoning"
"""Key of a message's `additional_kwargs`: fields of the request in which its reasoning is sent back."""
CALL_FIELDS = "call_fields"
"""The same for further fields of its tool calls, by their ids."""
BEFORE_TEXT = "before_text"
"""Among the fields of `REASONING`: reasoning to be sent back in the text, before the answer."""


class AnswerStream:
    """Collects an answer from the events of its stream.

    `read` returns what a person may be shown at once: plain text, `Refusal`, `Reasoning`, `Retraction`.
    """

    path: ClassVar[str]
    after_end_s: float
    """Seconds to wait for more once the answer seems complete."""

    def __init__(self, tags: ThinkTags) -> None:
        self.tags = tags
        self.ended = False
        """Whether the stream has said that the answer is complete."""
        self.closed = False
        """Whether it has said that nothing follows."""
        self.calls = ToolCallPieces()
        self.usage: UsageMetadata | None = None
        self.finish: str | None = None
        self._model = ""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._tagged: list[str] = []

    def read(self, event: dict[str, Any]) -> Sequence[str]:
        """Take one event.

        Raises:
            AnswerFailed: it reports an error.
            TypeError: it is not of the API's shape.
        """
        raise NotImplementedError

    def message(self) -> AIMessage:
        """The whole answer."""
        raise NotImplementedError

    @property
    def begun(self) -> bool:
        """Whether anything of the answer has come."""
        return bool(self._text or self._refusal or self.calls)

    def close(self) -> None:
        """Take the mark that nothing follows; it ends an answer that has begun."""
        self.closed = True
        self.ended = self.ended or self.begun or bool(self._tagged)

    def rest(self) -> Sequence[str]:
        """Return what was held back, at the end of the stream."""
        return self._kept(self.tags.end())

    def _say(self, text: str) -> Sequence[str]:
        pieces = self.tags.feed(text)
        if len(pieces) == 1 and type(pieces[0]) is str:
            self._text.append(pieces[0])
            return pieces
        return self._kept(pieces)

    def _kept(self, pieces: list[str]) -> Sequence[str]:
        for piece in pieces:
            if type(piece) is str:
                self._text.append(piece)
            elif isinstance(piece, Reasoning):
                self._tagged.append(piece)
            else:  # a retraction, after which the same comes as reasoning
                self._text.clear()
        return pieces

    def _decline(self, words: str) -> Sequence[str]:
        self._refusal.append(words)
        return [Refusal(words)]

    def _made(self, content: Any, **more: Any) -> AIMessage:
        calls, invalid, call_fields = self.calls.whole()
        metadata: dict[str, Any] = {"finish_reason": self.finish} if self.finish else {}
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
