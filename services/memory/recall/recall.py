"""Recall: finds what is relevant to a message among everything ever said. All searches of memory go through here.

It searches the user's working set, or the index if there is none. The texts that are shown are read from
PostgreSQL, so nothing can appear that was removed or belongs to somebody else. Units that are not indexed yet are
found by their words.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from time import perf_counter
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray
from opentelemetry.trace import Span

from services.errors import Unavailable
from services.llm.embeddings import Embedder
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import EpisodeStore, Scope, StoredUnit
from services.memory.episodes.index import EpisodeIndex
from services.memory.recall.index_search import IndexSearch
from services.memory.recall.working_set import WorkingSet
from services.memory.recall.working_set_search import SearchRequest, best_of, find_in_set
from services.memory.recall.working_sets import Loaded, WorkingSets
from services.memory.removal.exclusions import is_excluded
from services.platform import span_names as names
from services.platform.metrics import RECALL_SECONDS, RECALLS_SKIPPED
from services.platform.patience import Patience, beside_the_loop
from services.platform.tracing import TRACING, Attributes, mark_failed, span
from services.search.hits import Ranking
from services.search.queries import Heads, Query, Utterance, make_query
from services.search.ranking import kind_of
from services.search.selection import Floor
from services.search.units import Vectors
from services.text.passages import passage
from services.text.questions import is_small_talk
from services.text.tokenizer import embedded_text, terms
from services.time_reference.local_days import bounds, local_day
from services.time_reference.parse import named_days
from state.prompt import HistoryMessage, TimeReference
from state.turn import OpenTurn

_EMBEDDING_S = 5.0
"""Seconds that a search outside of a turn waits for the embeddings."""
_HANGS_S = 20.0
"""Seconds after which a turn continues without recall, because something must be broken."""
_A_DAY = timedelta(hours=25)
"""The length of the longest local day."""
_LONG = 1_000
"""Characters of a message from which on the days in it are read in a thread."""
_LONGEST_QUESTION = 2_000
"""Maximum characters of a text that may be a question about one day."""
_DEPTH, _DEPTH_OF_A_TURN = 40, 20
"""Number of units returned with their texts, in a search and in a turn; the prompt chooses among the latter."""
_EMBEDDED = 40
"""Maximum number of units that are embedded here while the index does not answer."""
_RECENT_MESSAGES = 6
_MOST_SAID = 500
"""Maximum characters of each of these texts."""
_NOTHING = Ranking(())
_NO_VECTORS: Vectors = np.empty((0, 0), dtype=np.float32)
_USUAL = Floor()

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class RecallResult:
    query: Query | None = None
    """The query; None = there was nothing to search for."""
    ranking: Ranking = _NOTHING
    units: Mapping[str, StoredUnit] = field(default_factory=dict)
    """The ranked units by id. It is empty for a turn that shows none because all are unlikely."""
    degraded: Sequence[str] = ()
    """Sources that did not answer. With `milvus` or `embedding`, the rest was searched; with `recall`, nothing
    was."""
    milliseconds: float = 0.0
    loading_milliseconds: float = 0.0
    """Milliseconds of the total that were spent waiting for the user's working set."""
    message_vector: NDArray[np.float32] | None = None
    """The embedding of the message, if one was made."""
    floor: Floor = _USUAL
    """Threshold of relevance."""

    def without(self, excluded: Collection[str]) -> "RecallResult":
        """Return the result without units that come from these memories and messages."""
        if not excluded or not self.units:
            return self
        left = [each for each in self.ranking.results if not is_excluded(self.units[each.unit.id], excluded)]
        return replace(self, ranking=replace(self.ranking, results=tuple(left)))


