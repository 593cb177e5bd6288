"""Calls of the client's tools and their results, as its messages show them."""

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from api.openai.client_message import ClientMessage, content_of
from services.conversations.values import images_of_result
from services.errors import InvalidInput
from services.json_levels import shallow_json
from state.client_tools import BETWEEN_PARTS, ClientCall, ClientResult, ClientRound, call_of

_UNSHOWN = "\n[its images are not shown]"
_UNFIT = re.compile(r'[<>"\s]+')
_LONGEST_NAME = 300
"""Maximum number of characters by which a call names its result."""


def rounds_of(messages: Sequence[ClientMessage], where: str, *, alone: bool = False) -> list[ClientRound]:
    """Return the calls of the client's tools that follow a message, each with its result; empty if there are none.
    Results that stand `alone` belong to calls that are stored. Raises `InvalidInput` if a call has no result, a
    result has no call, or other messages follow."""
    rounds: list[ClientRound] = []
    for message in messages:
        if message.role == "assistant":
            if not rounds or rounds[-1]["results"]:
                rounds.append(ClientRound(text="", calls=[], results=[]))
            text, _ = content_of(message.content, where)
            rounds[-1]["text"] = BETWEEN_PARTS.join(filter(str.strip, (rounds[-1]["text"], text)))
            rounds[-1]["calls"] += [_call(each, where) for each in message.tool_calls or ()]
        elif message.role == "tool":
            if not rounds:
                rounds.append(ClientRound(text="", calls=[], results=[]))
            rounds[-1]["results"].append(_result(message, where))
        elif message.role == "function":
            raise InvalidInput(where, "messages of the role function are not supported; send tools")
    if rounds and not (rounds[-1]["calls"] or rounds[-1]["results"]):
        return []  # the last message is an answer, not a round of tools
    for each in rounds:
        _check_round(each, where, alone=alone)
    return rounds


def _check_round(each: ClientRound, where: str, *, alone: bool) -> None:
    results = {result["id"] for result in each["results"]}
    calls = {call["id"] for call in each["calls"]}
    if missing := calls - results:
        raise InvalidInput(where, f"the call {min(missing)} has no result; send one for each call of a message")
    if not (alone and not calls) and (unasked := results - calls):
        raise InvalidInput(where, f"the result of {min(unasked)} answers no call of the message before it")


def _call(given: dict[str, Any], where: str) -> ClientCall:
    function = given.get("function")
    function = function if isinstance(function, dict) else {}
    name = function.get("name")
    if not isinstance(name, str) or not isinstance(given.get("id"), str):
        raise InvalidInput(where, "a call of a tool has an id, and a function with a name and arguments")
    try:
        arguments = shallow_json(str(function.get("arguments") or "{}"))
    except ValueError:
        arguments = None
    return ClientCall(id=given["id"], name=name, arguments=arguments if isinstance(arguments, dict) else {})


def _result(message: ClientMessage, where: str) -> ClientResult:
    if not message.tool_call_id:
        raise InvalidInput(where, "the result of a tool names its call in `tool_call_id`")
    text, images = content_of(message.content, where, tells_of_files=True)
    shown, words = images_of_result(images)
    result = ClientResult(id=message.tool_call_id, content="\n".join(filter(None, (text, words))))
    if message.failed:
        result["failed"] = True
    if shown:
        result["images"] = shown
    return result


def left_open(messages: Sequence[ClientMessage]) -> UUID | None:
    """Return the turn of the service whose calls, or results of calls, stand last before the newest message; None
    if there is none."""
    last = next((each for each in reversed(messages) if each.role not in {"system", "developer"}), None)
    calls = [each.get("id") for each in (last.tool_calls if last else None) or ()]
    named = call_of(str((last and last.tool_call_id) or (calls[-1] if calls else "")))
    return named[0] if named else None


def earlier_results(messages: Sequence[ClientMessage], where: str) -> list[str]:
    """Return the earlier results of the client's tools, each as a source named by its call."""
    calls: dict[str, str] = {}
    found: list[str] = []
    for place, message in enumerate(messages):
        for call in message.tool_calls or ():
            about = call.get("function")
            named = (str(about.get(key) or "") for key in ("name", "arguments")) if isinstance(about, dict) else ()
            calls[str(call.get("id"))] = " ".join(named)
        if message.role == "tool":
            text, images = content_of(message.content, f"{where}.{place}.content", tells_of_files=True)
            words = images_of_result(images)[1]
            told = f"\n{words}{_UNSHOWN}" if words else ""
            name = _UNFIT.sub(" ", calls.get(str(message.tool_call_id), "tool"))[:_LONGEST_NAME]
            found.append(f'<source name="earlier result of {name}">\n{text}{told}\n</source>')
    return found
