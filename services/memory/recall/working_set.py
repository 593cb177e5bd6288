"""All memories of one user with one expert as arrays, for ranking.

The texts stay in PostgreSQL; here a unit has its terms as numbers, its concepts, its embedding as bytes, and a few
numbers. Units are found by words (BM25) and by meaning (cosine) in one pass each, and then ranked.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from services.memory.recall.growable_array import GrowableArray, GrowableRows
from services.memory.recall.postings import Postings
from services.search.columns import WAITING, WRITTEN, Columns, Concepts, features_of
from services.search.index_terms import Marked
from services.search.meaning import WordMeanings, lengths_of, rows_of
from services.search.parameters import BM25_B, BM25_K1
from services.search.passages import Passages, passages_of
from services.search.sequences import Places, TermSequences, boundaries, stretches
from services.search.term_matrix import TermCounts, Values

Mask = NDArray[np.bool_]

_LARGEST = 127
_HALF = 64
_LOW = (1 << _HALF) - 1
_BYTES_OF_A_TERM = 130
"""Approximate bytes of a term in the vocabulary: the string, the number and the table entry."""
_LEAST_GONE, _SHARE_GONE = 64, 0.2
"""Removed units that trigger compaction: in number, and as a share."""
_BLOCK = 2_048
"""Embeddings converted to floats at once, so that they stay in the CPU cache."""


@dataclass(frozen=True, slots=True)
class UnitContent:
    """Data derived from the text of a unit.

    Attributes:
        words: Terms of its text, including the speaker's name.
        marks: Additional index terms (`services.search.index_terms`).
        kinds: Bits (`services.search.columns`), except `WAITING`, which is in `KeptUnit`.
        named: Number of initial terms that name the speaker.
        concepts: Concepts in its text.
    """

    words: Sequence[str]
    marks: Sequence[str]
    kinds: int
    named: int
    concepts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class KeptUnit:
    """A unit to add to a working set.

    Attributes:
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
    importance: float
    waiting: bool
    text_hash: int
    content: UnitContent | None = None
    vector: Sequence[float] | None = None


