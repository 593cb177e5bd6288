"""A section of a prompt: its content, what may be dropped, and what is reported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage


@dataclass(frozen=True)
class Item:
    """A piece of a section that can be dropped separately."""

    text: str = ""
    message: BaseMessage | None = None
    """A message of the conversation, in place of a text."""
    tokens: int = 0
    """Estimated tokens of the message; texts are counted when the prompt is assembled."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Name of the item in the report: its id, or its origin."""


@dataclass(frozen=True)
class Section:
    """One section of a prompt. A section without text and items is not shown."""

    name: str
    text: str = ""
    """The whole text, or the heading of the items; dropped together with the last item."""
    items: Sequence[Item] = ()
    """Items, the most important first; messages are in the order of the conversation."""
    closing: str = ""
    """Text after the last item."""
    separator: str = "\n"
    """Separator between the heading, the items and the closing."""
    stable: bool = False
    """Whether it belongs to the beginning that prompts share, not to the tail made for this message."""
    priority: int | None = None
    """Over the budget, the section with the lowest number loses items first; None = never."""
    keeps: int = 0
    """Minimum items that are never dropped."""
    most_tokens: int | None = None
    dropped: Sequence[Mapping[str, Any]] = ()
    """Items left out when the section was made, each with `section`, `items` and `reason`."""
    message_ids: frozenset[str] = frozenset()
    """Ids of the stored messages that it shows."""
    data: Any = None
    """The data it was made from, for other nodes and for the report."""
