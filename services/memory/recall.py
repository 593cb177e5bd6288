"""Recall: what of all that was ever said bears on a message. Every way to a user's memory goes through here.

The index answers with ids; what is ranked and shown is read from PostgreSQL, so that nothing that was removed,
or is somebody else's, can come up. What is not indexed yet is ranked beside it by its words.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import perf_counter
from uuid import UUID

import structlog

from services.errors import Unavailable
from services.llm.embeddings import Embedder
from services.llm.language import Language, language_of
from services.memory.embedding_quality import EmbeddingQuality, cosine_floor, measured, probe_texts, weights
from services.memory.episode import StoredUnit
from services.memory.episodes import EpisodeStore
from services.memory.hits import Ranking, SearchLeg, SearchList, Unit
from services.memory.index import EpisodeIndex, Scope, UnitHit
from services.memory.marks import marked, sought_terms
from services.memory.parameters import SEARCH_DEPTH, RankingParameters
from services.memory.queries import (
    RecallQuery,
    Said,
    asks,
    asks_in_general,
    asks_of_oneself,
    is_about_the_assistant,
    is_small_talk,
    make_queries,
)
from services.memory.ranking import rank
from services.memory.selection import Floor
from services.memory.terms import terms
from services.platform.metrics import RECALL_SECONDS
from services.platform.milvus import CollectionMissing
from services.time_reference.days import named_day
from services.time_reference.local_days import bounds, local_day

_RECENT_MESSAGES = 6
_TRUSTED = 0.5
_DEPTH_OF_A_WEAK_EMBEDDING = 40
"""Units that it may add to what was found by words."""
_EMBEDDING_S = 5.0
"""For which a search outside of a turn waits for the embeddings."""
_LEFT_FOR_SEARCH, _LEFT_FOR_RANKING = 0.4, 0.2
"""Shares of a turn's budget: what is late is left out while there is time for the rest."""
_PREFERRED = 1.5
"""Times its score counts what was said in the time that a message refers to."""
_ASSISTANTS = frozenset(["assistant", "ai", "bot", "chatbot", "助手", "ai助手", "机器人", "智能助手"])
"""How imports name an assistant; another name is that of a person."""
_NOTHING = Ranking((), 0.0)
_USUAL = Floor.of(asks=True)

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class TurnAsked:
    """For which turn is recalled."""

    scope: Scope
    conversation_id: UUID
    message_id: UUID
    message: str
    now: datetime
    timezone: str
    """The user's: a day that the message names is a local one."""
    since: datetime | None = None
    """The time that the message refers to, if that is known: what was said then comes first."""
    until: datetime | None = None
    only_then: bool = False
    """Whether it asks for that time and nothing else: then nothing else is recalled."""
    about_past: bool = False
    """Whether the message refers to what was said before, at whatever time."""


@dataclass(frozen=True)
class RecallResult:
    """What a recall found."""

    queries: Sequence[RecallQuery] = ()
    ranking: Ranking = _NOTHING
    units: Mapping[str, StoredUnit] = field(default_factory=dict)
    """What was ranked, by the unit's id."""
    degraded: Sequence[str] = ()
    """`milvus` or `embedding`: what did not answer; then the rest was searched. `recall`: none of it was."""
    milliseconds: float = 0.0
    message_vector: Sequence[float] | None = None
    """The embedding of the message, where one was made."""
    floor: Floor = _USUAL
    """From where on something is relevant at all."""


