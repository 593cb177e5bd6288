"""Units of one user with one expert as arrays, with what is added, changed and removed.

The texts stay in PostgreSQL. A unit is stored here as the numbers of its terms, its embedding in bytes, and a few
numbers. A long unit has one row for each passage, in order; the place of the first row is the unit's place.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from services.memory.episodes.episode import PassageId
from services.memory.recall.arrays import GrowableArray, GrowableRows, Postings
from services.search.units import Mask, Overview, Places

Embedding = Sequence[float] | NDArray[np.float32]

BY_ASSISTANT, ASKS, STATES_NOTHING, WRITTEN, WAITING, LONG = (1 << bit for bit in range(6))
"""Bits of a unit: the assistant said it; it asks something; it only asks or orders; it was written as a memory; it
is not indexed yet; it is longer than a few sentences."""

_LARGEST = 127
_MOST_COUNTED = 65_535
_HALF = 64
_LOW = (1 << _HALF) - 1
_BYTES_OF_A_TERM = 130
"""Approximate bytes of a term in the vocabulary: the string, the number and the table entry."""
_LEAST_GONE, _SHARE_GONE = 64, 0.2
"""Number, and share, of removed units from which on the arrays are compacted."""
BLOCK = 128
"""Number of embeddings that are converted to floats at once. They stay in the CPU cache, and their product with up
to eight vectors stays below half a million multiplications, above which some linear algebra libraries switch to a
slower way on some processors."""


@dataclass(frozen=True, slots=True)
class UnitContent:
    """Data derived from the text of a passage: its terms, including the speaker's name, and the bits of the
    unit."""

    terms: Sequence[str]
    kinds: int


@dataclass(frozen=True, slots=True)
class KeptUnit:
    """A unit to add to a working set, or one passage of it.

    Attributes:
        passage: Its number, from 0; those of a unit follow each other.
        waiting: Whether it is not indexed yet.
        text_hash: Hash of what its content and its embedding depend on.
        content: None if the set already has the unit with this hash.
        vector: Its embedding, if known.
    """

    unit_id: UUID
    episode_id: UUID
    conversation_id: UUID | None
    episode_type: str
    said_at: datetime
    waiting: bool
    text_hash: int
    content: UnitContent | None = None
    vector: Embedding | None = None
    passage: int = 0


class UnitArrays:
    """Units of one user with one expert, as arrays. A unit keeps its row until it is removed."""

    def __init__(self, dimension: int) -> None:
        """Take the dimensions of embeddings."""
        self.conversations: dict[UUID | None, int] = {}
        self.participants: set[str] = set()
        """Names of other participants who said something."""
        self._types: dict[str, int] = {}
        self._vocabulary: dict[str, int] = {}
        """Terms in the order of their numbers."""
        self._units = GrowableArray(np.uint64, 2)
        self._episodes = GrowableArray(np.uint64, 2)
        self._terms = GrowableRows(np.int32)
        """The different terms of each unit."""
        self._counts = GrowableArray(np.uint16)
        """Number of times that each of these terms occurs in the unit."""
        self._held = GrowableArray(np.int32)
        """The number of living units that contain each term."""
        self._columns = GrowableArray(
            [
                ("said_at", np.float64),
                ("text_hash", np.int64),
                ("conversation", np.int32),
                ("length", np.int32),
                ("passage", np.uint16),
                ("kinds", np.uint8),
                ("type", np.uint8),
                ("living", np.bool_),
                ("embedded", np.bool_),
            ]
        )
        self._vectors = GrowableArray(np.int8, dimension)
        self._scales = GrowableArray(np.float32)
        self._postings = Postings()
        self._overview: Overview | None = None
        self.in_use = asyncio.Lock()
        """Held while the set changes, and while a thread searches it."""

    def __len__(self) -> int:
        """Count the passages."""
        return int(self._column("living").sum())

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        arrays = (
            self._units, self._episodes, self._terms, self._counts, self._held, self._columns, self._vectors,
            self._scales, self._postings,
        )  # fmt: skip
        return sum(each.nbytes for each in arrays) + _BYTES_OF_A_TERM * len(self._vocabulary)

    def replace(self, episode_ids: Iterable[UUID], units: Sequence[KeptUnit]) -> None:
        """Replace the units of some episodes; an episode without units is removed. A unit with unchanged text
        keeps its content and embedding."""
        wanted = {(unit.unit_id, unit.passage): unit for unit in units}
        for place in self._places_of_episodes(set(episode_ids)) if len(self._columns) else ():
            unit = wanted.get(passage := self.passage_id(place))
            if unit is not None and unit.content is None:
                self._note([place], [wanted.pop(passage)])
            else:
                self._column("living")[place] = False
                self._held.values[self._terms.row(place)] -= 1
        self._append([unit for unit in wanted.values() if unit.content is not None])
        self._overview = None
        gone = len(self._columns) - len(self)
        if gone > _LEAST_GONE and gone > _SHARE_GONE * len(self._columns):
            self._compact(self._living.nonzero()[0])

    def embed(self, vectors: Mapping[PassageId, Embedding]) -> None:
        """Store the embeddings of passages; those of unknown ones are ignored."""
        if places := self._places_of({unit_id for unit_id, _ in vectors}):
            known = [(place, vectors[each]) for place in places if (each := self.passage_id(place)) in vectors]
            self._embed([place for place, _ in known], [vector for _, vector in known])
            self._overview = None

    def order_by_time(self) -> None:
        """Sort the units by the time at which they were said, so that the newest of equal ones ranks best."""
        said_at = self._column("said_at")
        if (np.diff(said_at[self._living]) < 0).any():
            order = np.argsort(said_at, kind="stable")
            self._compact(order[self._living[order]])

    def known_passages(self, unit_ids: Collection[UUID]) -> dict[UUID, tuple[int, int]]:
        """Return the hash of the text and the number of passages of those units that are present."""
        found: dict[UUID, tuple[int, int]] = {}
        hashes = self._column("text_hash")
        for place in self._places_of(unit_ids) if unit_ids else ():
            unit_id = self.unit_id(place)
            found[unit_id] = int(hashes[place]), found.get(unit_id, (0, 0))[1] + 1
        return found

    def without_vector(self) -> list[PassageId]:
        """Return the indexed passages whose embedding is missing here."""
        places = (self._living & ~self._column("embedded") & ~self._are(WAITING)).nonzero()[0]
        return [self.passage_id(place) for place in places.tolist()]

    def unit_id(self, place: int) -> UUID:
        return _uuid(self._units.values[place])

    def passage_id(self, place: int) -> PassageId:
        return self.unit_id(place), int(self._column("passage")[place])

    def unit_ids(self, places: Places) -> list[str]:
        return _written(self._units.values[places])

    def episode_ids(self, places: Places) -> list[str]:
        return _written(self._episodes.values[places])

    def place_of(self, unit_id: UUID) -> int | None:
        """Return the place of a unit; None if it is not in the set."""
        return next(iter(self._places_of({unit_id})), None)

    @property
    def _living(self) -> Mask:
        return self._column("living")

    def _column(self, name: str) -> NDArray[Any]:
        column: NDArray[Any] = self._columns.values[name]
        return column

    def _are(self, kind: int) -> Mask:
        found: Mask = (self._column("kinds") & kind) != 0
        return found

    def is_embedded(self, unit_id: UUID) -> bool:
        """Return whether a unit of the set, or the first passage of it, has an embedding."""
        place = self.place_of(unit_id)
        return place is not None and bool(self._column("embedded")[place])

    def _places_of(self, unit_ids: Collection[UUID]) -> list[int]:
        """Return the places of all passages of some units, in their order."""
        ids = self._units.values
        low = np.array([unit_id.int & _LOW for unit_id in unit_ids], dtype=ids.dtype)
        same = ids[:, 1] == low[0] if len(low) == 1 else np.isin(ids[:, 1], low)
        near = np.flatnonzero(same & self._living).tolist()
        return [place for place in near if self.unit_id(place) in unit_ids]

    def _places_of_episodes(self, episode_ids: Collection[UUID]) -> list[int]:
        ids = self._episodes.values
        low = np.array([episode_id.int & _LOW for episode_id in episode_ids], dtype=ids.dtype)
        near = np.flatnonzero(np.isin(ids[:, 1], low) & self._living).tolist()
        return [place for place in near if _uuid(ids[place]) in episode_ids]

    def _append(self, units: Sequence[KeptUnit]) -> None:
        contents = [unit.content for unit in units if unit.content is not None]
        if not contents:
            return
        begin = len(self._columns)
        counted = [Counter(content.terms) for content in contents]
        known = self._vocabulary
        numbers = [known.setdefault(term, len(known)) for each in counted for term in each]
        self._terms.append(numbers, [len(each) for each in counted])
        counts = [count for each in counted for count in each.values()]
        self._counts.append(np.minimum(counts, _MOST_COUNTED))
        self._held.append(np.zeros(len(known) - len(self._held), dtype=self._held.dtype))
        np.add.at(self._held.values, np.array(numbers, dtype=np.intp), 1)
        self._units.append([_halves(unit.unit_id) for unit in units])
        self._episodes.append([_halves(unit.episode_id) for unit in units])
        self._columns.append(np.zeros(len(units), dtype=self._columns.dtype))
        self._vectors.append(np.zeros((len(units), self._vectors.width or 0), dtype=np.int8))
        self._scales.append(np.zeros(len(units), dtype=np.float32))
        self._columns.values[begin:]["kinds"] = [content.kinds for content in contents]
        self._columns.values[begin:]["length"] = [len(content.terms) for content in contents]
        self._note(slice(begin, None), units)

    def _note(self, places: slice | list[int], units: Sequence[KeptUnit]) -> None:
        """Update the fields of units that may change while their texts stay the same."""
        columns = self._columns.values
        conversations, types = self.conversations, self._types
        columns["said_at"][places] = [unit.said_at.timestamp() for unit in units]
        columns["passage"][places] = [unit.passage for unit in units]
        columns["text_hash"][places] = [unit.text_hash for unit in units]
        columns["conversation"][places] = [
            conversations.setdefault(unit.conversation_id, len(conversations)) for unit in units
        ]
        waiting = np.array([WAITING * unit.waiting for unit in units], dtype=np.uint8)
        columns["kinds"][places] = columns["kinds"][places] & ~np.uint8(WAITING) | waiting
        columns["type"][places] = [types.setdefault(unit.episode_type, len(types)) for unit in units]
        columns["living"][places] = True
        at = np.arange(len(columns))[places]
        embedded = [
            (place, unit.vector) for place, unit in zip(at.tolist(), units, strict=True) if unit.vector is not None
        ]
        for begin in range(0, len(embedded), BLOCK):
            part = embedded[begin : begin + BLOCK]
            self._embed([place for place, _ in part], [vector for _, vector in part])

    def _embed(self, places: list[int], vectors: Sequence[Embedding]) -> None:
        values = np.asarray(vectors, dtype=np.float32)
        largest = np.abs(values).max(axis=1)
        told = largest > 0
        values, at = values[told], np.array(places, dtype=np.intp)[told]
        # Quantised to bytes: a step is 1/127 of the largest value, and the scale converts back to cosines.
        rounded = np.rint(values * (_LARGEST / largest[told])[:, np.newaxis]).astype(np.int8)
        self._vectors.values[at] = rounded
        self._scales.values[at] = 1.0 / np.linalg.norm(rounded.astype(np.float32), axis=1)
        self._column("embedded")[places] = True

    def _compact(self, kept: Places) -> None:
        """Keep the rows at some places, in order, and renumber the terms that are still in use."""
        self._counts.become(self._counts.values[self._terms.indexes(kept)[0]])
        self._terms.keep(kept)
        used, renumbered = np.unique(self._terms.values, return_inverse=True)
        self._terms.values[:] = renumbered
        self._held.become(self._held.values[used])
        names = [*self._vocabulary]
        self._vocabulary = {names[number]: at for at, number in enumerate(used.tolist())}
        for each in (self._units, self._episodes, self._columns, self._vectors, self._scales):
            each.become(each.values[kept])
        self._postings.make(self._terms, self._counts.values, len(self._vocabulary))
        self._overview = None


def _halves(unit_id: UUID) -> tuple[int, int]:
    return unit_id.int >> _HALF, unit_id.int & _LOW


def _uuid(halves: NDArray[np.uint64]) -> UUID:
    return UUID(int=int(halves[0]) << _HALF | int(halves[1]))


def _written(halves: NDArray[np.uint64]) -> list[str]:
    # Without an object for each id: a search needs many.
    digits = halves.astype(">u8").tobytes().hex()
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-{digits[at + 12 : at + 16]}-"
        f"{digits[at + 16 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, len(digits), 32)
    ]
