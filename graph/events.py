"""Where a served turn's events go: straight to its log, when a node writes them.

With LangGraph's own way, the `custom` stream, every step runs in a task of its own beside one that waits for
events, and each event wakes the loop: a twentieth of a served turn's CPU. Studio, which has no log, uses that way.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

EVENTS: ContextVar[Callable[[dict[str, Any]], None] | None] = ContextVar("turn_events", default=None)
"""Takes the events of the turn that runs; None = they go into LangGraph's stream."""
