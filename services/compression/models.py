"""Input and output of compression: a user's episodes as read, and the result for a group of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from services.memory.episodes.episode import EpisodeType

LONGEST_TEXT = 1500
"""Maximum characters of an episode to merge, so that a model is shown all of it."""

Outcome = Literal["represented", "duplicate", "contradicted", "trivial"]
"""Outcome of a source: represented by the new text, or why not."""
Dropped = Literal["duplicate", "contradicted", "trivial"]


@dataclass(frozen=True)
class Member:
    """A living episode."""

    id: UUID
    episode_type: EpisodeType
    importance: float
    created_at: datetime
    source_count: int
    """Messages that it comes from."""
    written: bool
    """Whether it was written as a memory; a turn is what was said."""
    content_hash: str
    """Hash of the text: a merged text represents only this version."""
    text: str
    """What it says; of a turn, who said what."""
    said: str
    """The same without who said it."""
    space_id: UUID | None = None
    """The space that it was said in; only episodes of the same are merged."""


@dataclass(frozen=True)
class MergedText:
    """One text in the place of several episodes."""

    text: str
    represented: Sequence[Member]
    """The text says what they say."""
    dropped: Sequence[tuple[Member, Dropped]] = ()
    """Dropped in favour of the text, which does not say what they say."""

    @property
    def outcomes(self) -> list[tuple[Member, Outcome]]:
        """Return every source with its outcome."""
        kept: list[tuple[Member, Outcome]] = [(member, "represented") for member in self.represented]
        return [*kept, *self.dropped]


@dataclass
class Report:
    """What a run did, or with a dry run would do."""

    episodes_before: int = 0
    episodes_after: int = 0
    clusters: int = 0
    """Groups of similar episodes that were examined."""
    left_for_later: int = 0
    """Groups for which there was no time; the next run starts over."""
    consolidated: int = 0
    superseded: int = 0
    dropped: list[dict[str, str]] = field(default_factory=list)
    """Superseded episodes that no new text represents: `episode_id` and `reason`."""
    failures: list[dict[str, str | int]] = field(default_factory=list)
    """Groups left unchanged: `episodes` and `reason`."""
    changed_meanwhile: int = 0
    """Groups left unchanged because one of their episodes changed during the run."""
    by: Literal["model", "rules"] = "model"
    tokens: int = 0
    """Tokens of prompts and answers, estimated."""
    seconds: float = 0.0
    problem: str | None = None
    """Why it failed as a whole."""
