"""Working sets of active users: fills them, keeps them up to date, and evicts them.

A set holds one snapshot of PostgreSQL. Each turn reads the user's memory generation when it is opened. If it has
changed, the episodes that the snapshot did not see are read, and after a removal all of them. So the next turn
sees everything that any process writes, supersedes, removes or erases.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic, perf_counter
from typing import Any
from uuid import UUID

import structlog
from psycopg.rows import class_row

from services.errors import Unavailable
from services.memory.as_of import as_of
from services.memory.core.blocks import Owner
from services.memory.episodes import statements as sql
from services.memory.episodes.episode import IndexedUnit, PassageId, Scope
from services.memory.episodes.index import EpisodeIndex
from services.memory.recall.past_sets import PastSets
from services.memory.recall.set_filling import EPISODES_AT_ONCE, MemoryState, SetFilling
from services.memory.recall.unit_arrays import Embedding
from services.memory.recall.unit_loading import Found, IndexedUnits, UnitRow, take_in
from services.memory.recall.working_set import WorkingSet
from services.platform.metrics import WORKING_SET_BYTES, WORKING_SETS_LOADED
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.text.passages import passages_of
from services.text.tokenizer import embedded_text

MOST_UNITS = 100_000
"""Maximum units of a set; users with more are served by the index."""
_BYTES_OF_A_SET, _BYTES_OF_A_UNIT = 8_192, 1_100
_MOST_OF_THE_LIMIT = 0.5
"""Maximum share of the memory limit for one set."""
_MOST_OF_THE_PAST = 20_000
"""Maximum number of episodes in a set of what was remembered at a moment."""
_LOADS = 2
_MANY = 500
"""Number of changed units from which on the index is asked for their terms."""
_LEARNT_AT_ONCE = 100
"""Number of embeddings that are stored in one step of the event loop."""
_EMBEDDED_AT_ONCE = 50
_AGAIN_S = 5.0
_TRIES = 3
_UNUSED_S = 1800.0
_LOOK_AGAIN_S = 600.0
_FOLLOWED_S = 0.5
_LOOKED_AT = 50
"""Number of the oldest sets that are examined at once to make room."""

Owned = tuple[UUID, UUID, UUID | None]
"""A user, an expert and a space: the set of a space also holds shared memory, but nothing of another space."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _ChangedRow(UnitRow):
    """A changed unit with the state of the user's memory; without an id if no unit has changed."""

    generation: int
    removed_at: int
    snapshot: str


@dataclass
class _Entry:
    """A working set with its state."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    units: WorkingSet | None = None
    """The set; None if it is not filled yet, or the user has too many memories for a set."""
    state: MemoryState | None = None
    used_at: float = 0.0
    looked_at: float = 0.0
    """When the index was last asked for data that the set lacks."""
    tries: int = 0
    given_up: bool = False
    beginning: bool = False
    """Whether filling has begun in the background while the index still serves the user."""
    filling: SetFilling | None = None
    """The filling that continues while the set is in use already."""
    following: bool = False
    """Whether an update is scheduled."""
    changed_at: float = 0.0
    """When an update was last asked for."""
    read_at: float = 0.0
    """When PostgreSQL was last read for it."""
    away: bool = False
    """Whether the index did not answer the last request."""
    too_large_until: float = 0.0
    """Time until which the size of the user's memory is not checked again."""
    nbytes: int = 0


@dataclass(frozen=True)
class Loaded:
    """A working set as a turn receives it."""

    units: WorkingSet
    milliseconds: float
    """Milliseconds that the turn waited for it to be filled or updated."""
    degraded: Sequence[str] = ()
    """`milvus` if the index could not be read, or the oldest memories are still being read."""
    is_bare: bool = False
    """Whether most embeddings may be missing until the index answers."""


