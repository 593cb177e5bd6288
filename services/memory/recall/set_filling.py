"""Fills a working set from PostgreSQL, newest memories first, with the terms and embeddings that the index has.

A turn waits for a fraction of a second, and not at all for an index that is not running. It uses what has been
read by then, computed from the texts if the index is slow or away; the rest follows later.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.memory.episodes import statements as sql
from services.memory.episodes.episode import PassageId, Scope
from services.memory.recall.unit_loading import Found, IndexedUnits, UnitRow, take_in
from services.memory.recall.working_set import WorkingSet
from services.platform.postgres import Database
from services.platform.shared_reads import Query

EPISODES_AT_ONCE = 1_250
"""Episodes that are read at once: some 2,500 messages."""
_INDEX_S, _TEXTS_S = 0.25, 0.2
"""Seconds that a turn waits for the index, and then for terms made from texts."""
_BEHIND_S = 0.5
"""Seconds after which an index that is not running is started. Until then the processor belongs to the turn that
needed it."""
_ROWS_AT_ONCE = 200
"""Units whose terms are made from their texts in one step."""
_LEARNT_AT_ONCE = 100


@dataclass(frozen=True)
class MemoryState:
    """The state of a user's memory in one snapshot of the database."""

    generation: int
    removed_at: int
    snapshot: str


class SetFilling:
    """One working set while it is being filled."""

    def __init__(
        self,
        database: Database,
        indexed: IndexedUnits,
        scope: Scope,
        *,
        dimension: int,
        most_units: int,
        episodes_at_once: int = EPISODES_AT_ONCE,
        embed_waiting: Callable[[Sequence[UnitRow]], Awaitable[dict[PassageId, Found]]],
    ) -> None:
        """Take the owner of the set, and the maximum number of its units; `embed_waiting` embeds units that are
        not indexed yet."""
        self._database = database
        self._indexed = indexed
        self._scope = scope
        self._most_units = most_units
        self._episodes_at_once = episodes_at_once
        self._embed_waiting = embed_waiting
        self._rows: list[UnitRow] = []
        self._newest: list[UnitRow] = []
        """The first rows, kept until the index is asked for their data."""
        self._reading: asyncio.Task[tuple[dict[PassageId, Found], bool]] | None = None
        self._oldest: UUID | None = None
        """The oldest episode read so far; None if all were read."""
        self.units = WorkingSet(dimension)
        self.changed: set[UUID] = set()
        """Episodes that were read again by somebody else in the meantime, so that what is read here may be
        older."""
        self.is_whole = False
        """Whether the set holds everything that is remembered, with its data from the index."""
        self.away = False
        """Whether the index did not answer the last request."""

    async def begin(self) -> tuple[bool, MemoryState | None]:
        """Read the newest memories. Return whether there are few enough for a set, and the state of memory that
        was read."""
        values = {**vars(self._scope), "most": self._episodes_at_once, "before": None}
        states, self._rows = await self._database.fetch_each(
            self._scope.tenant_id,
            Query(sql.GENERATION, values, class_row(MemoryState)),
            Query(sql.KEPT, values, class_row(UnitRow)),
        )
        self._note_oldest(self._rows)
        if self._oldest is not None and await self._has_too_many():
            return False, None
        waiting = await self._embed_waiting(self._rows)
        self._newest = [*self._rows]
        may_wait = self._indexed.is_ready or not any(
            row.indexed for row in self._rows
        )  # none: Milvus is not asked
        if may_wait and (await asyncio.wait([reading := self._read_newest()], timeout=_INDEX_S))[0]:
            known, self.away = reading.result()
            await take_in(self.units, self._rows, known | waiting, shared=False)
            self.is_whole = self._oldest is None
            return True, states[0] if states else None
        self.away = True
        until = monotonic() + _TEXTS_S
        while self._rows and (not len(self.units) or monotonic() < until):
            await take_in(self.units, self._some_rows(), waiting.copy(), shared=False)
        return True, states[0] if states else None

    async def go_on(self, is_wanted: Callable[[], bool]) -> bool:
        """Read the rest as long as `is_wanted` is true; return whether there are few enough for a set."""
        if self._reading is None and self.away:
            await asyncio.sleep(_BEHIND_S)
        while self._rows and is_wanted():
            await self._take_in(self._some_rows(), {})
        if self.away and is_wanted():
            known, self.away = await (self._reading or self._read_newest())
            await self._learn(known)
        while self._oldest is not None and is_wanted():
            values = {**vars(self._scope), "most": self._episodes_at_once, "before": self._oldest}
            rows = await self._database.fetch(self._scope.tenant_id, sql.KEPT, values, class_row(UnitRow))
            self._note_oldest(rows)
            known = {}
            if not self.away:
                known, self.away = await self._indexed.read(self._scope, rows, all_of_them=True)
            self._rows = rows
            while self._rows and is_wanted():
                part = self._some_rows()
                units = {row.unit_id for row in part}
                await self._take_in(part, {each: found for each, found in known.items() if each[0] in units})
            if len(self.units) > self._most_units:
                return False
        if is_wanted():
            async with self.units.in_use:
                self.units.order_by_time()
            self.is_whole = True
        return True

    async def close(self) -> None:
        """Stop asking the index."""
        if self._reading is not None:
            self._reading.cancel()

    def _read_newest(self) -> asyncio.Task[tuple[dict[PassageId, Found], bool]]:
        """Begin to ask the index for the data of the newest memories."""
        rows, self._newest = self._newest, []
        reading = self._indexed.read(self._scope, rows, all_of_them=True)
        self._reading = asyncio.create_task(reading, name="working set from the index")
        return self._reading

    def _note_oldest(self, rows: Sequence[UnitRow]) -> None:
        is_full = len({row.episode_id for row in rows}) >= self._episodes_at_once
        self._oldest = rows[-1].episode_id if is_full else None

    async def _has_too_many(self) -> bool:
        query = Query(sql.HAS_MORE, {**vars(self._scope), "most": self._most_units}, tuple_row)
        [(has_more,)] = await self._database.read(self._scope.tenant_id, query)
        return bool(has_more)

    def _some_rows(self) -> list[UnitRow]:
        """Take the newest of the remaining rows, ending at the end of an episode."""
        end = _ROWS_AT_ONCE
        while end < len(self._rows) and self._rows[end].episode_id == self._rows[end - 1].episode_id:
            end += 1
        part = self._rows[:end]
        del self._rows[:end]
        return part

    async def _take_in(self, rows: list[UnitRow], known: dict[PassageId, Found]) -> None:
        await take_in(self.units, [row for row in rows if row.episode_id not in self.changed], known)

    async def _learn(self, known: dict[PassageId, Found]) -> None:
        vectors = iter([(passage, vector) for passage, (_, vector) in known.items() if vector is not None])
        while some := dict(islice(vectors, _LEARNT_AT_ONCE)):
            self.units.embed(some)
            await asyncio.sleep(0)
