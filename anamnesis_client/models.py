"""Answers of the service. Fields that a later version adds are only in `raw` of an answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self


@dataclass(frozen=True)
class Event:
    """One event of a turn's stream."""

    id: int
    """Number of the event, from 1, without gaps."""
    status: str
    """Kind of the event, such as `turn`, `token`, `tool_call` or `done`."""
    content: Any

    @property
    def text(self) -> str:
        """Return its part of the answer; empty unless it is a `token`."""
        return self.content if self.status == "token" else ""


@dataclass(frozen=True)
class MemoryChange:
    """A change of memory."""

    kind: str
    summary: str
    operation_id: str | None
    """Id with which it can be undone; None = nothing was changed."""
    items: list[str]
    also_said: list[str] = field(default_factory=list)
    """Sentences that say the named thing and something else, for `keep` or `all` in a second call."""
    made_by: str = ""
    """`filing` if the filing of earlier messages made it; empty = this turn did."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Read what the service sent."""
        also, by = found.get("also_said") or [], found.get("made_by", "")
        return cls(found["kind"], found["summary"], found["operation_id"], found["items"], also, by)


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    text: str
    turn_id: str
    conversation_id: str
    message_id: str
    usage: Mapping[str, int]
    """Tokens."""
    degraded: list[str]
    """Features that the turn went without."""
    memory_changes: list[MemoryChange]
    raw: Mapping[str, Any]
    """Everything that the service sent."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Read the content of the event `done`."""
        return cls(
            text=found["answer"],
            turn_id=found["turn_id"],
            conversation_id=found["conversation_id"],
            message_id=found["message_id"],
            usage=found["usage"],
            degraded=found["degraded"],
            memory_changes=[MemoryChange.of(each) for each in found.get("memory_changes", [])],
            raw=found,
        )


@dataclass(frozen=True)
class FoundMemory:
    """An episode that a search found."""

    id: str
    text: str
    kind: str
    """`turn`, or the type of a written memory."""
    score: float
    """Score, which is comparable only within one search."""
    created_at: datetime

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Read what the service sent."""
        at = datetime.fromisoformat(found["created_at"])
        return cls(found["id"], found["content"], found["episode_type"], found["score"], at)


@dataclass(frozen=True)
class WrittenMemory:
    """A memory that was written down."""

    id: str
    text: str
    kind: str
    importance: float
    """0 to 1."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Read what the service sent."""
        return cls(found["id"], found["content"], found["episode_type"], found["importance"])


@dataclass(frozen=True)
class Section:
    """A section of core memory."""

    name: str
    content: Mapping[str, Any]
    version: int
    updated_at: datetime

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Read what the service sent."""
        at = datetime.fromisoformat(found["updated_at"])
        return cls(found["section"], found["content"], found["version"], at)


@dataclass(frozen=True)
class LineError:
    """A line that was refused."""

    line: int
    """From 1."""
    reason: str


@dataclass(frozen=True)
class ImportReport:
    """The outcome of an import, counted by lines."""

    imported: int
    skipped: int
    """Lines that were already stored."""
    refused: int
    errors: list[LineError] = field(default_factory=list)
    """The first refused lines."""

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Read what the service sent."""
        errors = [LineError(each["line"], each["reason"]) for each in found["errors"]]
        return cls(found["imported"], found["skipped"], found["refused"], errors)

    def followed_by(self, other: Self, *, before: int) -> Self:
        """Return the report of these lines and others; `before` lines come before the others."""
        errors = [*self.errors, *(LineError(before + each.line, each.reason) for each in other.errors)]
        return type(self)(
            self.imported + other.imported, self.skipped + other.skipped, self.refused + other.refused, errors
        )