class WorkingSets:
    """Caches working sets within a number of bytes, evicting the least recently used."""

    def __init__(
        self,
        database: Database,
        index: EpisodeIndex,
        *,
        dimension: int,
        limit_bytes: int,
        episodes_at_once: int = EPISODES_AT_ONCE,
        embed_soon: Callable[[Sequence[str]], Awaitable[Sequence[Embedding] | None]] | None = None,
        lost: Callable[[UUID, UUID], Coroutine[Any, Any, bool]],
    ) -> None:
        """Begin empty.

        Args:
            database: source of episodes.
            index: source of terms and embeddings.
            limit_bytes: for all sets together; 0 = no sets.
            episodes_at_once: newest episodes that a turn waits for; the others are read behind it.
            embed_soon: returns embeddings in some milliseconds, or None if it takes longer; without, what is not
                indexed yet is found by its words alone.
            lost: called with a tenant and a user whose part of the index is missing; returns whether so.
        """
        self._database = database
        self._embed_soon = embed_soon
        self._indexed = IndexedUnits(index, lost)
        self._dimension = dimension
        self._limit_bytes = limit_bytes
        self._episodes_at_once = episodes_at_once
        self._most_units = min(MOST_UNITS, int(_MOST_OF_THE_LIMIT * limit_bytes / _BYTES_OF_A_UNIT))
        self._entries: OrderedDict[Owned, _Entry] = OrderedDict()
        self._loads = asyncio.Semaphore(_LOADS)
        self._rests = asyncio.Semaphore(1)
        self._behind: set[asyncio.Task[None]] = set()
        self._bytes = 0
        self._past = PastSets(limit_bytes)

    @property
    def nbytes(self) -> int:
        """Bytes of all sets."""
        return self._bytes

    async def of(self, scope: Scope, generation: int | None) -> Loaded | None:
        """Return the current set of a user with an expert; None if there is no room for it.

        Args:
            scope: the owner; only tenant, user, expert and space matter.
            generation: the user's memory generation, if just read; otherwise the database is asked.
        """
        if not self._limit_bytes:
            return None
        begun = perf_counter()
        key = _key(scope)
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if entry.beginning or entry.too_large_until > monotonic():
            return None
        if generation is None or entry.state is None or entry.state.generation != generation:
            async with entry.lock:
                if generation is None or entry.state is None or entry.state.generation != generation:
                    await self._renew(entry, scope)
            self._make_room(key)
        entry.used_at = monotonic()
        if entry.units is None:
            return None
        self._complete_behind(entry, scope)
        is_bare = entry.away and bool(entry.units.without_vector())
        degraded = ["milvus"] if is_bare or entry.filling is not None else []
        milliseconds = round((perf_counter() - begun) * 1000, 1)
        return Loaded(entry.units, milliseconds, degraded, is_bare=is_bare)

    def embeddings_of(self, owner: Owner, unit_ids: Collection[UUID]) -> Mapping[UUID, Embedding]:
        """Return the embeddings that the owner's set has for some units, if the set is filled."""
        entry = self._entries.get(_key(owner))
        return entry.units.embeddings_of(unit_ids) if entry and entry.units else {}

    async def at(self, scope: Scope) -> Loaded:
        """Return a set of what was remembered at `scope.as_of`, with the newest 20,000 units.

        What has changed since is in no index, so it is found by its words. The set is kept for further questions
        about that moment until the user's memory changes.
        """
        begun = perf_counter()
        values = {**vars(scope), "most": _MOST_OF_THE_PAST, "before": None}
        async with self._loads:
            # Read first: what changes while the set is made is not in a set of this generation.
            states = await self._database.fetch(scope.tenant_id, sql.GENERATION, values, class_row(MemoryState))
            generation = states[0].generation if states else 0
            kept = self._past.get(scope, generation)
            if kept is not None:  # an empty set is a result, too
                return Loaded(kept, round((perf_counter() - begun) * 1000, 1))
            rows = await self._database.fetch(scope.tenant_id, as_of(sql.KEPT), values, class_row(UnitRow))
            units = WorkingSet(self._dimension)
            known, away = await self._indexed.read(scope, rows, all_of_them=True)
            await take_in(units, rows, known, shared=False)
            if not away:
                self._past.put(scope, generation, units)
        return Loaded(units, round((perf_counter() - begun) * 1000, 1), ["milvus"] if away else [])

    def follow(self, scope: Scope) -> None:
        """Update a set in the background, so that the next turn does not have to wait."""
        entry = self._entries.get(_key(scope))
        if entry is None or entry.units is None:
            return
        entry.changed_at = monotonic()
        if not entry.following:
            entry.following = True
            self._start(self._follow(entry, scope))

    async def learn(self, rows: Sequence[IndexedUnit]) -> None:
        """Store the embeddings of units that this process has just indexed, letting other tasks run in between."""
        owned: dict[Owned, dict[PassageId, Sequence[float]]] = {}
        for row in rows:
            passage = row.unit_id, row.passage
            owned.setdefault((row.user_id, row.expert_id, row.space_id), {})[passage] = row.embedding
        for (user_id, expert_id, space_id), entry in [*self._entries.items()]:
            known = {**owned.get((user_id, expert_id, None), {}), **owned.get((user_id, expert_id, space_id), {})}
            vectors = [*known.items()]
            for begin in range(0, len(vectors), _LEARNT_AT_ONCE):
                if entry.units is not None:
                    entry.units.embed(dict(vectors[begin : begin + _LEARNT_AT_ONCE]))
                await asyncio.sleep(0)

    def forget(self, user_id: UUID) -> None:
        """Drop the sets of a user."""
        self._past.forget(user_id)
        for key in [key for key in self._entries if key[0] == user_id]:
            self._give_up(key)

    def clear(self) -> None:
        """Drop all sets, as after a rebuild of the index."""
        for key in [*self._entries]:
            self._give_up(key)

    async def close(self) -> None:
        """Stop the background work."""
        for task in self._behind:
            task.cancel()
        if self._behind:
            await asyncio.wait(self._behind)

    async def settled(self) -> None:
        """Wait for the background work."""
        while self._behind:
            await asyncio.wait(self._behind)

    async def _renew(self, entry: _Entry, scope: Scope) -> None:
        """Read what has changed, or everything."""
        entry.read_at = monotonic()
        values = vars(scope)
        before = entry.state
        if before is not None and entry.units is not None:
            found = await self._database.read(
                scope.tenant_id,
                Query(sql.GENERATION_AND_CHANGED, {**values, "snapshot": before.snapshot}, class_row(_ChangedRow)),
            )
            if found and found[0].removed_at <= before.generation:
                state = MemoryState(found[0].generation, found[0].removed_at, found[0].snapshot)
                rows: list[UnitRow] = [row for row in found if row.unit_id]
                if entry.filling is not None:
                    entry.filling.changed.update(row.episode_id for row in rows)
                found.clear()
                # As after an import: terms that are indexed by now need not be computed from the texts.
                known: dict[PassageId, Found] = {}
                if len(rows) > _MANY:
                    known, _ = await self._indexed.read(scope, rows, all_of_them=False)
                await take_in(entry.units, rows, known | await self._waiting(rows))
                entry.state = state
                entry.tries, entry.looked_at = 0, 0.0
                self._weigh(entry)
                return
        entry.units, entry.state, entry.filling = None, None, None
        filling = SetFilling(
            self._database,
            self._indexed,
            scope,
            dimension=self._dimension,
            most_units=self._most_units,
            episodes_at_once=self._episodes_at_once,
            embed_waiting=self._waiting,
        )
        beginning = asyncio.create_task(self._begin(entry, filling), name="working set")
        try:
            fits = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            # The turn has stopped waiting. Finish the set nevertheless, because the next turn needs it.
            entry.beginning = True
            self._start(self._finish(entry, beginning))
            raise
        if not fits:
            entry.too_large_until = monotonic() + _LOOK_AGAIN_S

    async def _finish(self, entry: _Entry, beginning: Awaitable[bool]) -> None:
        """Let a set be filled in the background; until it is, the index serves the user."""
        try:
            if not await beginning:
                entry.too_large_until = monotonic() + _LOOK_AGAIN_S
        finally:
            entry.beginning = False

    async def _begin(self, entry: _Entry, filling: SetFilling) -> bool:
        """Fill a set with the newest memories now and the rest in the background; return whether there are few
        enough."""
        async with self._loads:
            fits, state = await filling.begin()
        if not fits:
            return False
        entry.units, entry.state = filling.units, state
        entry.filling = None if filling.is_whole else filling
        entry.away, entry.tries, entry.looked_at = filling.away, 0, monotonic()
        WORKING_SETS_LOADED.inc()
        self._weigh(entry)
        if not filling.is_whole:
            self._start(self._go_on(entry, filling))
        return True

    async def _go_on(self, entry: _Entry, filling: SetFilling) -> None:
        def is_wanted() -> bool:
            if entry.filling is filling:
                self._weigh(entry)
            return entry.filling is filling and not entry.given_up

        try:
            async with self._rests:
                if not await filling.go_on(is_wanted) and is_wanted():
                    entry.units, entry.state = None, None
                    entry.too_large_until = monotonic() + _LOOK_AGAIN_S
        finally:
            await filling.close()
            if is_wanted():
                entry.away, entry.filling = filling.away, None

    async def _waiting(self, rows: Sequence[UnitRow]) -> dict[PassageId, Found]:
        """Embed what users said last and is not indexed yet; most of it was embedded for a search a moment ago.
        Answers and later passages are found by their words until they are indexed together, which costs less."""
        if self._embed_soon is None:
            return {}
        said = [row for row in rows if row.text and row.role == "user" and not row.indexed][-_EMBEDDED_AT_ONCE:]
        texts = [embedded_text(row.role, row.speaker, _first_passage(row.text or "")) for row in said]
        vectors = await self._embed_soon(texts) if texts else None
        return {(row.unit_id, 0): ("", vector) for row, vector in zip(said, vectors or [], strict=False)}

    async def _follow(self, entry: _Entry, scope: Scope) -> None:
        # A short delay is harmless, and turns that end together are read together.
        await asyncio.sleep(_FOLLOWED_S)
        entry.following = False
        if entry.given_up or entry.units is None:
            return
        async with entry.lock:
            if entry.read_at < entry.changed_at:  # otherwise the next turn has already read it
                await self._renew(entry, scope)

    def _complete_behind(self, entry: _Entry, scope: Scope) -> None:
        """Read embeddings that another process has indexed since, in the background."""
        if entry.tries >= _TRIES or monotonic() - entry.looked_at < _AGAIN_S:
            return
        entry.looked_at = monotonic()
        if entry.units is not None and (missing := entry.units.without_vector()):
            self._start(self._complete(entry, entry.units, scope, missing))

    async def _complete(
        self, entry: _Entry, units: WorkingSet, scope: Scope, missing: Sequence[PassageId]
    ) -> None:
        await self._indexed.embed(units, scope, missing)
        entry.tries += 1
        entry.away = False

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        async def run() -> None:
            try:
                await work
            except Unavailable as error:
                log.debug("a working set is brought up to date later", reason=error.message)

        task = asyncio.create_task(run(), name="working set")
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    def _weigh(self, entry: _Entry) -> None:
        if entry.given_up:
            return
        size = _BYTES_OF_A_SET + entry.units.nbytes if entry.units else 0
        self._bytes += size - entry.nbytes
        entry.nbytes = size

    def _make_room(self, wanted: Owned) -> None:
        """Evict sets unused for long, and then the oldest until the limit is met."""
        unused_since = monotonic() - _UNUSED_S
        for key, entry in list(islice(self._entries.items(), _LOOKED_AT)):
            if key == wanted or (self._bytes <= self._limit_bytes and entry.used_at >= unused_since):
                break
            if not entry.lock.locked():
                self._give_up(key)
        WORKING_SET_BYTES.set(self._bytes)

    def _give_up(self, key: Owned) -> None:
        entry = self._entries.pop(key)
        entry.given_up = True
        self._bytes -= entry.nbytes


def _first_passage(text: str) -> str:
    first = passages_of(text)[0]
    return text[first.start : first.end]


def _key(owner: Owner) -> Owned:
    return owner.user_id, owner.expert_id, owner.space_id
