"""Limits the depth of JSON from outside before a parser builds anything from it.

A parser spends memory or stack on each level, some with the square of the depth, and code that walks through the
value recurses at each level. Nothing that anybody writes for this service needs more than a few levels.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

MOST_LEVELS = 64
_BEGIN, _END = frozenset({*"[{", *b"[{"}), frozenset({*"]}", *b"]}"})
_BESIDES = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[^"[{\]}]+', re.DOTALL)
"""All but the marks at which levels begin and end."""
_BESIDES_IN_BYTES = re.compile(_BESIDES.pattern.encode(), re.DOTALL)
_OPENING_EVENTS, _CLOSING_EVENTS = frozenset({"start_map", "start_array"}), frozenset({"end_map", "end_array"})


class TooDeep(ValueError):
    """A value with too many levels."""

    def __init__(self) -> None:
        super().__init__(f"has more than {MOST_LEVELS} levels")


def check_levels(text: str | bytes) -> None:
    """Count the levels of JSON. Raises `TooDeep` if there are too many."""
    openings = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    depth = 0
    if openings <= MOST_LEVELS:  # nearly all have fewer
        return
    for mark in _BESIDES.sub("", text) if isinstance(text, str) else _BESIDES_IN_BYTES.sub(b"", text):
        if mark in _BEGIN:
            depth += 1
            if depth > MOST_LEVELS:
                raise TooDeep
        elif mark in _END:
            depth -= 1


def checked_events(events: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Pass on the events of a parser that reads in pieces. Raises `TooDeep` if a value has too many levels."""
    depth = 0
    for event in events:
        if event[0] in _OPENING_EVENTS:
            depth += 1
            if depth > MOST_LEVELS:
                raise TooDeep
        elif event[0] in _CLOSING_EVENTS:
            depth -= 1
        yield event


def shallow_json(text: str | bytes) -> Any:
    """Return the value of JSON from outside. Raises `ValueError` if it is no JSON, or has too many levels
    (`TooDeep`)."""
    check_levels(text)
    return json.loads(text)
