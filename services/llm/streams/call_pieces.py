"""Calls of tools, put together from the pieces in which endpoints send them."""

import json
import re
import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import InvalidToolCall, ToolCall
from langchain_core.messages.tool import invalid_tool_call, tool_call

from services.json_levels import shallow_json
from services.llm.json_text import json_values
from services.llm.streams.text import BegunCall, CallPiece

_ID_CHARACTERS = string.ascii_letters + string.digits
_ID_LENGTH = 9
"""Length of ids that are made up: some endpoints take no others."""


_BEGIN = re.compile(r"\A\s*\{\s*\"")
_MARKS = re.compile(r"\\.|[\"{}]", re.DOTALL)


class StreamedObject:
    """The JSON object at the beginning of a text that arrives in pieces, passed on as it arrives. An empty object
    is not passed on, because some proxies begin a call with one before the real object."""

    def __init__(self) -> None:
        self._at = self._depth = 0
        self._in_string = self._ended = False

    def feed(self, whole: str) -> str:
        """Return the new part of the object, given all of the text so far."""
        if self._ended or not (self._at or _BEGIN.match(whole)):
            return ""
        end = len(whole)
        end -= (end - len(whole.rstrip("\\"))) % 2  # half of an escape
        for found in _MARKS.finditer(whole, self._at, end):
            if found[0] == '"':
                self._in_string = not self._in_string
            elif not self._in_string and found[0] in "{}":
                self._depth += 1 if found[0] == "{" else -1
                if self._depth == 0:
                    self._ended, end = True, found.end()
                    break
        begin, self._at = self._at, end
        return whole[begin:end]


@dataclass(eq=False)
class _Call:
    index: object
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    streamed: StreamedObject = field(default_factory=StreamedObject)

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
        """Oddities of the answer, described in words."""

    def __bool__(self) -> bool:
        """Whether there are any calls."""
        return bool(self._calls)

    def add(self, piece: Mapping[str, Any]) -> Sequence[CallPiece]:
        """Take the next piece of a call; return the part of its arguments that may be passed on."""
        function = piece.get("function")
        about: Mapping[str, Any] = function if isinstance(function, Mapping) else piece
        call_id, name, arguments = _text(piece.get("id")), _text(about.get("name")), about.get("arguments")
        if not (call_id or name or arguments or piece.get("extra_content")):
            return []
        call = self._call_of(piece.get("index"), call_id, name)
        call.call_id = call.call_id or call_id
        call.name = _continued(call.name, name, begun=bool(call.arguments))
        self._add_arguments(call, arguments)
        if isinstance(extra := piece.get("extra_content"), Mapping):  # Gemini's signature of its thoughts
            call.more["extra_content"] = dict(extra)
        if not call.name or not (news := call.streamed.feed(call.arguments)):
            return []
        before = self._calls[: self._calls.index(call)]
        return [CallPiece.of(news, BegunCall(call.name, tuple(each.name for each in before)))]

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
