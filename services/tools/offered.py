"""The tools that a model is offered in one call: the service's own, and beside them the client's.

The model reads the client's tools by their own names. A tool of the service that has the name of one of them gets
another name for the model alone.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool

from services.errors import ModelFailed
from services.json_levels import shallow_json
from services.llm.request_form import Tool, tool_schema
from services.llm.streams.text import CallPiece
from services.tools.registry import ToolRegistry
from state.client_tools import ClientTools, call_id, is_clients, marked, unmarked

_OURS = "anamnesis_"


class OfferedTools:
    """Tools offered in one call of the model."""

    def __init__(self, own: ToolRegistry | None, theirs: ClientTools | None = None) -> None:
        """Take the service's tools and the client's. If the client forces a call, it means one of its own tools,
        so the service's are not offered."""
        self._theirs: Mapping[str, dict[str, Any]] = {
            each["function"]["name"]: each for each in (theirs["tools"] if theirs else ())
        }
        forced = theirs.get("choice") if theirs else None
        self._own: Sequence[BaseTool] = [] if own is None or forced else own.for_model
        self._described = "" if own is None or forced else own.described
        self._renamed = {each.name: f"{_OURS}{each.name}" for each in self._own if each.name in self._theirs}
        self.options: dict[str, Any] = {}
        """How the tools may be called, in the form of Chat Completions."""
        if forced:
            self.options["tool_choice"] = forced
        if theirs and "parallel" in theirs:
            self.options["parallel_tool_calls"] = theirs["parallel"]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._own or self._theirs)

    @property
    def for_model(self) -> list[Tool]:
        """All of them, the service's first, always in the same order."""
        return [*(self._as_offered(each) for each in self._own), *self._theirs.values()]

    @property
    def described(self) -> str:
        """The service's own as the model reads them, for counting tokens."""
        return self._described

    @cached_property
    def described_theirs(self) -> str:
        """The client's as the model reads them; empty if there are none."""
        return json.dumps(list(self._theirs.values()), ensure_ascii=False) if self._theirs else ""

    @property
    def told(self) -> frozenset[str]:
        """Return the names of the tools whose calls the client is told as they are written: its own."""
        return frozenset(self._theirs)

    def calls_of(self, turn_id: UUID, part: int) -> "ComingCalls":
        """Return the collector of the client's tool calls in a part of a turn, for the time while the model writes
        them."""
        return ComingCalls(turn_id, part, self.told)

    def _as_offered(self, tool: BaseTool) -> Tool:
        if tool.name not in self._renamed:
            return tool
        schema = tool_schema(tool)
        return {**schema, "function": {**schema["function"], "name": self._renamed[tool.name]}}

    def as_sent(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return messages with the names by which the model knows the tools."""
        return [self._with_names(each) if isinstance(each, AIMessage | ToolMessage) else each for each in messages]

    def _with_names(self, message: AIMessage | ToolMessage) -> BaseMessage:
        if isinstance(message, ToolMessage):
            name = self._name(message.name or "")
            return message if name == message.name else message.model_copy(update={"name": name})
        if not message.tool_calls:
            return message
        calls = [{**call, "name": self._name(call["name"])} for call in message.tool_calls]
        return message.model_copy(update={"tool_calls": calls, **_content(message, self._name)})

    def _name(self, name: str) -> str:
        return self._renamed.get(name) or unmarked(name)

    def as_called(self, reply: AIMessage) -> AIMessage:
        """Return the model's message with the names that its calls have in a turn."""
        if not self._theirs or not reply.tool_calls:
            return reply
        ours = {renamed: name for name, renamed in self._renamed.items()}

        def name_of(name: str) -> str:
            return marked(name) if name in self._theirs else ours.get(name, name)

        calls = [{**call, "name": name_of(call["name"])} for call in reply.tool_calls]
        return reply.model_copy(update={"tool_calls": calls, **_content(reply, name_of)})


class ComingCalls:
    """Calls of the client's tools while the model is writing them."""

    def __init__(self, turn_id: UUID, part: int, names: Collection[str]) -> None:
        self._turn_id, self._part, self._names = turn_id, part, names
        self._written: dict[int, tuple[str, str]] = {}
        """Name and arguments so far, by their places."""

    def event(self, piece: CallPiece) -> dict[str, Any]:
        """Take a piece, and return the content of its event."""
        name, place = piece.call.name, sum(each in self._names for each in piece.call.before)
        self._written[place] = (name, self._written.get(place, ("", ""))[1] + piece)
        call = call_id(self._turn_id, self._part, place)
        return {"place": place, "id": call, "name": name, "arguments": str(piece)}

    def check(self, calls: Sequence[ToolCall]) -> None:
        """Compare the calls that were passed on with those of the whole message. Raises `ModelFailed` if they
        differ, because the client would run a call that the model did not make."""
        made = [call for call in calls if is_clients(call)]
        for place, (name, arguments) in self._written.items():
            if (
                place >= len(made)
                or marked(name) != made[place]["name"]
                or not _is(arguments, made[place]["args"])
            ):
                raise ModelFailed("llm_bad_response", "a call of a tool that cannot be read", begun=True)


def _is(text: str, value: dict[str, Any]) -> bool:
    try:
        return bool(shallow_json(text) == value)
    except ValueError:
        return False


def _content(message: AIMessage, name_of: Callable[[str], str]) -> dict[str, Any]:
    """Return the content of a message of the Responses API, which repeats the calls, with other names."""
    if isinstance(message.content, str):
        return {}
    parts = [
        {**each, "name": name_of(each["name"])}
        if isinstance(each, dict) and each.get("type") == "function_call"
        else each
        for each in message.content
    ]
    return {"content": parts}
