"""A section of a prompt: what it says, what of it may be dropped, and what is reported of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage


@dataclass(frozen=True)
class Item:
    """A piece of a section that can be dropped without the rest of it."""

    text: str = ""
    message: BaseMessage | None = None
    """In place of a text: a message of the conversation."""
    tokens: int = 0
    """Tokens of the message, estimated; texts are counted where the prompt is assembled."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the report says of it: its id, or where it comes from."""


@dataclass(frozen=True)
class Section:
    """One section of a prompt. A section without text and items is not shown."""

    name: str
    text: str = ""
    """All of it, or the heading of its items; dropped together with the last of them."""
    items: Sequence[Item] = ()
    """The most important first, but for messages: these are in the order of the conversation."""
    closing: str = ""
    """What follows the last item."""
    separator: str = "\n"
    """Between the heading, the items and the closing."""
    stable: bool = False
    """Whether it belongs to the beginning that prompts share, and not to the tail made for this message."""
    priority: int | None = None
    """Over the budget, the section with the lowest number loses its items first; None = never."""
    keeps: int = 0
    """Items that are never dropped."""
    most_tokens: int | None = None
    """Tokens that this section may use by itself."""
    dropped: Sequence[Mapping[str, Any]] = ()
    """What was left out when it was made, each with `section`, `items` and `reason`."""
    message_ids: frozenset[str] = frozenset()
    """Ids of the stored messages that it shows."""
    data: Any = None
    """What it was made from, for other nodes and for the report."""


def section_named(sections: Sequence[Section], name: str) -> Section | None:
    """The section of that name, if there is one."""
    return next((section for section in sections if section.name == name), None)