class Recall:
    """Finds episodes for a message."""

    def __init__(
        self,
        episodes: EpisodeStore,
        index: EpisodeIndex,
        sets: WorkingSets,
        embedder: Embedder,
        *,
        budget_s: float,
    ) -> None:
        """Take the stores, and the seconds that a turn waits for the embedding of its message."""
        self._episodes = episodes
        self._by_index = IndexSearch(episodes, index, dimension=embedder.dimension)
        self._sets = sets
        self._embedder = embedder
        self._budget_s = budget_s

    def expect(self, message: str, *, alone: bool = False) -> None:
        """Begin to embed a message before its turn begins: together with others, or at once if `alone`."""
        loop = asyncio.get_running_loop()
        if alone:  # two steps of the loop later the statement that opens the turn has been sent
            loop.call_soon(loop.call_soon, partial(self._expect, message, alone=True))
        else:
            self._expect(message, alone=False)

    def _expect(self, message: str, *, alone: bool) -> None:
        query = None if is_small_talk(message) else make_query(message)
        if query is not None:
            self._embedder.expect(query.embedded, soon=alone)

    async def load(self, turn: OpenTurn) -> Loaded | None:
        """Load the user's working set for `for_turn` while the conversation is read; returns None if there is none
        yet."""
        if is_small_talk(turn.message):
            return None
        try:
            async with asyncio.timeout(_HANGS_S):
                return await self._sets.of(Scope.of(Owner.of_turn(turn)), turn.memory_generation)
        except (Unavailable, TimeoutError):  # the turn tries once more, and reports a failure then
            return None

    async def for_turn(
        self,
        turn: OpenTurn,
        shown: Sequence[HistoryMessage] = (),
        *,
        reference: TimeReference | None = None,
        then: tuple[datetime, datetime] | None = None,
        loaded: Loaded | None = None,
    ) -> RecallResult:
        """Recall for a turn's message. It never fails: parts that are broken are left out.

        Args:
            turn: whose message it is.
            shown: the preceding messages of its conversation that the prompt shows anyway, oldest first.
            reference: to earlier conversation in the message; a plain one asks for that time only.
            then: the time that it refers to, if known: what was said in it comes first.
            loaded: the user's working set; None = it is still to be loaded.
        """
        begun = perf_counter()
        scope = Scope.of(Owner.of_turn(turn))
        with span("search_memory", _about(scope, turn.message)) as current:
            try:
                async with asyncio.timeout(_HANGS_S):
                    found = await self._for_turn(turn, scope, shown, reference, then, loaded)
            except (Unavailable, TimeoutError) as error:
                log.warning("recall was left out", reason=type(error).__name__)
                RECALLS_SKIPPED.labels(type(error).__name__).inc()
                found = RecallResult(degraded=["recall"])
                mark_failed(current, type(error).__name__)
            _note_found(current, found)
        seconds = perf_counter() - begun
        RECALL_SECONDS.observe(seconds)
        return replace(found, milliseconds=round(seconds * 1000, 1))

    async def _for_turn(
        self,
        turn: OpenTurn,
        scope: Scope,
        shown: Sequence[HistoryMessage],
        reference: TimeReference | None,
        named: tuple[datetime, datetime] | None,
        loaded: Loaded | None,
    ) -> RecallResult:
        said = [
            Utterance(each["role"], each["content"][:_MOST_SAID], each.get("speaker") or "")
            for each in shown[-_RECENT_MESSAGES:]
        ]
        query = None if is_small_talk(turn.message) else make_query(turn.message, said, speaker=turn.speaker)
        if query is None:
            return RecallResult()
        if named:
            then: Scope | None = replace(scope, since=named[0], until=named[1])
        else:
            then = await _narrowed(scope, turn.message, turn.now, turn.timezone) if query.asks else None
        kept = loaded or await self._sets.of(scope, turn.memory_generation)
        shown_since = shown[0]["created_at"] if shown else None
        return await self._find(
            then if then is not None and reference is not None and reference["plain"] else scope,
            query,
            kept=kept,
            indexed=kept is None or kept.units.has_elsewhere(turn.conversation_id, shown_since),
            patience_s=self._budget_s,
            then=then,
            about_past=reference is not None or (kept is not None and _names_one(query, kept.units.participants)),
            depth=_DEPTH_OF_A_TURN,
        )

    async def search(
        self,
        scope: Scope,
        query: str,
        *,
        now: datetime,
        timezone: str | None = None,
        said: Sequence[Utterance] = (),
        speaker: str = "",
        depth: int = _DEPTH,
    ) -> RecallResult:
        """Search a user's memory for a text, without an overall time limit.

        Args:
            scope: the owner of the memory, and the part to search.
            now: the day that "yesterday" is counted from.
            timezone: the user's; with it, a day that the query names narrows the search to that day, if there is
                anything on it, and what was said in a longer time that it names comes before the like.
            said: the preceding messages, newest last.
            speaker: who asks, named as in the index; or empty.
            depth: how many units are wanted.
        """
        begun = perf_counter()
        sought = make_query(query, said, speaker=speaker)
        narrow = await _narrowed(scope, query, now, timezone) if timezone and sought and sought.asks else None
        found = RecallResult()
        with span("search_memory", _about(scope, query)) as current:
            kept = await (self._sets.at(scope) if scope.as_of else self._sets.of(scope, None))
            for within in (narrow if _is_a_day(narrow) else None, scope):
                if within is not None and sought and not found.ranking.results:
                    found = await self._find(within, sought, kept=kept, then=narrow, depth=depth)
            _note_found(current, found)
        found = found.without(scope.without)
        return replace(found, milliseconds=round((perf_counter() - begun) * 1000, 1))

    async def _find(
        self,
        scope: Scope,
        query: Query,
        *,
        kept: Loaded | None,
        indexed: bool = True,
        patience_s: float | None = None,
        then: Scope | None = None,
        about_past: bool = False,
        depth: int = _DEPTH,
    ) -> RecallResult:
        """Find and rank units. Those within `then`, a part of the scope, come first."""
        degraded: list[str] = list(kept.degraded) if kept else []
        vectors = await self._vectors(query, degraded, patience_s) if indexed else _NO_VECTORS
        heads = Heads.of(self._embedder.model)
        kind = kind_of(vectors, heads)
        floor = Floor.of(
            query,
            about_past=about_past,
            kind=kind,
            then=(then.since, then.until)
            if then is not None and then.since and then.until and (about_past or _is_a_day(then))
            else None,
        )
        sought = SearchRequest(
            scope=scope,
            then=then if then != scope else None,
            query=query,
            vectors=vectors,
            heads=heads,
            kind=kind,
            depth=depth,
            hurried=patience_s is not None,
            least=0.0 if patience_s is None or about_past or then else floor.likelihood,
        )
        if kept and kept.is_bare and len(vectors):
            await self._embed_nearest(kept.units, sought)
        found = await (find_in_set(kept.units, sought, self._episodes) if kept else self._by_index.find(sought))
        degraded.extend(name for name in found.degraded if name not in degraded)
        return RecallResult(
            query,
            found.ranking,
            found.units,
            degraded,
            loading_milliseconds=kept.milliseconds if kept else 0.0,
            message_vector=vectors[0] if len(vectors) else None,
            floor=floor,
        )

    async def _embed_nearest(self, units: WorkingSet, sought: SearchRequest) -> None:
        """Embed the units that are nearest by words and have no embedding; used until the index provides all
        embeddings."""
        _, wanted = best_of(units, replace(sought, vectors=_NO_VECTORS, depth=_EMBEDDED))
        missing = {each.unit_id: each for each in wanted if not units.is_embedded(UUID(each.unit_id))}
        stored = await self._episodes.found(
            sought.scope, [(each.unit_id, each.episode_id) for each in missing.values()]
        )
        texts = {
            (each.unit_id, missing[unit_id].passage): embedded_text(
                each.role, each.speaker, passage(each.text, missing[unit_id].passage).strip("…")
            )
            for unit_id, each in stored.items()
        }
        vectors = await self._embedder.embed_soon([*texts.values()]) if texts else None
        if vectors is not None:
            units.embed(dict(zip(texts, vectors, strict=True)))

    async def _vectors(self, query: Query, degraded: list[str], patience_s: float | None) -> Vectors:
        if self._embedder.by_words_alone:
            return _NO_VECTORS
        try:
            if self._embedder.is_loading:  # in the first second after the start
                patience_s = _EMBEDDING_S
            async with Patience(_EMBEDDING_S if patience_s is None else patience_s):
                return query.vectors(await self._embedder.embed_queries(query.embedded))
        except (Unavailable, TimeoutError):
            degraded.append("embedding")
            return _NO_VECTORS


