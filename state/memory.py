"""Changes of memory that a user asks for in a turn: planned while the prompt loads, committed when it ends."""

from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

MemoryChangeKind = Literal["forget", "do_not_remember", "correct", "remember", "standing"]
"""Remove what was told; keep a turn out of memory; replace what was told; keep a statement; keep a wish about
answers."""
CommandScope = Literal["stated", "present", "previous"]
"""Subject of a command: what it names, this message, or the exchange before it."""
Certainty = Literal["plain", "likely", "unclear"]
"""Certainty of a command. `plain`: obeyed. `likely`: obeyed where memory holds what it names, else left to a small
model. `unclear`: left to a small model."""


@dataclass(frozen=True)
class Command:
    """What the user asks memory to do."""

    kind: MemoryChangeKind
    scope: CommandScope
    target: str = ""
    """What is to be forgotten, remembered or corrected, in the user's words; empty where the scope says it."""
    replacement: str = ""
    """What holds instead."""
    named: str = ""
    """The target without words that only point to it: “that stuff about …”."""
    about: str = ""
    """What else the message speaks of, without the words of the command itself."""
    kept: str = ""
    """What is to stay, in the user's words: “the rest may remain”."""
    tells: bool = False
    """Whether the message tells something of the user beside the command."""
    just_now: bool = False
    """Whether it points to what was said last."""
    reach: Literal["any", "told", "last"] = "any"
    """Where a correction finds what it corrects: by whatever it says, only where its target was quoted verbatim,
    or only a value of the same kind in what was said last."""
    certainty: Certainty = "plain"
    needs_match: bool = False
    """Whether nothing is done, and nothing said of it, where memory does not hold its target."""


@dataclass(frozen=True)
class Recognised:
    """The commands of a message."""

    commands: tuple[Command, ...] = ()
    """In the order of the message, each kind and target once."""
    rest: str = ""
    """The message without the clauses that are commands."""

    @property
    def plain(self) -> tuple[Command, ...]:
        """Those that are obeyed, some of them only where memory holds what they name."""
        return tuple(command for command in self.commands if command.certainty != "unclear")

    @property
    def unclear(self) -> bool:
        """Whether a command may be meant that is not obeyed; a likely correction of nothing is a statement."""
        return any(
            command.certainty == "unclear" or (command.certainty == "likely" and command.kind == "forget")
            for command in self.commands
        )


class MemoryChange(TypedDict):
    """A change of memory, as the model and the caller see it."""

    kind: MemoryChangeKind
    summary: str
    """One sentence in the message's language."""
    operation_id: str | None
    """In the log of operations, by which it can be undone; None = nothing matched, and nothing was changed."""
    items: list[str]
    """What was removed, kept or corrected, in brief."""


class PlannedMessage(TypedDict):
    """What memory keeps of a message from now on."""

    message_id: str
    memory_text: str | None
    """In place of its content; None = nothing."""


class PlannedItem(TypedDict):
    """A change of one item of core memory."""

    action: Literal["add", "replace", "remove"]
    section: str
    field: str
    value: Any
    old: str | None


class PlannedChange(TypedDict):
    """Everything that one command changes."""

    change: MemoryChange
    target: str
    """What the user named, for the log."""
    messages: list[PlannedMessage]
    episodes: list[str]
    """Ids of written memories that are retracted."""
    items: list[PlannedItem]
    written: list[str]
    """Memories to write that found no room in core memory."""
    own: Literal["keep", "leave out", "off the record"]
    """What becomes of the turn: it is remembered as usual; or not; or not, but shown in its conversation."""
    own_text: str | None
    """What memory keeps of the message of a turn that is left out."""
    gives_away: str
    """Words of what was removed: statements of the answer that have them are left out, too."""
    reaches_shared: bool
    """Whether, in a space, the items go from what all spaces share as well."""