class WorkingSet:
    """Units of one user with one expert. A unit keeps its place as long as it is in the set."""

    def __init__(self, dimension: int) -> None:
        """Take the dimensions of embeddings."""
        self.conversations: dict[UUID | None, int] = {}
        self._types: dict[str, int] = {}
        self._vocabulary: dict[str, int] = {}
        self._names: list[str] = []
        self._concept_numbers: dict[str, int] = {}
        self._concept_names: list[str] = []
        self._units = GrowableArray(np.uint64, 2)
        self._episodes = GrowableArray(np.uint64, 2)
        self._terms = GrowableRows(np.int32)
        self._concepts = GrowableRows([("name", np.int16), ("weight", np.float16)])
        self._word_rows = GrowableArray(np.int32)
        self._word_lengths = GrowableRows(np.float32)
        self._columns = GrowableArray(
            [
                ("said_at", np.float64),
                ("importance", np.float64),
                ("text_hash", np.int64),
                ("conversation", np.int32),
                ("marks", np.uint16),
                ("kinds", np.uint16),
                ("type", np.uint8),
                ("named", np.uint8),
                ("living", np.bool_),
                ("embedded", np.bool_),
            ]
        )
        self._vectors = GrowableArray(np.int8, dimension)
        self._scales = GrowableArray(np.float32)
        self._postings = Postings()
        self._previous: Places | None = None
        self.in_use = asyncio.Lock()
        """Held while it changes, and while a thread searches it."""

    def __len__(self) -> int:
        return int(self._column("living").sum())

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        arrays = (
            self._units, self._episodes, self._terms, self._concepts, self._columns, self._vectors, self._scales,
            self._word_rows, self._word_lengths, self._postings,
        )  # fmt: skip
        return sum(each.nbytes for each in arrays) + _BYTES_OF_A_TERM * len(self._names)

    def replace(self, episode_ids: Iterable[UUID], units: Sequence[KeptUnit]) -> None:
        """Replace the units of some episodes; episodes without units are removed.

        A unit whose text is unchanged keeps its content and its embedding.
        """
        wanted = {unit.unit_id: unit for unit in units}
        for episode_id in episode_ids if len(self._columns) else ():
            for place in self._places_of_episode(episode_id):
                unit = wanted.get(self.unit_id(place))
                if unit is not None and unit.content is None:
                    self._note([place], [wanted.pop(unit.unit_id)])
                else:
                    self._column("living")[place] = False
        self._append([unit for unit in wanted.values() if unit.content is not None])
        self._previous = None
        gone = len(self._columns) - len(self)
        if gone > _LEAST_GONE and gone > _SHARE_GONE * len(self._columns):
            self._compact()

    def embed(self, vectors: Mapping[UUID, Sequence[float]]) -> None:
        """Store the embeddings of units; those of unknown units are ignored."""
        ids = self._units.values
        low = np.array([unit_id.int & _LOW for unit_id in vectors], dtype=ids.dtype)
        near = np.flatnonzero(np.isin(ids[:, 1], low) & self._living)
        places = {self.unit_id(place): place for place in near.tolist()}
        if known := places.keys() & vectors.keys():
            self._embed([places[unit_id] for unit_id in known], [vectors[unit_id] for unit_id in known])

    def knows(self, unit_id: UUID, text_hash: int) -> bool:
        """Whether it has the unit with that text."""
        place = self.place_of(unit_id)
        return place is not None and int(self._column("text_hash")[place]) == text_hash

    def without_vector(self) -> list[UUID]:
        """Return indexed units whose embedding is not known here."""
        places = (self._living & ~self._column("embedded") & ~self._are(WAITING)).nonzero()[0]
        return [self.unit_id(place) for place in places.tolist()]

    def unit_id(self, place: int) -> UUID:
        """The unit at a place."""
        return _uuid(self._units.values[place])

    def episode_id(self, place: int) -> UUID:
        """The episode of the unit at a place."""
        return _uuid(self._episodes.values[place])

    def contents(self, places: Places) -> list[Marked]:
        """The terms, concepts and features of the units at some places."""
        begins, ends = self._stretch(places)
        of_terms = boundaries(ends - begins).tolist()
        terms = list(map(self._names.__getitem__, self._terms.values[stretches(begins, ends - begins)].tolist()))
        at, bounds = self._concepts.indexes(places)
        spoken = [(self._concept_names[name], weight) for name, weight in self._concepts.values[at].tolist()]
        of_concepts = bounds.tolist()
        return [
            Marked(
                tuple(terms[of_terms[number] : of_terms[number + 1]]),
                dict(spoken[of_concepts[number] : of_concepts[number + 1]]),
                features_of(kinds),
            )
            for number, kinds in enumerate(self._column("kinds")[places].tolist())
        ]

    def are_indexed(self, places: Places) -> list[bool]:
        """Whether the index has the units at some places."""
        indexed: list[bool] = ((self._column("kinds")[places] & WAITING) == 0).tolist()
        return indexed

    def place_of(self, unit_id: UUID) -> int | None:
        """Return the place of a unit; None if it is not in the set."""
        ids = self._units.values
        found = np.flatnonzero(
            (ids[:, 1] == unit_id.int & _LOW) & (ids[:, 0] == unit_id.int >> _HALF) & self._living
        )
        return int(found[0]) if len(found) else None

    def within(
        self,
        *,
        conversation_id: UUID | None = None,
        episode_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Mask:
        """Return the units in a part of the set; `until` is exclusive."""
        mask = self._living.copy()
        if conversation_id is not None:
            mask &= self._column("conversation") == self.conversations.get(conversation_id, -1)
        if episode_type is not None:
            mask &= self._column("type") == self._types.get(episode_type, 255)
        if since is not None:
            mask &= self._column("said_at") >= since.timestamp()
        if until is not None:
            mask &= self._column("said_at") < until.timestamp()
        return mask

    def waiting(self, mask: Mask, most: int) -> Places:
        """Return units not indexed yet, newest first."""
        places = (mask & self._are(WAITING)).nonzero()[0]
        return self._ordered(places)[::-1][:most]

    def by_words(self, terms: Sequence[str], mask: Mask, most: int) -> Places:
        """Return the units that match terms best, by BM25 over the whole set; those without any are left out."""
        asked = Counter(term for term in terms if term in self._vocabulary)
        living = self._living
        if not asked or not living.any():
            return np.zeros(0, dtype=np.intp)
        numbers = np.array([self._vocabulary[term] for term in asked], dtype=np.intp)
        places, at, counts = self._postings.of(numbers, self._terms, len(self._names))
        held = living[places]
        places, at, counts = places[held], at[held], counts[held]
        size = int(living.sum())
        found = np.bincount(at, minlength=len(numbers))
        weights = np.log(1 + (size - found + 0.5) / (found + 0.5)) * np.array(list(asked.values()))
        lengths = self._terms.lengths
        relative = lengths[places] / max(float(lengths[living].mean()), 1.0)
        matched = counts * (BM25_K1 + 1) / (counts + BM25_K1 * (1 - BM25_B + BM25_B * relative))
        scores = np.bincount(places, weights[at] * matched, minlength=len(living))
        return self._highest(scores.astype(np.float64), mask & (scores > 0), most)

    def by_meaning(self, vector: Sequence[float], mask: Mask, most: int) -> tuple[Places, Values]:
        """Return the units nearest to an embedding, with their cosine similarities."""
        wanted = mask & self._column("embedded")
        known = wanted.nonzero()[0]
        query = np.asarray(vector, dtype=np.float32)
        length = float(np.linalg.norm(query))
        scores = np.full(len(mask), -np.inf)
        if not len(known) or not length:
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        query /= length
        many = len(known) > len(mask) // 2
        for begin in range(0, len(mask) if many else len(known), _BLOCK):
            # A contiguous range is not copied before the conversion to floats.
            places = slice(begin, begin + _BLOCK) if many else known[begin : begin + _BLOCK]
            scores[places] = self._vectors.values[places].astype(np.float32) @ query * self._scales.values[places]
        if many:
            scores[~wanted] = -np.inf
        best = self._highest(scores, np.isfinite(scores), most)
        return best, scores[best]

    def columns(self, places: Places) -> Columns:
        """Return the units at the places as ranking reads them, in that order."""
        chosen = self._columns.values[places]
        begins, ends = self._stretch(places)
        terms = TermSequences(self._terms.values, self._terms.bounds, self._vocabulary).cut(begins, ends - begins)
        at, bounds = self._concepts.indexes(places)
        spoken = self._concepts.values[at]
        concepts = TermSequences(spoken["name"].astype(np.int32), bounds, self._concept_numbers)
        local = np.full(len(self._columns) + 1, -1, dtype=np.intp)
        local[places] = np.arange(len(places))
        return Columns(
            terms=terms,
            said_at=chosen["said_at"],
            conversations=chosen["conversation"].astype(np.int64),
            previous=local[self._preceding()[places]],
            kinds=chosen["kinds"],
            importance=chosen["importance"],
            named=chosen["named"],
            concepts=Concepts(concepts, spoken["weight"].astype(np.float32)),
            meanings=self._meanings(places, terms),
        )

    def in_order(self, *found: Places) -> Places:
        """Return the places without duplicates, in chronological order."""
        every = np.zeros(len(self._columns), dtype=np.bool_)
        every[np.concatenate(found)] = True
        return self._ordered(every.nonzero()[0]).astype(np.intp)

    def said_between(self, places: Places, since: datetime, until: datetime) -> Mask:
        """Return which of the units at the places were said in a period; `until` is exclusive."""
        said_at = self._column("said_at")[places]
        return (said_at >= since.timestamp()) & (said_at < until.timestamp())

    def has_elsewhere(self, conversation_id: UUID, before: datetime | None) -> bool:
        """Whether anything of another conversation is indexed, or of this one before that time."""
        here = self._column("conversation") == self.conversations.get(conversation_id, -1)
        if before is not None:
            here &= self._column("said_at") >= before.timestamp()
        return bool((self._living & ~here & ~self._are(WAITING)).any())

    @property
    def _living(self) -> Mask:
        return self._column("living")

    def _column(self, name: str) -> NDArray[Any]:
        column: NDArray[Any] = self._columns.values[name]
        return column

    def _are(self, kind: int) -> Mask:
        found: Mask = (self._column("kinds") & kind) != 0
        return found

    def _stretch(self, places: Places) -> tuple[Places, Places]:
        """Return where the words of the units at the places begin and end, without their marks."""
        bounds = self._terms.bounds
        return bounds[places] + self._column("marks")[places], bounds[places + 1]

    def _meanings(self, places: Places, terms: TermSequences) -> WordMeanings:
        """Return the meanings of the words of the units at the places, caching new ones."""
        rows = self._word_rows.values
        at, bounds = self._word_lengths.indexes(places)
        missing = np.isnan(self._word_lengths.values[at[bounds[:-1]]]).nonzero()[0]
        if len(missing):
            texts = terms.taken(missing)
            found = lengths_of(Passages(texts, TermCounts(texts)), rows)
            self._word_lengths.values[self._word_lengths.indexes(places[missing])[0]] = found
        return WordMeanings(rows, self._word_lengths.values[at])

    def _places_of_episode(self, episode_id: UUID) -> list[int]:
        ids = self._episodes.values
        same = (ids[:, 1] == episode_id.int & _LOW) & (ids[:, 0] == episode_id.int >> _HALF)
        return np.flatnonzero(same & self._living).tolist()

    def _append(self, units: Sequence[KeptUnit]) -> None:
        contents = [unit.content for unit in units if unit.content is not None]
        if not contents:
            return
        begin = len(self._columns)
        rows = [[*content.marks, *content.words] for content in contents]
        self._terms.append([self._number(term) for row in rows for term in row], [len(row) for row in rows])
        self._word_rows.append(rows_of(self._names[len(self._word_rows) :]))
        spoken = [
            (self._number_of_concept(name), weight)
            for content in contents
            for name, weight in content.concepts.items()
        ]
        self._concepts.append(
            np.array(spoken, dtype=self._concepts.dtype), [len(content.concepts) for content in contents]
        )
        passages = passages_of(np.array([len(content.words) for content in contents]))
        self._word_lengths.append(np.full(int(passages.sum()), np.nan), passages)
        self._units.append([_halves(unit.unit_id) for unit in units])
        self._episodes.append([_halves(unit.episode_id) for unit in units])
        self._columns.append(np.zeros(len(units), dtype=self._columns.dtype))
        self._vectors.append(np.zeros((len(units), self._vectors.width or 0), dtype=np.int8))
        self._scales.append(np.zeros(len(units), dtype=np.float32))
        fresh = self._columns.values[begin:]
        fresh["marks"] = [len(content.marks) for content in contents]
        fresh["named"] = [min(content.named, 255) for content in contents]
        fresh["kinds"] = [content.kinds for content in contents]
        fresh["kinds"] &= ~np.uint16(WAITING)
        self._note(slice(begin, None), units)

    def _note(self, places: slice | list[int], units: Sequence[KeptUnit]) -> None:
        """Update what may change while the texts of some units stay the same."""
        columns = self._columns.values
        conversations, types = self.conversations, self._types
        columns["said_at"][places] = [unit.said_at.timestamp() for unit in units]
        columns["importance"][places] = [unit.importance for unit in units]
        columns["text_hash"][places] = [unit.text_hash for unit in units]
        columns["conversation"][places] = [
            conversations.setdefault(unit.conversation_id, len(conversations)) for unit in units
        ]
        waiting = np.array([WAITING * unit.waiting for unit in units], dtype=np.uint16)
        columns["kinds"][places] = columns["kinds"][places] & ~np.uint16(WAITING) | waiting
        columns["type"][places] = [types.setdefault(unit.episode_type, len(types)) for unit in units]
        columns["living"][places] = True
        at = np.arange(len(columns))[places]
        embedded = [
            (place, unit.vector) for place, unit in zip(at.tolist(), units, strict=True) if unit.vector is not None
        ]
        for begin in range(0, len(embedded), _BLOCK):
            part = embedded[begin : begin + _BLOCK]
            self._embed([place for place, _ in part], [vector for _, vector in part])

    def _embed(self, places: list[int], vectors: Sequence[Sequence[float]]) -> None:
        values = np.asarray(vectors, dtype=np.float32)
        largest = np.abs(values).max(axis=1)
        told = largest > 0
        values, at = values[told], np.array(places, dtype=np.intp)[told]
        # Quantised to bytes: a step is 1/127 of the largest value, and the scale converts back to cosines.
        rounded = np.rint(values * (_LARGEST / largest[told])[:, np.newaxis]).astype(np.int8)
        self._vectors.values[at] = rounded
        self._scales.values[at] = 1.0 / np.linalg.norm(rounded.astype(np.float32), axis=1)
        self._column("embedded")[places] = True

    def _number(self, term: str) -> int:
        number = self._vocabulary.get(term)
        if number is None:
            number = self._vocabulary[term] = len(self._names)
            self._names.append(term)
        return number

    def _number_of_concept(self, name: str) -> int:
        number = self._concept_numbers.get(name)
        if number is None:
            number = self._concept_numbers[name] = len(self._concept_names)
            self._concept_names.append(name)
        return number

    def _highest(self, scores: Values, mask: Mask, most: int) -> Places:
        """Return the places with the highest scores, best first; of equal ones the newest."""
        places = mask.nonzero()[0]
        if len(places) > most:
            least = np.partition(scores[places], len(places) - most)[len(places) - most]
            places = places[scores[places] >= least]
        newest_first = self._ordered(places)[::-1]
        return newest_first[np.argsort(-scores[newest_first], kind="stable")][:most].astype(np.intp)

    def _ordered(self, places: Places) -> Places:
        """Return the places in chronological order."""
        ids = self._units.values[places]
        return places[np.lexsort((ids[:, 1], ids[:, 0], self._column("said_at")[places]))]

    def _preceding(self) -> Places:
        """Return for each unit the place of the message before it in its conversation; -1 if there is none."""
        if self._previous is None:
            said = self._ordered((self._living & ~self._are(WRITTEN)).nonzero()[0])
            conversations = self._column("conversation")[said]
            order = np.argsort(conversations, kind="stable")
            said, conversations = said[order], conversations[order]
            previous = np.full(len(self._columns), -1, dtype=np.intp)
            same = (conversations[1:] == conversations[:-1]).nonzero()[0] + 1
            previous[said[same]] = said[same - 1]
            self._previous = previous
        return self._previous

    def _compact(self) -> None:
        """Release the places of removed units, and renumber the terms still in use."""
        kept = self._living.nonzero()[0]
        for rows in (self._terms, self._concepts, self._word_lengths):
            rows.keep(kept)
        used, renumbered = np.unique(self._terms.values, return_inverse=True)
        self._terms.values[:] = renumbered
        self._names = [self._names[number] for number in used.tolist()]
        self._vocabulary = {name: number for number, name in enumerate(self._names)}
        self._word_rows.become(self._word_rows.values[used])
        for each in (self._units, self._episodes, self._columns, self._vectors, self._scales):
            each.become(each.values[kept])
        self._postings.make(self._terms, len(self._names))
        self._previous = None


def _halves(unit_id: UUID) -> tuple[int, int]:
    return unit_id.int >> _HALF, unit_id.int & _LOW


def _uuid(halves: NDArray[np.uint64]) -> UUID:
    return UUID(int=int(halves[0]) << _HALF | int(halves[1]))