def _about(scope: Scope, query: str) -> Attributes:
    return {
        names.OPERATION: "search_memory",
        names.MEMORY_STORE: f"{scope.tenant_id}/{scope.expert_id}",
        names.MEMORY_QUERY: query if TRACING.shows_content else None,
    }


def _note_found(current: Span, found: RecallResult) -> None:
    if current.is_recording():
        current.set_attribute(names.MEMORY_RECORDS, len(found.ranking.results))
        current.set_attribute(names.DEGRADED, found.degraded)


def _names_one(query: Query, participants: Collection[str]) -> bool:
    """Return whether a question names another participant. Such a question is about what was said, like a question
    about a day."""
    if not participants or not query.asks:
        return False
    text = query.text[:_LONGEST_QUESTION].casefold()
    words = frozenset(terms(text))
    return any(
        words.issuperset(named) if name.isascii() else name.casefold() in text
        for name in participants
        if (named := terms(name))
    )


def _is_a_day(scope: Scope | None) -> bool:
    return bool(scope and scope.since and scope.until and scope.until - scope.since <= _A_DAY)


async def _narrowed(scope: Scope, text: str, now: datetime, timezone: str) -> Scope | None:
    """Return the scope narrowed to the time that a question names; None if it names no time, or a future one."""
    if scope.since or scope.until:
        return None
    if len(text) > _LONGEST_QUESTION:
        return None
    today = local_day(now, timezone)
    days = await beside_the_loop(lambda: named_days(text, today), characters=len(text), most=_LONG)
    if days is None or days[0] > today:
        return None
    since, until = bounds(*days, timezone)
    return replace(scope, since=since, until=until)
