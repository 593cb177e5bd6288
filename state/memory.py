"""What a turn does to memory at the user's word: planned while its prompt is read, committed when it ends."""

from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

MemoryChangeKind = Literal["forget", "do_not_remember", "correct", "remember", "standing"]
"""Remove what was told; keep a turn out of memory; replace what was told; keep a statement; keep a wish about
answers."""
CommandScope = Literal["stated", "here", "before", "present", "previous"]
"""What a command is about: what its target names; “this”, or what was said before, neither of them resolved yet;
this message; the exchange before it."""


@dataclass(frozen=True)
class Command:
    """What the user asks memory to do."""

    kind: MemoryChangeKind
    scope: CommandScope
    target: str = ""
    """What is to be forgotten, remembered or corrected, in the user's words; empty where the scope says it."""
    replacement: str = ""
    """What holds instead."""
    certainty: Literal["plain", "unclear"] = "plain"
    needs_match: bool = False
    """Whether it is a command only where memory holds its target: “forget the budget” may change the subject."""
    explicit: bool = True
    """Of a correction: whether it says that something was wrong; else a value replaces only one of its kind."""
    start: int = 0
    """Where it stands in its message."""
    end: int = 0


@dataclass(frozen=True)
class Recognised:
    """The commands of a message."""

    commands: tuple[Command, ...] = ()
    """In the order of the message, each kind and target once."""
    rest: str = ""
    """The message without the clauses that are commands."""

    @property
    def plain(self) -> tuple[Command, ...]:
        """Those that rules are sure of."""
        return tuple(command for command in self.commands if command.certainty == "plain")

    @property
    def unclear(self) -> bool:
        """Whether a command may be meant that rules are not sure of."""
        return len(self.plain) < len(self.commands)


class MemoryChange(TypedDict):
    """A change of memory, as the model and the caller are told of it."""

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
    """Of a turn that is left out, what memory keeps of its message all the same."""
    gives_away: str
    """Words of what was removed: statements of the answer that have them are left out, too."""
