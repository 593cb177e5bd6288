"""What memory holds of a user, read for one message: what was said and written, and the items of core memory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from services.memory.commands.piece_index import Held
from services.memory.commands.pieces import Stored, pieces
from services.memory.commands.targets import Sought, likelihood, observe
from services.memory.content import FIELD_LABELS
from services.memory.items import item_text
from services.text.tokenizer import informative_terms
from state.memory import PlannedItem

CoreContent = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class CoreSections:
    """The sections of core memory that a command may change."""

    own: CoreContent
    shared: CoreContent
    """In a space, those of all spaces."""

    @property
    def both(self) -> CoreContent:
        """Every item of both; a field that both have is one list."""
        if not self.shared:
            return self.own
        together: dict[str, dict[str, Any]] = {name: dict(content) for name, content in self.shared.items()}
        for name, content in self.own.items():
            fields = together.setdefault(name, {})
            for key, value in content.items():
                fields[key] = [*_as_items(fields[key]), *_as_items(value)] if key in fields else value
        return together


@dataclass(frozen=True)
class CoreItem:
    """One item of core memory."""

    section: str
    field: str
    text: str

    @property
    def labelled(self) -> str:
        """With the name of its field in both languages, by which it may be named."""
        return " ".join([*self.labels, self.text])

    @property
    def labels(self) -> list[str]:
        """The names of its field."""
        known = [labels[self.field] for labels in FIELD_LABELS.values() if self.field in labels]
        return [*known, self.field.replace("_", " ")]

    def removed(self) -> PlannedItem:
        """The change that removes it."""
        return PlannedItem(action="remove", section=self.section, field=self.field, value=None, old=self.text)

    def replaced(self, text: str) -> PlannedItem:
        """The change that replaces it."""
        return PlannedItem(action="replace", section=self.section, field=self.field, value=text, old=self.text)


def items_of(core: CoreContent) -> Iterable[CoreItem]:
    """Every item of some sections."""
    for section, content in core.items():
        for key, value in content.items():
            yield from (CoreItem(section, key, item_text(item)) for item in _as_items(value))


def _as_items(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True)
class Place:
    """A piece of something held."""

    of: Stored | CoreItem
    at: int
    """Number of the piece in its text."""
    text: str

    @property
    def said(self) -> str:
        """Its text without the marks and spaces around it."""
        return self.text.strip(" \n.,;!?。，；！？").casefold()

    def says_the_same(self, other: "Place") -> bool:
        """Whether one of two pieces is an item of core memory with no other words than the other one."""
        if isinstance(self.of, CoreItem) == isinstance(other.of, CoreItem):
            return False
        item, piece = (self.of, other) if isinstance(self.of, CoreItem) else (other.of, self)
        words = informative_terms(item.text) if isinstance(item, CoreItem) else frozenset()
        return bool(words) and words <= informative_terms(piece.text)


@dataclass(frozen=True)
class Holdings:
    """What may be meant by a message."""

    stored: Sequence[Stored]
    """The user's messages and written memories, the oldest first."""
    items: Sequence[CoreItem]
    just_before: Sequence[Stored] = ()
    """The user's last messages in the same conversation."""

    @cached_property
    def characters(self) -> int:
        """Characters of all of it."""
        return sum(len(each.content) for each in self.stored) + sum(len(item.text) for item in self.items)

    @cached_property
    def places(self) -> Sequence[Place]:
        """Every piece, the newest last; a written memory and an item are one each."""
        found = [Place(item, 0, item.labelled) for item in self.items]
        for each in self.stored:
            parts = pieces(each.content) if each.kind == "message" else (each.content,)
            found += [Place(each, at, part) for at, part in enumerate(parts)]
        return found

    def likely(self, sought: Sought) -> list[tuple[float, Place]]:
        """The pieces with the probability that each is meant, the likeliest first."""
        if not self.places:
            return []
        # What was said more than once is looked at once, as it was said last, and meant wherever it stands.
        newest: dict[str, Place] = {}
        for place in reversed(self.places):
            newest.setdefault(place.said, place)
        own = list(reversed(newest.values()))
        recent = {each.id for each in self.just_before}
        number: dict[int, int] = {}
        held = Held(
            [place.text for place in own],
            np.array([number.setdefault(id(place.of), len(number)) for place in own], dtype=np.intp),
            np.array([isinstance(place.of, Stored) and place.of.id in recent for place in own]),
        )
        shares = likelihood(sought.kind, observe(sought, held))
        of_text = {place.said: float(share) for place, share in zip(own, shares, strict=True)}
        found = [(of_text[place.said], place) for place in self.places]
        return sorted(found, key=lambda each: -each[0])
