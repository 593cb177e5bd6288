"""One streamed answer as it is read: what both APIs have in common."""

import json
import secrets
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import structlog
from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call

from services.json_levels import shallow_json
from services.llm.json_text import json_values
from services.llm.streams.text import Reasoning, Refusal, ThinkTags
from services.llm.streams.written_calls import Offered, Written, WrittenCalls

REASONING = "reasoning"
"""Key of a message's `additional_kwargs`: fields of the request in which its reasoning is sent back."""
CALL_FIELDS = "call_fields"
"""The same for further fields of its tool calls, by their ids."""
UNUSABLE_CALL = "unusable_call"
"""Key of a message's `response_metadata`: it has a call in its text that cannot be run."""
BEFORE_TEXT = "before_text"
"""Among the fields of `REASONING`: reasoning to be sent back in the text, before the answer."""

log = structlog.get_logger(__name__)

_ID_CHARACTERS = string.ascii_letters + string.digits
_ID_LENGTH = 9
"""Of ids that are made up: some endpoints take no others."""


class AnswerStream:
    """Collects an answer from the events of its stream.

    `read` returns what a person may be shown at once: plain text, `Refusal`, `Reasoning`.
    """

    path: ClassVar[str]
    after_end_s: float
    """Seconds to wait for more once the answer seems complete."""

    def __init__(self, tags: ThinkTags, offered: Offered | None = None) -> None:
        """Take what tells reasoning from text, and the tools that were offered."""
        self.tags = tags
        self._written = WrittenCalls(offered or {})
        self._thought = WrittenCalls(offered or {}, thoughts=True)
        self._unusable = False
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
        """The whole answer; raises `ValueError` where nothing of one came."""
        raise NotImplementedError

    @property
    def begun(self) -> bool:
        """Whether anything of the answer has come."""
        return bool(self._text or self._refusal or self.calls or self._written.holds)

    @property
    def text(self) -> str:
        """The answer's text so far, without reasoning."""
        return "".join(self._text)

    def close(self) -> None:
        """Take the mark that nothing follows; it ends an answer that has begun."""
        self.closed = True
        self.ended = self.ended or self.begun or bool(self._tagged)

    def rest(self) -> Sequence[str]:
        """Return what was held back, at the end of the stream; a call that is written in it is none of it."""
        last = self.tags.end(cut=self.finish == "length")
        if any(type(piece) is str for piece in last) and not self.tags.thinks:
            self._tagged.clear()  # no reasoning after all
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
        """Keep pieces of the text, and return what of them may be shown already."""
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
        """Return what may be shown of a thought already."""
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


@dataclass
class _Call:
    index: object
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are an object already."""
        try:
            return isinstance(shallow_json(self.arguments), dict)
        except ValueError:
            return False


class ToolCallPieces:
    """Puts the calls of one answer together from the pieces in which endpoints send them.

    Endpoints leave out the index, the id or the name, repeat them in every piece, use one index for several calls,
    or send arguments as an object, twice, or in a fence.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self.odd: set[str] = set()
        """What was unusual, in words."""

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._calls)

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take the next piece of a call."""
        function = piece.get("function")
        about: Mapping[str, Any] = function if isinstance(function, Mapping) else piece
        call_id, name, arguments = _text(piece.get("id")), _text(about.get("name")), about.get("arguments")
        if not (call_id or name or arguments or piece.get("extra_content")):
            return
        call = self._call_of(piece.get("index"), call_id, name)
        call.call_id = call.call_id or call_id
        call.name = _continued(call.name, name, begun=bool(call.arguments))
        self._add_arguments(call, arguments)
        if isinstance(extra := piece.get("extra_content"), Mapping):  # Gemini's signature of its thoughts
            call.more["extra_content"] = dict(extra)

    def whole(self) -> tuple[list[ToolCall], list[InvalidToolCall], dict[str, dict[str, Any]]]:
        """Return the calls, those whose arguments cannot be read, and what else came with a call, by its id."""
        calls: list[ToolCall] = []
        invalid: list[InvalidToolCall] = []
        more: dict[str, dict[str, Any]] = {}
        ids: set[str] = set()
        for call in self._calls:
            if not call.name:
                self.odd.add("a tool call without a name")
                continue
            call_id = call.call_id
            if not call_id or call_id in ids:
                self.odd.add("a tool call without an id of its own")
                call_id = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))
            ids.add(call_id)
            arguments = self._arguments(call.arguments)
            if arguments is None:
                invalid.append(invalid_tool_call(name=call.name, args=call.arguments, id=call_id, error=None))
                continue
            calls.append(tool_call(name=call.name, args=arguments, id=call_id))
            if call.more:
                more[call_id] = call.more
        return calls, invalid, more

    def _call_of(self, index: object, call_id: str, name: str) -> _Call:
        """Return the call that a piece belongs to; a new one where it begins one."""
        if index is None:
            self.odd.add("a tool call without an index")
            found = next((each for each in self._calls if call_id and each.call_id == call_id), None)
            last = self._calls[-1] if self._calls else None
            if found is None and not call_id and last is not None and not _begins(last, name):
                found = last
        else:
            found = next((each for each in reversed(self._calls) if each.index == index), None)
            other = found is not None and call_id and found.call_id and call_id != found.call_id
            if found is not None and name and found.is_complete and (other or not call_id):
                self.odd.add("several tool calls with one index")
                found = None
            elif found is None and not (call_id or name) and self._calls:
                self.odd.add("a tool call whose index changes")
                found = self._calls[-1]
        if found is None:
            found = _Call(index)
            self._calls.append(found)
        return found

    def _add_arguments(self, call: _Call, arguments: object) -> None:
        if isinstance(arguments, str):
            if not (call.arguments == arguments and call.is_complete):  # the last piece may repeat all of it
                call.arguments += arguments
        elif arguments is not None:
            self.odd.add("arguments of a tool call that are not text")
            call.arguments = json.dumps(arguments, ensure_ascii=False)

    def _arguments(self, text: str) -> dict[str, Any] | None:
        if not text.strip() or text.strip() == "null":
            return {}
        try:
            value = shallow_json(text)
            if isinstance(value, str):
                self.odd.add("arguments of a tool call encoded twice")
                value = shallow_json(value)
        except ValueError:
            found = [each for each in json_values(text) if isinstance(each, dict)]
            self.odd.add("arguments of a tool call amid other text")
            # An empty object before the real one is how some proxies begin a call.
            return next((each for each in reversed(found) if each), found[-1] if found else None)
        return value if isinstance(value, dict) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _begins(last: _Call, name: str) -> bool:
    """Whether a piece without index and id begins another call, and does not continue the last one."""
    return bool(name and last.name and (name != last.name or last.is_complete))


def _continued(so_far: str, name: str, *, begun: bool) -> str:
    """The name after a further piece of it, which may also repeat it."""
    if not name or so_far == name or (begun and so_far):
        return so_far
    return name if not so_far or name.startswith(so_far) else so_far + name
