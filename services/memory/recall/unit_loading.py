"""Loads units of memory into a working set: rows from PostgreSQL, terms and embeddings from the index."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from operator import attrgetter
from typing import Any
from uuid import UUID

from services.encryption.data_key import UNREADABLE
from services.errors import Unavailable
from services.memory.episodes.episode import EpisodeType, PassageId, Scope, StoredUnit, said_by_assistant
from services.memory.episodes.index import EpisodeIndex
from services.memory.recall.unit_arrays import (
    ASKS,
    BY_ASSISTANT,
    LONG,
    STATES_NOTHING,
    WRITTEN,
    Embedding,
    KeptUnit,
    UnitContent,
)
from services.memory.recall.working_set import WorkingSet
from services.platform.milvus import CollectionMissing
from services.search.collection import indexed_terms, terms_that_fit
from services.text.language import language_of
from services.text.passages import is_long, passages_of
from services.text.questions import asks, states_something

_AT_ONCE, _OF_A_ROW = 1_000, 200
"""Number of rows of the index that are read at once, and the characters of a text for which one row is counted."""
_FEW = 4
"""Number of changed units up to which they are taken in without a thread."""
_LONG_TEXTS = 2_000
"""Characters of changed units from which on their terms are computed in a thread, however few the units are."""
_EPISODES_AT_ONCE = 100
"""Changed episodes that a shared set takes in without a pause."""
_FREED_AT_ONCE = 200
"""Number of rows that are freed before other threads continue."""
_SLOWEST_S, _SLOWEST_ROW_S = 2.0, 0.001
"""Maximum seconds to wait for the index: a fixed time, and a time per row."""

_NOTHING: tuple[str, None] = ("", None)

Found = tuple[str, Embedding | None]
"""The terms and the embedding of a passage in the index."""


@dataclass(frozen=True)
class UnitRow:
    """A unit in the form in which a working set reads it."""

    episode_id: UUID
    unit_id: UUID
    episode_type: EpisodeType
    importance: float
    conversation_id: UUID | None
    text: str | None
    """Text of the unit; None if the episode was removed."""
    created_at: datetime
    role: Any
    speaker: str | None
    message_id: UUID | None
    indexed: bool

    @property
    def text_hash(self) -> int:
        """Return the hash of everything on which its terms and its embedding depend."""
        return hash((self.text, self.speaker, self.role))


class IndexedUnits:
    """Reads terms and embeddings of units from the index."""

    def __init__(self, index: EpisodeIndex, lost: Callable[[UUID, UUID], Coroutine[Any, Any, bool]]) -> None:
        """Take the index.

        Args:
            index: source of terms and embeddings.
            lost: called with a tenant and a user whose part of the index is missing; returns whether so.
        """
        self._index = index
        self._lost = lost

    @property
    def is_ready(self) -> bool:
        """Whether the index may answer at once."""
        return self._index.is_ready

    async def read(
        self, scope: Scope, rows: Sequence[UnitRow], *, all_of_them: bool
    ) -> tuple[dict[PassageId, Found], bool]:
        """Return the data of units from the index, and whether the index is unavailable."""
        indexed = sorted((row for row in rows if row.indexed and row.text), key=attrgetter("unit_id"))
        known: dict[PassageId, Found] = {}
        try:
            for part in _parts(indexed):
                passages = [
                    (row.unit_id, number)
                    for row in part
                    for number in range(1 if all_of_them else len(passages_of(row.text or "")))
                ]
                known |= await self._index.rows(
                    scope.whole, passages, between=all_of_them, within_s=_patience_s(len(passages))
                )
        except CollectionMissing:
            return known, await self._lost(scope.tenant_id, scope.user_id)
        except Unavailable:
            return known, True
        if self._index.hides_terms:
            return {passage: ("", vector) for passage, (_, vector) in known.items()}, False
        return known, False

    async def embed(self, units: WorkingSet, scope: Scope, missing: Sequence[PassageId]) -> None:
        """Read the embeddings that a set lacks, letting other tasks run in between. Raises `Unavailable` if the
        index does not answer."""
        whose = scope.whole
        for begin in range(0, len(missing), _AT_ONCE):
            part = missing[begin : begin + _AT_ONCE]
            found = await self._index.rows(whose, part, within_s=_patience_s(len(part)))
            vectors = iter([(passage, vector) for passage, (_, vector) in found.items() if vector is not None])
            while some := dict(islice(vectors, _EPISODES_AT_ONCE)):
                units.embed(some)
                await asyncio.sleep(0)


async def take_in(
    units: WorkingSet, rows: list[UnitRow], known: dict[PassageId, Found], *, shared: bool = True
) -> None:
    """Take in changes: many of them in a thread, or in parts if searches use the set at the same time (`shared`).
    `rows` and `known` are emptied here, because freeing ten thousand objects takes as long as making them."""
    living = [row for row in rows if row.text and row.text != UNREADABLE]
    living.sort(key=lambda row: (row.created_at, row.unit_id))  # of equal units the newest is the best
    units.participants.update(row.speaker for row in living if row.speaker and row.role == "user")

    def made() -> list[KeptUnit]:
        kept: list[KeptUnit] = []
        before = units.known_passages({row.unit_id for row in living}) if len(units) else {}
        for row in living:
            text_hash, count = before.get(row.unit_id, (0, 0))
            unchanged = count if text_hash == row.text_hash else 0
            contents: Sequence[UnitContent | None] = [None] * unchanged or contents_of(row, known)
            for number, content in enumerate(contents):
                kept.append(_kept(row, number, content, known.get((row.unit_id, number), _NOTHING)[1]))
        return kept

    def taken_in() -> None:
        units.replace({row.episode_id for row in rows}, made())
        living.clear()
        _free([rows], known)

    if not shared:
        await asyncio.to_thread(taken_in)
        return
    is_much = len(rows) > _FEW or sum(len(row.text or "") for row in rows) > _LONG_TEXTS
    async with units.in_use:
        kept = await asyncio.to_thread(made) if is_much else made()
    by_episode: dict[UUID, list[KeptUnit]] = {row.episode_id: [] for row in rows}
    for unit in kept:
        by_episode[unit.episode_id].append(unit)
    changed = iter(by_episode.items())
    while part := list(islice(changed, _EPISODES_AT_ONCE)):
        async with units.in_use:
            units.replace([episode for episode, _ in part], [unit for _, each in part for unit in each])
        await asyncio.sleep(0)
    if is_much:
        by_episode.clear()
        living.clear()
        await asyncio.to_thread(_free, [rows, kept], known)


def contents_of(unit: UnitRow | StoredUnit, known: Mapping[PassageId, Found]) -> list[UnitContent]:
    """Return the terms and kinds of each passage of a unit; `known` has terms from the index."""
    text, speaker = unit.text or "", unit.speaker
    kinds = WRITTEN * (unit.message_id is None) | BY_ASSISTANT * said_by_assistant(unit.role, speaker)
    kinds |= ASKS * asks(text, language_of([text])) | LONG * is_long(text)
    if not kinds & (WRITTEN | BY_ASSISTANT):
        kinds |= STATES_NOTHING * (not states_something(text))
    return [
        UnitContent(
            known.get((unit.unit_id, number), _NOTHING)[0].split()
            or terms_that_fit(indexed_terms(text[each.start : each.end], speaker)).split(),
            kinds,
        )
        for number, each in enumerate(passages_of(text))
    ]


def _parts(rows: Sequence[UnitRow]) -> Iterator[Sequence[UnitRow]]:
    """Yield rows in stretches that have few enough passages to be read at once."""
    begin = count = 0
    for at, row in enumerate(rows):
        more = 1 + len(row.text or "") // _OF_A_ROW
        if count + more > _AT_ONCE and at > begin:
            yield rows[begin:at]
            begin, count = at, 0
        count += more
    if rows[begin:]:
        yield rows[begin:]


def _kept(row: UnitRow, passage: int, content: UnitContent | None, vector: Embedding | None) -> KeptUnit:
    return KeptUnit(
        unit_id=row.unit_id,
        episode_id=row.episode_id,
        conversation_id=row.conversation_id,
        episode_type=row.episode_type,
        said_at=row.created_at,
        waiting=not row.indexed,
        text_hash=row.text_hash,
        content=content,
        vector=vector,
        passage=passage,
    )


def _patience_s(rows: int) -> float:
    return _SLOWEST_S + _SLOWEST_ROW_S * rows


def _free(lists: Sequence[list[Any]], known: dict[PassageId, Found]) -> None:
    """Empty the lists a little at a time, so that the event loop can run in between."""
    while any(lists) or known:
        for each in lists:
            del each[-_FREED_AT_ONCE:]
        for passage in list(islice(known, _FREED_AT_ONCE)):
            del known[passage]
