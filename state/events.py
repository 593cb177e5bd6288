"""The events of a turn, in the order and form in which every protocol sends them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal[
    "turn",
    "route_decision",
    "filler",
    "tool_call",
    "approval",
    "tool_result",
    "token",
    "reasoning",
    "execution_log",
    "call",
    "calls",
    "done",
    "error",
]

TERMINAL: frozenset[Status] = frozenset({"done", "error"})
"""Exactly one of these ends every turn."""
CALL: Status = "call"
"""A piece of the arguments of a call of the client's tools, while the model writes them."""
CALLS: Status = "calls"
"""Ends a part of a turn: the model has called tools of the client, whose results begin the next part."""
SHOWS_NOTHING: frozenset[Status] = frozenset({"turn", "route_decision", "execution_log", "reasoning"})
"""Events of a turn that may come again: no text, and no tool that has run."""
PART = 1_000_000
"""Numbers of events that each part of a turn has."""


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """One event: its number in the turn (from 1), its kind, and its content."""

    sequence: int
    status: Status
    content: Any

    @property
    def is_last(self) -> bool:
        """Whether a stream ends with this event: that of the turn, or of a part of it."""
        return self.status == CALLS or self.status in TERMINAL

    @property
    def ends_turn(self) -> bool:
        """Whether nothing of the turn follows."""
        return self.status in TERMINAL


def streamed_text(events: Iterable[TurnEvent]) -> str:
    """Return the answer as far as these events of a turn, its first ones, have told it."""
    return "".join(event.content for event in events if event.status == "token")
