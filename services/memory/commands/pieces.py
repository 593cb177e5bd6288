"""Pieces of what memory holds, small enough to be forgotten or replaced by themselves, and what each one holds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from services.memory.commands.substitution import values_by_kind
from services.memory.commands.text import folded
from services.text.concepts import concepts
from services.text.mentions import clauses_of, is_of_kin, pieces_of, statements_of
from services.text.tokenizer import simplified, terms
from services.text.word_vectors import word_vectors
from services.text.work_requests import asks_about_something, asks_for_work

_MOST_CHARACTERS = 2_000
"""Characters of a message that are looked at: people say at its beginning what it is about."""
_REMEMBERED = 4_096


@dataclass(frozen=True)
class Stored:
    """A message or a written memory."""

    kind: Literal["message", "episode"]
    id: UUID
    conversation_id: UUID | None
    turn_id: UUID | None
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime


@dataclass(frozen=True)
class Content:
    """What a text holds, as far as it can be compared with another."""

    text: str
    """Simplified."""
    terms: frozenset[str]
    rows: NDArray[np.intp]
    """Of the words whose vectors are known."""
    concepts: Mapping[str, float]
    values: Mapping[str, tuple[str, ...]]
    """By their kind: a weekday, a number, a name."""
    of_kin: bool
    asks: bool
    """Whether it is a question or an order, which states nothing."""


@lru_cache(maxsize=_REMEMBERED)
def content_of(text: str) -> Content:
    """What a piece of text holds."""
    own = terms(text)
    rows = word_vectors().rows(sorted(set(own)))
    sentence = folded(text).lower().strip()
    return Content(
        simplified(text),
        frozenset(own),
        rows[rows >= 0],
        concepts(text),
        values_by_kind(text),
        is_of_kin(text),
        sentence.endswith("?") or asks_for_work(sentence) or asks_about_something(sentence),
    )


@lru_cache(maxsize=_REMEMBERED)
def pieces(text: str) -> tuple[str, ...]:
    """A text cut into pieces that may go by themselves: clauses; joined they are the text, but for its far end."""
    return tuple(_cut(text[:_MOST_CHARACTERS]))


def _cut(text: str) -> Iterator[str]:
    for statement in statements_of(text):
        yield from pieces_of(statement) if statement.isascii() else clauses_of(statement)


def within(texts: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """The pieces of some texts in order, and of which text each is."""
    found = [(piece, place) for place, text in enumerate(texts) for piece in pieces(text)]
    return [piece for piece, _ in found], np.array([place for _, place in found], dtype=np.intp)
