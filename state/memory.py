"""Changes of memory that a user asks for in a turn: planned while the prompt loads, committed when it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NotRequired, Self

from typing_extensions import TypedDict

ForeignOrigin = Literal["document", "import", "tool", "operator"]
"""Source of words that are neither the user's nor the assistant's: a document, a note of an application or a
pasted text; an import; the result of a tool; instructions of the client's application. The least trusted comes
first, as in the database."""
MemoryChangeKind = Literal[
    "forget", "do_not_remember", "correct", "remember", "standing", "promise", "called_off", "quiet_hours"
]
"""Kinds of changes: remove something from memory; keep a turn out of memory; replace something; keep a
statement; keep a wish about answers; promise to come back to something; call a promise off with its event; say
nothing unasked at these hours."""
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
    """An order to memory that a message gives in plain words."""

    kind: PlainFormKind
    what: str
    """The user's words for the memory that is meant; empty = what was said last."""
    rest: str
    """The message without the sentence with the order."""
    language: Literal["zh", "en"]
    order: str = ""
    """The sentence with the order."""


@dataclass(frozen=True)
class PlainPromise:
    """A reminder that a message asks for in plain words."""

    text: str
    when: str
    """The words for the time."""
    quote: str
    """The sentence that asks for the reminder."""
    at: datetime
    """The moment that the words mean."""


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
    """Texts that were removed, kept or corrected, in brief."""
    candidates: NotRequired[list[Candidate]]
    """If nothing was changed because several memories may be meant, these memories."""
    made_by: NotRequired[Literal["filing"]]
    """`filing` if the filing of earlier messages has made it since the user's last turn; absent = this turn
    made it."""
    also_said: NotRequired[list[str]]
    """Sentences that say the named thing and something else: because of them nothing was changed, or they went
    as a whole if the caller agreed."""


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


@dataclass(frozen=True)
class PlannedChange:
    """Everything that one order changes; nothing if its `change` has no `operation_id`."""

    change: MemoryChange
    target: str = ""
    """The thing that the user named, for the log."""
    messages: Mapping[str, str | None] = field(default_factory=dict)
    """Texts that memory will keep of messages, by the messages' ids; None = nothing of the message."""
    off_record: bool = False
    """Whether their conversation still shows these messages."""
    closes: Sequence[str] = ()
    """Ids of messages whose statement no longer holds; the messages stay as they are."""
    episodes: Sequence[str] = ()
    """Ids of written memories that are removed."""
    items: Sequence[ItemChange] = ()
    written: Sequence[str] = ()
    """Memories to write, because core memory has no room or they matter only for one subject."""
    own: Literal["keep", "cut", "off the record"] = "keep"
    """The part of the turn itself that memory keeps: all; all but what says the removed things; or nothing."""
    order: str = ""
    """The sentence with the order, which is also cut if the turn is."""
    removed: Sequence[str] = ()
    """Removed texts; clauses of the turn that say them are removed too."""
    reaches_shared: bool = False
    """Whether, in a space, the items are also removed from what all spaces share."""
    is_told: bool = True
    """Whether the caller is told of it; False = it belongs to another change."""

    @property
    def changes(self) -> bool:
        """Return whether there is anything to carry out."""
        return self.change["operation_id"] is not None

    @property
    def only_adds(self) -> bool:
        """Return whether it adds one value or writes memories, and changes nothing else."""
        removes = self.messages or self.episodes or self.closes or any(each.action != "add" for each in self.items)
        return self.changes and self.own == "keep" and not removes and len(self.items) <= 1

    def of_order(self, order: str) -> Self:
        """Return the plan of an order in its message: the turn keeps neither order nor removed text."""
        return replace(self, own="cut", order=order) if self.changes else self

    def with_written(self, text: str) -> Self:
        """Return the plan that writes a text as a memory instead of adding values."""
        return replace(self, items=[each for each in self.items if each.action != "add"], written=[text])

    @classmethod
    def nothing(cls, change: MemoryChange, target: str) -> Self:
        """Return a plan that changes nothing, because nothing is meant or it is unclear what."""
        return cls(MemoryChange(**{**change, "operation_id": None}), target)

    @classmethod
    def keeping(cls, change: MemoryChange, *, items: Sequence[ItemChange], written: Sequence[str]) -> Self:
        """Return a plan that keeps a statement."""
        return cls(change, change["items"][0], items=items, written=written)

    @classmethod
    def replacing(
        cls,
        change: MemoryChange,
        target: str,
        *,
        items: Sequence[ItemChange],
        episodes: Sequence[str],
        written: Sequence[str],
        closes: Sequence[str],
    ) -> Self:
        """Return a plan that closes statements and puts another in their place; no message changes."""
        return cls(change, target, items=items, episodes=episodes, written=written, closes=closes)

    @classmethod
    def forgetting(
        cls,
        change: MemoryChange,
        target: str = "",
        *,
        messages: Mapping[str, str | None],
        items: Sequence[ItemChange] = (),
        episodes: Sequence[str] = (),
        written: Sequence[str] = (),
        removed: Sequence[str] = (),
    ) -> Self:
        """Return a plan that removes statements together with the words that say them."""
        gone = {"messages": messages, "items": items, "episodes": episodes, "written": written}
        return cls(change, target, **gone, removed=removed, reaches_shared=True)  # type: ignore[arg-type]

    @classmethod
    def leaving_out(
        cls,
        change: MemoryChange,
        *,
        messages: Mapping[str, str | None] | None = None,
        items: Sequence[ItemChange] = (),
        episodes: Sequence[str] = (),
        is_told: bool = True,
    ) -> Self:
        """Return a plan that keeps messages out of memory; None = the turn itself."""
        own: Literal["keep", "off the record"] = "off the record" if messages is None else "keep"
        gone = {"messages": messages or {}, "items": items, "episodes": episodes}
        return cls(change, off_record=True, own=own, is_told=is_told, **gone)  # type: ignore[arg-type]
