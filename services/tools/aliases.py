"""Other names of the tools of memory, which prompts written for other agents use, and the calls that they mean."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import ToolCall

from services.time_reference.local_days import time_zone
from services.time_reference.parse import parse

Arguments = dict[str, Any]
_LONGEST_RANGE = 200
"""Characters of a time that a model names."""


def _query(given: Arguments, _: str) -> Arguments:
    return {"query": given.get("query") or given.get("aspect") or ""}


def _time(given: Arguments, timezone: str) -> Arguments:
    named = str(given.get("time_range", ""))[:_LONGEST_RANGE]
    ranges = parse(named, datetime.now(time_zone(timezone) if timezone else UTC))
    if not ranges:
        return {"query": f"{named} {given.get('query', '')}".strip()}
    since, until = min(each.start for each in ranges), max(each.end for each in ranges)
    return {"query": given.get("query", ""), "since": since.isoformat(), "until": until.isoformat()}


ALIASES: Mapping[str, tuple[str, Callable[[Arguments, str], Arguments]]] = {
    "archival_memory_insert": ("remember", lambda given, _: {"text": given.get("content", "")}),
    "archival_memory_search": ("search_memory", _query),
    "get_user_profile": ("search_memory", _query),
    "search_chat_history": ("search_memory", _time),
}
"""For each alias, the tool that it means and the function that converts its arguments, given a time zone."""


def named(tool: str) -> list[str]:
    """Return all names of a tool."""
    return [tool, *(alias for alias, (meant, _) in ALIASES.items() if meant == tool)]


def meant(call: ToolCall, timezone: str) -> ToolCall:
    """Return the call of the service's own tool that a call by an alias means."""
    if call["name"] not in ALIASES:
        return call
    name, translated = ALIASES[call["name"]]
    return ToolCall(name=name, args=translated(dict(call["args"]), timezone), id=call["id"])
