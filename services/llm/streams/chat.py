"""Reads the streams of Chat Completions as endpoints that call themselves compatible really send them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.messages import AIMessage

from services.llm.streams.answer import BEFORE_TEXT, REASONING, AnswerStream, usage_of
from services.llm.streams.faults import AnswerFailed, refuse_fault
from services.llm.streams.text import ThinkTags
from services.llm.streams.written_calls import Offered

_FINISHES: Mapping[str, str] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "normal"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_length", "max_output_tokens"), "length"),
    **dict.fromkeys(("tool_calls", "tool_call", "function_call", "tool_use"), "tool_calls"),
    **dict.fromkeys(("content_filter", "sensitive", "safety", "recitation", "blocklist"), "content_filter"),
    "repetition_truncation": "stop",
}
"""Reasons that end an answer, in lower case; any other value says nothing."""
_AFTER_END_S = 2.0
_AFTER_TEXT_S = 10.0
"""Seconds to wait where the finish reason came with text: some servers send it with every piece."""
_FAILURES = frozenset({"error", "network_error", "insufficient_system_resource"})

_PLAIN = frozenset({"content", "role"})
_REASONING = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""Fields of a delta that hold reasoning as text; endpoints that send two send the same in both."""
_REASONING_LISTS = ("reasoning_details", "thinking_blocks")
"""Fields that hold it in signed blocks, which OpenRouter and LiteLLM want back."""
_CONTINUED = frozenset({"text", "summary", "data", "thinking"})
"""Fields of such a block that come in pieces."""


class ChatStream(AnswerStream):
    """Reads the streamed answer of the Chat Completions API."""

    path: ClassVar[str] = "/chat/completions"
    after_end_s = _AFTER_END_S

    def __init__(self, tags: ThinkTags, offered: Offered | None = None) -> None:
        super().__init__(tags, offered)
        self._reasoning_field = ""
        self._reasoning: list[str] = []
        self._blocks: dict[str, list[dict[str, Any]]] = {}

    def read(self, event: dict[str, Any]) -> Sequence[str]:
        if text := _text_alone(event):
            return self._say(text)
        refuse_fault(event)
        choice = _choice(event)
        usages = (event.get("usage"), choice.get("usage"), (event.get("x_groq") or {}).get("usage"))
        for reported in usages:
            if usage := usage_of(reported, ["prompt_tokens"], ["completion_tokens"]):
                self.usage = usage  # running totals: the last is the whole
                break
        if not self._model and isinstance(model := event.get("model"), str):
            self._model = model
        delta = self._delta(choice)
        pieces = list(self._pieces(delta)) if delta else []
        if self.ended and not choice and event.get("usage"):
            self.closed = True  # where there is a usage of its own, nothing follows it
        if isinstance(reason := choice.get("finish_reason"), str):
            self._end(reason.strip().lower())
            self.after_end_s = _AFTER_TEXT_S if pieces else _AFTER_END_S
        return pieces

    def _delta(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what an event adds to the answer; of a whole message, only the part that was not streamed."""
        delta = choice.get("delta")
        if isinstance(delta, Mapping) and delta:
            return delta
        if delta not in (None, "", [], {}):
            raise TypeError("A delta is not an object.")
        if isinstance(whole := choice.get("message"), Mapping) and not self.begun:
            shown = set(_REASONING) if self._reasoning else set()
            return {name: value for name, value in whole.items() if name not in shown}
        text = choice.get("text")
        return (
            {"content": text} if isinstance(text, str) and not isinstance(choice.get("message"), Mapping) else {}
        )

    def _pieces(self, delta: Mapping[str, Any]) -> Iterator[str]:
        for name in _REASONING_LISTS:
            if isinstance(blocks := delta.get(name), list):
                _add_blocks(self._blocks.setdefault(name, []), blocks)
        for name in _REASONING:
            if thought := _flat(delta.get(name)):
                yield from self._think(name, thought)
                break
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                yield from self._say(content)
        elif isinstance(content, Sequence):
            for part in content:
                yield from self._part(part)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            yield from self._decline(refusal)
        calls = delta.get("tool_calls") or delta.get("function_call") or ()
        for call in [calls] if isinstance(calls, Mapping) else calls:
            if isinstance(call, Mapping):
                yield from self.calls.add(call)

    def _part(self, part: object) -> Iterator[str]:
        """A part of content that is a list: text, or Mistral's thinking."""
        if isinstance(part, str):
            yield from self._say(part)
        elif isinstance(part, Mapping):
            if thought := _flat(part.get("thinking")):
                yield from self._think("", thought)
            elif text := _flat(part.get("text")):
                yield from self._say(text)

    def _think(self, name: str, thought: str) -> Iterator[str]:
        self._reasoning_field = self._reasoning_field or name
        self._reasoning.append(thought)
        yield from self._kept(self.tags.reasoning_is_apart())
        yield from self._thinks(thought)

    def _end(self, reason: str) -> None:
        if reason in _FAILURES:
            raise AnswerFailed({"message": f"The answer ended with finish_reason {reason}.", "code": reason})
        if finish := _FINISHES.get(reason):
            self.ended, self.finish = True, finish

    def close(self) -> None:
        super().close()
        self.ended = self.ended or bool(self._reasoning)

    def message(self) -> AIMessage:
        back: dict[str, Any] = dict(self._blocks)
        if self._reasoning_field:
            back[self._reasoning_field] = "".join(self._reasoning)
        if self._tagged:
            back[BEFORE_TEXT] = "".join(self._tagged)
        return self._made("".join(self._text), **({REASONING: back} if back else {}))


def _text_alone(event: Mapping[str, Any]) -> str | None:
    """The text of an event that holds nothing else, as most do: without a detour."""
    choices = event.get("choices")
    if type(choices) is not list or len(choices) != 1 or event.get("usage") or "error" in event:
        return None
    choice = choices[0]
    delta = choice.get("delta") if type(choice) is dict else None
    if type(delta) is not dict or choice.get("finish_reason") or choice.get("usage"):
        return None
    text = delta.get("content")
    if type(text) is not str or any(delta[name] for name in delta if name not in _PLAIN):
        return None
    return text


def _choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the event's first choice; an empty one where it has none."""
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else choices
    if choice in (None, [], "", {}):
        return {}
    if not isinstance(choice, Mapping):
        raise TypeError("A choice is not an object.")
    return choice


def _flat(value: object) -> str:
    """Text, or the texts of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _flat(value.get("text") or value.get("content"))
    return "".join(map(_flat, value)) if isinstance(value, list) else ""


def _add_blocks(blocks: list[dict[str, Any]], pieces: list[Any]) -> None:
    """Add pieces of blocks; a piece with the index and type of the last block continues that block."""
    for piece in pieces:
        if not isinstance(piece, Mapping):
            continue
        last = blocks[-1] if blocks else None
        same = last is not None and all(last.get(name) == piece.get(name) for name in ("index", "type"))
        if last is None or not same or "index" not in piece:
            blocks.append(dict(piece))
            continue
        for name, value in piece.items():
            if name in _CONTINUED and isinstance(value, str):
                last[name] = (last.get(name) or "") + value
            elif value is not None:
                last[name] = value
