"""The nouns of memory: a memory as users and models name it, and who asks for a change."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self
from uuid import UUID, uuid4

from services.memory.core.blocks import Owner
from services.memory.operations import Actor, Trigger
from services.text.language import Language
from state.turn import OpenTurn

MemoryKind = Literal["value", "written", "said"]
"""A value of core memory, a written memory, or a statement in a message."""


@dataclass(frozen=True)
class Memory:
    """Something that is remembered, as a caller or a model can name it."""

    kind: MemoryKind
    id: str
    """Id: for a value `v` and twelve hexadecimal digits, for a written memory or a message its UUID."""
    text: str
    at: datetime | None = None
    """When the text was said or written; None if it was not read."""
    section: str = ""
    """Section of core memory that holds a value; empty for other kinds."""
    field: str = ""
    pinned: bool = False
    message_id: UUID | None = None
    """Message that contains it, or from which it was filed."""
    role: Literal["user", "assistant"] = "user"
    """Who said it."""
    within: str = ""
    """The whole text of which `text` is a clause; empty if `text` is the whole."""
    subject: str = ""
    """The earlier clause that names the subject of this one, if this one has none or only a pronoun."""

    @property
    def is_whole(self) -> bool:
        """Return whether `text` is everything that the id names, apart from punctuation at its end."""
        return self.text in {self.within.rstrip(" .!。！"), self.within} or not self.within


@dataclass(frozen=True)
class ChangeRequest:
    """A request to change memory: whose memory, and in which turn."""

    owner: Owner
    conversation_id: UUID
    message_id: UUID
    trigger: Trigger
    language: Language | None = None
    """Language in which changes are reported; None = that of their texts."""

    @classmethod
    def of_turn(cls, turn: OpenTurn, actor: Actor, language: Language | None) -> Self:
        """Return the request of a turn that changes memory."""
        trigger = Trigger.of_turn(turn, actor)
        return cls(Owner.of_turn(turn), turn.conversation_id, turn.user_message_id, trigger, language)

    @classmethod
    def outside_of_turns(cls, owner: Owner, trigger: Trigger) -> Self:
        """Return a request that comes from no turn; the ids of its turn and message belong to none."""
        return cls(owner, uuid4(), uuid4(), trigger)