class Recall:
    """Finds episodes for a message."""

    def __init__(
        self,
        episodes: EpisodeStore,
        index: EpisodeIndex,
        embedder: Embedder,
        *,
        budget_s: float,
        parameters: RankingParameters | None = None,
    ) -> None:
        """Take how many seconds a turn gives to recall."""
        self._episodes = episodes
        self._index = index
        self._embedder = embedder
        self._measuring: asyncio.Task[dict[Language, EmbeddingQuality]] | None = None
        self._budget_s = budget_s
        self._parameters = parameters or RankingParameters()

    async def for_turn(self, asked: TurnAsked) -> RecallResult:
        """Recall for a message in its conversation; never fails a turn: what is late or away is left out."""
        begun = perf_counter()
        try:
            async with asyncio.timeout(self._budget_s):
                situation, waiting = await self._episodes.situation(
                    asked.scope, here=asked.conversation_id, message_id=asked.message_id, recent=_RECENT_MESSAGES
                )
                said = [Said(message["role"], message["content"]) for message in situation.recent]
                queries = [] if is_small_talk(asked.message) else make_queries(asked.message, said)
                if asked.since and asked.until:
                    then: Scope | None = replace(asked.scope, since=asked.since, until=asked.until)
                else:
                    then = _narrowed(asked.scope, asked.message, asked.now, asked.timezone)
                scope = asked.scope
                if then is not None and asked.only_then:
                    scope = then
                    waiting = await self._episodes.unindexed(scope)
                indexed = situation.indexed_elsewhere
                ends = begun + self._budget_s
                found = await self._find(
                    scope,
                    queries,
                    waiting,
                    asked.now,
                    indexed=indexed,
                    ends=ends,
                    then=then,
                    about_past=asked.about_past,
                )
        except (Unavailable, TimeoutError) as error:
            log.warning("recall was left out", reason=type(error).__name__)
            found = RecallResult(degraded=["recall"])
        seconds = perf_counter() - begun
        RECALL_SECONDS.observe(seconds)
        return replace(found, milliseconds=round(seconds * 1000, 1))

    async def search(
        self,
        scope: Scope,
        query: str,
        *,
        now: datetime,
        timezone: str | None = None,
        said: Sequence[Said] = (),
        speaker: str = "",
    ) -> RecallResult:
        """Search a user's memory for a text, without a time limit of our own.

        Args:
            scope: whose memory, and which part of it.
            query: what is looked for.
            now: from which age is counted.
            timezone: the user's; with it, a day that the query names narrows the search to that day, if there
                is anything of it.
            said: what was said just before, the newest last.
            speaker: who asks, as in what is indexed; or empty.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        begun = perf_counter()
        queries = make_queries(query, said, speaker=speaker)
        narrow = _narrowed(scope, query, now, timezone) if timezone else None
        found = RecallResult()
        for within in (narrow, scope):
            if within is not None and not found.ranking.results:
                waiting = await self._episodes.unindexed(within)
                found = await self._find(within, queries, waiting, now, indexed=True)
        return replace(found, milliseconds=round((perf_counter() - begun) * 1000, 1))

    async def close(self) -> None:
        """Stop what goes on behind recalls."""
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.wait({self._measuring})

    async def _find(
        self,
        scope: Scope,
        queries: Sequence[RecallQuery],
        waiting: Sequence[StoredUnit],
        now: datetime,
        *,
        indexed: bool,
        ends: float | None = None,
        then: Scope | None = None,
        about_past: bool = False,
    ) -> RecallResult:
        """Find and rank; what is within `then`, a part of the scope, is searched for as well and comes first."""
        if not queries:
            return RecallResult()
        degraded: list[str] = []
        lists: list[SearchList] = []
        hits: dict[str, UnitHit] = {}
        quality: Mapping[Language, EmbeddingQuality] = {}
        vectors: list[list[float]] = []
        if indexed:
            quality = await self.embedding_quality()
            # Until it is known what the embedding is good for, it is asked: then it is known that it answers.
            known = weights(quality)
            most = max(known.get(language, 0.0) for language in _languages(queries)) if known else _TRUSTED
            vectors = await self._vectors(queries, degraded, ends) if most > 0 else []
            searches = [
                self._search(within, queries, vectors, degraded, ends, trusted=most >= _TRUSTED)
                for within in dict.fromkeys((scope, then))
                if within is not None
            ]
            lists, hits = _together(await asyncio.gather(*searches))
            if "milvus" in degraded:
                waiting = await self._episodes.unindexed(scope)
        episodes = await self._episodes.found(scope, ((hit.unit_id, hit.episode_id) for hit in hits.values()))
        stored = {str(unit.unit_id): unit for unit in episodes.values()}
        units = [_unit(unit, hits[name].terms, indexed=True) for name, unit in stored.items()]
        for unit in waiting:
            if str(unit.unit_id) not in stored:
                stored[str(unit.unit_id)] = unit
                units.append(_unit(unit, (), indexed=False))
        ranking = rank(queries, lists, units, now=now, quality=weights(quality), parameters=self._parameters)
        if then is not None:
            ranking = _preferring(ranking, then)
        language = language_of([queries[0].text])
        floor = Floor.of(
            asks=about_past or asks(queries[0].text, language),
            of_oneself=asks_of_oneself(queries[0].text, language),
            may_be_of_oneself=language == "zh" and not asks_in_general(queries[0].text),
            of_assistant=is_about_the_assistant(queries[0].text, language),
            cosine=cosine_floor(quality, language),
            then=(then.since, then.until) if then is not None and then.since and then.until else None,
        )
        message_vector = vectors[0] if vectors else None
        return RecallResult(queries, ranking, stored, degraded, message_vector=message_vector, floor=floor)

    async def embedding_quality(self) -> Mapping[Language, EmbeddingQuality]:
        """How good the embedding is for each language; not known before it has answered once."""
        if self._measuring is None or (self._measuring.done() and self._measuring.exception()):
            self._measuring = asyncio.create_task(self._measure(), name="embedding quality")
        await asyncio.wait({self._measuring}, timeout=self._budget_s / 3)
        done = self._measuring.done() and not self._measuring.cancelled() and not self._measuring.exception()
        return self._measuring.result() if done else {}

    async def _measure(self) -> dict[Language, EmbeddingQuality]:
        return measured(await self._embedder.embed(probe_texts()))

    async def _vectors(
        self, queries: Sequence[RecallQuery], degraded: list[str], ends: float | None
    ) -> list[list[float]]:
        patience_s = _EMBEDDING_S if ends is None else ends - perf_counter() - _LEFT_FOR_SEARCH * self._budget_s
        try:
            async with asyncio.timeout(patience_s):
                vectors = await self._embedder.embed([query.text for query in queries])
        except (Unavailable, TimeoutError):
            degraded.append("embedding")
            return []
        return vectors

    async def _search(
        self,
        scope: Scope,
        queries: Sequence[RecallQuery],
        vectors: Sequence[Sequence[float]],
        degraded: list[str],
        ends: float | None,
        *,
        trusted: bool,
    ) -> tuple[list[SearchList], dict[str, UnitHit]]:
        words = [sought_terms(query.text) if query.kind == "message" else terms(query.text) for query in queries]
        dense = SEARCH_DEPTH if trusted else _DEPTH_OF_A_WEAK_EMBEDDING
        within_s = None if ends is None else ends - perf_counter() - _LEFT_FOR_RANKING * self._budget_s
        try:
            by_words, by_meaning = await self._index.search(
                scope, words, vectors, SEARCH_DEPTH, dense_limit=dense, within_s=within_s
            )
        except CollectionMissing:  # it was lost, or nothing of the user was ever in it
            if await self._episodes.index_again(scope.tenant_id, scope.user_id):
                _note(degraded, "milvus")
            return [], {}
        except Unavailable:
            _note(degraded, "milvus")
            return [], {}
        lists = [*_lists("lexical", by_words), *_lists("dense", by_meaning)]
        return lists, {str(hit.unit_id): hit for found in (*by_words, *by_meaning) for hit in found}


def _note(degraded: list[str], source: str) -> None:
    if source not in degraded:
        degraded.append(source)


def _together(
    found: Iterable[tuple[Sequence[SearchList], Mapping[str, UnitHit]]],
) -> tuple[list[SearchList], dict[str, UnitHit]]:
    """What searches with the same queries found in several scopes; a unit has the same score in each."""
    scores: dict[tuple[int, SearchLeg], dict[str, float]] = {}
    hits: dict[str, UnitHit] = {}
    for lists, found_there in found:
        hits |= found_there
        for each in lists:
            scores.setdefault((each.query, each.leg), {}).update(each.scores)
    return [SearchList(query, leg, of) for (query, leg), of in scores.items()], hits


def _preferring(ranking: Ranking, then: Scope) -> Ranking:
    """The ranking with what was said in that time before what is about as relevant.

    It is a preference, as people err about days: "last week" may have been on Thursday.
    """
    assert then.since is not None and then.until is not None  # noqa: S101, PT018 — a time has both
    weighed = [
        replace(each, score=each.score * _PREFERRED) if then.since <= each.unit.created_at < then.until else each
        for each in ranking.results
    ]
    ordered = sorted(weighed, key=lambda each: -each.score)
    return replace(
        ranking, results=tuple(replace(each, position=place) for place, each in enumerate(ordered, start=1))
    )


def _narrowed(scope: Scope, text: str, now: datetime, timezone: str) -> Scope | None:
    """The scope on the one day that a question names; None where it names none, or one that is to come."""
    if scope.since or scope.until or not asks(text, language_of([text])):
        return None
    today = local_day(now, timezone)
    day = named_day(text, today)
    if day is None or day > today:
        return None
    since, until = bounds(day, day, timezone)
    return replace(scope, since=since, until=until)


def _languages(queries: Sequence[RecallQuery]) -> set[Language]:
    return {language_of([query.text]) for query in queries}


def _lists(leg: SearchLeg, found: Iterable[Sequence[UnitHit]]) -> list[SearchList]:
    return [
        SearchList(place, leg, {str(hit.unit_id): hit.score for hit in hits}) for place, hits in enumerate(found)
    ]


def _unit(unit: StoredUnit, words: Sequence[str], *, indexed: bool) -> Unit:
    known = marked(words, unit.text, unit.speaker, unit.role)
    return Unit(
        id=str(unit.unit_id),
        episode_id=str(unit.episode_id),
        conversation_id=str(unit.conversation_id or ""),
        created_at=unit.created_at,
        text=unit.text,
        terms=known.terms,
        previous=str(unit.previous_id) if unit.previous_id else None,
        message_id=str(unit.message_id) if unit.message_id else None,
        episode_type=unit.episode_type,
        importance=unit.importance,
        indexed=indexed,
        by_assistant=unit.role == "assistant" and (unit.speaker or "assistant").lower() in _ASSISTANTS,
        concepts=known.concepts,
        features=known.features,
        sources=frozenset() if unit.message_id else frozenset(map(str, unit.source_message_ids)),
    )
