"""Changes of memory that a user asks for in a turn: planned while the prompt loads, committed when it ends."""

from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

ForeignOrigin = Literal["document", "import", "tool", "operator"]
"""Where words come from that are neither the user's nor the assistant's: a document, a note of an application or a
text that the user pasted; an import; the result of a tool; instructions of the client's application. Least
trusted first, as the database sorts them."""
MemoryChangeKind = Literal["forget", "do_not_remember", "correct", "remember", "standing"]
"""Kinds of commands: remove something from memory; keep a turn out of memory; correct something; keep a statement;
keep a wish about answers."""
CommandScope = Literal["stated", "present", "previous"]
"""Scope of a command: what it names, this message, or the exchange before it."""
Certainty = Literal["plain", "likely", "unclear"]
"""Certainty of a command. `plain`: obeyed. `likely`: obeyed if memory holds what it names, otherwise left to a
small model. `unclear`: left to a small model."""


_MAY_ASK = 0.1
"""Nearly all messages that ask for a change are above it, and a sixth of all others."""


@dataclass(frozen=True)
class Command:
    """What the user asks memory to do."""

    kind: MemoryChangeKind
    scope: CommandScope
    target: str = ""
    """What to forget, remember or correct, in the user's words; empty if the scope says it."""
    replacement: str = ""
    """The new value of a correction."""
    named: str = ""
    """The target without words that only point to it: “that stuff about …”."""
    about: str = ""
    """The rest of the message, without the words of the command."""
    kept: str = ""
    """What to keep, in the user's words: “the rest may remain”."""
    tells: bool = False
    """Whether the message also says something about the user."""
    just_now: bool = False
    """Whether it refers to what was said last."""
    reach: Literal["any", "told", "last", "news", "statement"] = "any"
    """Where a correction looks for what it corrects: by everything it says, only by a verbatim quotation of its
    target, only for a value of the same kind in what was said last, or, for news without a word of correction and
    for statements without a word of change, only for what it replaces beyond doubt."""
    probability: float = 1.0
    """Probability that the message is a command of this kind, from the recogniser."""
    certainty: Certainty = "plain"
    needs_match: bool = False
    """Whether to ignore the command silently if memory does not hold its target."""

    @property
    def is_news(self) -> bool:
        """Whether nothing in the message says that it corrects something."""
        return self.reach in {"news", "statement"}


@dataclass(frozen=True)
class Recognised:
    """The commands of a message."""

    commands: tuple[Command, ...] = ()
    """In the order of the message, without duplicates of kind and target."""
    rest: str = ""
    """The message without the clauses that are commands."""
    probability: float = 0.0
    """Probability that the message asks for a change of memory, whatever kind is the likeliest."""

    @property
    def may_ask(self) -> bool:
        """Whether a small model should look whether the message asks for a change of memory."""
        return self.probability >= _MAY_ASK

    @property
    def plain(self) -> tuple[Command, ...]:
        """The commands that are obeyed, some of them only if memory holds what they name."""
        return tuple(command for command in self.commands if command.certainty != "unclear")

    @property
    def unclear(self) -> bool:
        """Whether it may contain a command that is not obeyed; a likely correction of nothing is a statement."""
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
    """Id in the log of operations, for undoing it; None = nothing matched, and nothing was changed."""
    items: list[str]
    """What was removed, kept or corrected, in brief."""


class PlannedMessage(TypedDict):
    """What memory will keep of a message."""

    message_id: str
    memory_text: str | None
    """The text that replaces its content; None = nothing."""


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
    """Ids of the written memories to retract."""
    items: list[PlannedItem]
    written: list[str]
    """Memories to write because core memory has no room for them."""
    own: Literal["keep", "leave out", "off the record"]
    """Whether the turn is remembered as usual; or not; or not, but still shown in its conversation."""
    own_text: str | None
    """What memory keeps of the message if the turn is left out."""
    gives_away: str
    """Words of what was removed: statements of the answer that contain them are left out, too."""
    reaches_shared: bool
    """Whether, in a space, the items are also removed from what all spaces share."""
