"""A fact that a user plainly states about themselves or their people, as core memory keeps it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """Something that a user stated."""

    field: str
    """Field of core memory, or `decision`, which is an episode."""
    text: str
    """The words of the user, shortened and in the third person."""
    ended: bool = False
    """It no longer holds: what `field` says of `text` is to go."""


@dataclass(frozen=True)
class Frame:
    """How a kind of statement is worded, and what is filed of it.

    `words` begin the predicate. `shape` says what follows: a regular expression in which `V` is the value to keep;
    without one the value is everything up to where the clause goes on to something else.
    """

    words: str
    field: str
    text: str = "{}"
    denied: str | None = None
    """The text when the statement is negated; None = a negated statement files nothing."""
    past: str | None = None
    """The text when it is in the past; None = then nothing is filed."""
    shape: str = "V"
    ends: bool = False
    """When it is negated, or past, the fact has ended."""
