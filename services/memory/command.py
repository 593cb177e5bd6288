"""What the rules of a language read a memory command from, and what they make of it."""

from dataclasses import dataclass
from typing import Literal

from state.memory import CommandScope, MemoryChangeKind

Extent = Literal["clause", "sentence", "message"]
"""How far the text goes that a command takes."""


@dataclass(frozen=True)
class Clause:
    """A clause of a message; quotations in it are masked."""

    text: str
    start: int
    """In the message."""
    end: int
    before: str
    """What its sentence says before it."""
    after: str
    """What its sentence says after it."""
    sentence_start: int
    sentence_end: int
    introduces: bool
    """Whether a colon follows."""
    asks: bool
    """Whether its sentence is a question."""


@dataclass(frozen=True)
class Reading:
    """A clause that is a command."""

    kind: MemoryChangeKind
    scope: CommandScope = "here"
    target: tuple[int, int] | None = None
    """From where to where in the clause its target stands; None = it names none."""
    extent: Extent = "clause"
    """How far the command goes; with `sentence` or `message` its target goes on to that end."""
    certainty: Literal["plain", "unclear"] = "plain"
    needs_match: bool = False
