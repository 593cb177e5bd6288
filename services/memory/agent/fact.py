"""A fact that a user plainly states about themselves or their people, as core memory keeps it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """Something that a user stated."""

    field: str
    """Field of core memory, or `decision`, which is an episode."""
    text: str
    """The user's words, shortened and in the third person."""
    ended: bool = False
    """Whether the fact has ended: `text` is to be removed from `field`."""


@dataclass(frozen=True)
class Frame:
    """The wording of a kind of statement, and what is filed of it.

    `words` begin the predicate. `shape` matches what follows: a regular expression in which `V` is the value to
    keep; without one the value extends to where the clause changes the subject."""

    words: str
    field: str
    text: str = "{}"
    denied: str | None = None
    """The text when the statement is negated; None = a negated statement files nothing."""
    past: str | None = None
    """The text when it is in the past; None = a past statement files nothing."""
    over: str | None = None
    """The text, to be filed as formerly so, when something has stopped; None = as when it is negated."""
    shape: str = "V"
    ends: bool = False
    """Whether a negated or past statement means that the fact has ended."""
