"""Changes of memory that a user asks for in a turn: planned while the prompt loads, committed when it ends."""

from dataclasses import dataclass
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

ForeignOrigin = Literal["document", "import", "tool", "operator"]
"""Where words come from that are neither the user's nor the assistant's: a document, a note of an application or a
text that the user pasted; an import; the result of a tool; instructions of the client's application. Least
trusted first, as the database sorts them."""
MemoryChangeKind = Literal["forget", "do_not_remember", "correct", "remember", "standing"]
"""Kinds of changes: remove something from memory; keep a turn out of memory; replace something; keep a statement;
keep a wish about answers."""
PlainFormKind = Literal[
    "forget",
    "forget_everything",
    "forget_last",
    "leave_out",
    "off_record",
    "remember",
    "remember_last",
    "standing",
]
"""Kinds of plain forms: forget what is named, or everything about it, or what was said last; do not remember the
message, or show it to this conversation alone; remember what is named, or what was said last; a wish about all
answers."""


@dataclass(frozen=True)
class PlainForm:
    """An order to memory that a message gives word for word."""

    kind: PlainFormKind
    what: str
    """The user's words for what is meant; empty = what was said last."""
    rest: str
    """The message without the sentence that is the order."""
    language: Literal["zh", "en"]


class Candidate(TypedDict):
    """A memory that may be meant."""

    id: str
    text: str


class MemoryChange(TypedDict):
    """A change of memory, as the model and the caller see it."""

    kind: MemoryChangeKind
    summary: str
    """One sentence in the message's language."""
    operation_id: str | None
    """Id in the log of operations, for undoing it; None = nothing matched, and nothing was changed."""
    items: list[str]
    """What was removed, kept or corrected, in brief."""
    candidates: NotRequired[list[Candidate]]
    """If nothing was changed because several memories may be meant: those."""
    made_by: NotRequired[Literal["filing"]]
    """Whether the filing of what was said before has made it, since the user's last turn; absent = this turn."""
    also_said: NotRequired[list[str]]
    """What else the removed messages said, which went with them because it cannot stand alone."""


class PlannedMessage(TypedDict):
    """What memory will keep of a message."""

    message_id: str
    memory_text: str | None
    """The text that replaces its content; None = nothing."""
    off_record: NotRequired[bool]
    """Whether its conversation goes on showing it."""


@dataclass(frozen=True)
class ItemChange:
    """A change of one item of a field of core memory.

    `add` needs `value`; `replace` needs `value`, and `old` unless the field holds a single value; `remove` needs
    `old` unless the field holds a single value.
    """

    action: Literal["add", "replace", "remove"]
    section: str
    field: str
    value: Any | None = None
    old: str | None = None


class PlannedChange(TypedDict):
    """Everything that one command changes."""

    change: MemoryChange
    target: str
    """What the user named, for the log."""
    messages: list[PlannedMessage]
    episodes: list[str]
    """Ids of the written memories to retract."""
    items: list[ItemChange]
    written: list[str]
    """Memories to write because core memory has no room for them."""
    own: Literal["keep", "leave out", "off the record"]
    """Whether the turn is remembered as usual; or not; or not, but still shown in its conversation."""
    own_text: str | None
    """What memory keeps of the message if the turn is left out."""
    removed: str
    """Words that were removed: sentences of answers that share an informative one are left out, too."""
    reaches_shared: bool
    """Whether, in a space, the items are also removed from what all spaces share."""
