"""Tools that a client brings and runs itself: what it offers, which calls the model made, and their results.

Within a turn their names begin with a mark, so that they are never taken for the service's own tools.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired
from uuid import UUID

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from typing_extensions import TypedDict

_MARK = "client:"
_CALL_ID = re.compile(r"_([0-9a-f]{32})([0-9a-f]{3})([0-9a-f]{2})\Z")

RESULTS = "results"
"""Entry in `degraded` of a turn that shows only a part of a result of the client's tools."""


class ClientTools(TypedDict):
    """The tools of one request."""

    tools: list[dict[str, Any]]
    """Tools in the form of Chat Completions, each with a name of its own."""
    choice: NotRequired[str | dict[str, Any]]
    """`required`, or the tool to call, in the form of Chat Completions; absent = the model chooses."""
    parallel: NotRequired[bool]
    """Whether several tools may be called at once; absent = the default of the model's API."""


class ClientCall(TypedDict):
    """One call of a client's tool."""

    id: str
    name: str
    arguments: dict[str, Any]


class ClientResult(TypedDict):
    """Result of a client's tool."""

    id: str
    """Id of the call."""
    content: str
    failed: NotRequired[bool]
    """Whether the client says that it failed; absent = no."""
    images: NotRequired[list[str]]
    """Addresses or data URLs; the content has each in words."""
    of: NotRequired[int]
    """Characters of the whole result if the content is only a part; absent = it is the whole."""


class ClientRound(TypedDict):
    """A part of an answer that ends in calls, as a client sends it along."""

    text: str
    """Said before the calls."""
    calls: list[ClientCall]
    results: list[ClientResult]


class KeptResult(TypedDict):
    """A result as a turn's record keeps it."""

    id: str
    name: str
    characters: int
    content: NotRequired[str]
    """Absent unless the settings keep it."""


class KeptRound(TypedDict):
    """A part of an answer that ended in calls, as a turn's record keeps it."""

    text: str
    calls: list[ClientCall]
    results: list[KeptResult]
    """Empty as long as the client has brought none."""
    own_tools: list[str]
    """Names of the service's own tools that ran in this part."""
    usage: Mapping[str, Any]


def marked(name: str) -> str:
    """Return the name of a client's tool as it is used within a turn."""
    return f"{_MARK}{name}"


def is_clients(call: ToolCall | ToolMessage) -> bool:
    """Return whether a call, or a result, is of a client's tool."""
    name = call.name if isinstance(call, ToolMessage) else call["name"]
    return (name or "").startswith(_MARK)


def unmarked(name: str) -> str:
    """Return the client's own name of its tool."""
    return name.removeprefix(_MARK)


def calls_of(message: AnyMessage) -> tuple[list[ToolCall], list[ToolCall]]:
    """Return the calls of a message: of the service's tools, and of the client's tools."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return [each for each in calls if not is_clients(each)], [each for each in calls if is_clients(each)]


def open_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return the calls of the client's tools in the model's last message that have no result."""
    done: set[str] = set()  # models may use an id again in a later message
    for each in reversed(messages):
        if not isinstance(each, ToolMessage):
            return [call for call in calls_of(each)[1] if call["id"] not in done]
        done.add(each.tool_call_id)
    return []


SETTLED = "settled"
"""Artifact of a result that the model need not be told."""


def is_answered(messages: Sequence[AnyMessage]) -> bool:
    """Whether the model's last message answers the user, and it need hear of no result of its calls."""
    for each in reversed(messages):
        if not isinstance(each, ToolMessage):
            return bool(each.text.strip())
        if each.artifact != SETTLED:
            return False
    return False


def messages_of(rounds: Sequence[ClientRound]) -> list[AnyMessage]:
    """Return the rounds that a client has sent along as messages of a turn."""
    messages: list[AnyMessage] = []
    for each in rounds:
        calls = [
            ToolCall(name=marked(call["name"]), args=call["arguments"], id=call["id"]) for call in each["calls"]
        ]
        messages.append(AIMessage(each["text"], tool_calls=calls))
        names = {call["id"]: call["name"] for call in each["calls"]}
        messages += [result_message(result, names[result["id"]]) for result in each["results"]]
    return messages


def result_message(result: ClientResult, name: str) -> ToolMessage:
    """Return a result as the model reads it; `name` is the client's. Models are sent no status, so the words of
    a tool that failed begin with it."""
    status = "error" if result.get("failed") else "success"
    said = f"Error: {result['content']}" if result.get("failed") else result["content"]
    content = content_with(said, result.get("images", ()))
    return ToolMessage(content, tool_call_id=result["id"], name=marked(name), status=status)


def content_with(text: str, images: Sequence[str]) -> Any:
    """Return the content of a message with what a tool has said and its images."""
    shown = [{"type": "image_url", "image_url": {"url": image}} for image in images]
    return [{"type": "text", "text": text}, *shown] if shown else text


BETWEEN_PARTS = "\n\n"
"""Separator between what one part of an answer says and what the next says."""


def said_in(rounds: Sequence[KeptRound]) -> str:
    """Return the text of these parts of an answer, up to where the next part begins."""
    return "".join(f"{each['text']}{BETWEEN_PARTS}" for each in rounds if each["text"].strip())


def last_words(answer: str, rounds: Sequence[KeptRound]) -> str:
    """Return the text of an answer after its last calls; all of the answer if that is empty. Clients that leave
    calls out of a history show only this text."""
    said = said_in(rounds)
    return (answer[len(said) :] if answer.startswith(said) else answer).strip() or answer


def call_id(turn_id: UUID, part: int, place: int) -> str:
    """Return the id by which a client knows a call: its turn, its part, from 0, and its place in the part."""
    return f"call_{turn_id.hex}{part:03x}{place:02x}"


def call_of(given: str) -> tuple[UUID, int, int] | None:
    """Return the turn, part and place in such an id; None = it is another kind of id."""
    if (found := _CALL_ID.search(given)) is None:
        return None
    turn_id, part, place = found.groups()
    return UUID(turn_id), int(part, 16), int(place, 16)
