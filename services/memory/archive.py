"""The archive: a user's episodes as callers and models use them, searched, written, changed and removed.

Every change is logged in the transaction that makes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from services.errors import NotFound
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import (
    EpisodeStore,
    EpisodeType,
    NewEpisode,
    Scope,
    Source,
    StoredUnit,
    checked_content,
    sources_of,
)
from services.memory.operations import Operation, OperationLog, Trigger
from services.memory.recall.recall import Recall
from services.memory.removal.tables import Rows
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import Database
from services.search.hits import Ranked, Ranking
from services.search.queries import Utterance
from services.search.selection import LIKELY, by_episode

_DEPTH = 2
"""Multiple of `top_k` units that are searched, so that `top_k` episodes are found even where several units belong
to one."""


@dataclass(frozen=True)
class FoundEpisode:
    """An episode that was found, with the messages by which it was found."""

    id: UUID
    content: str
    """Text of a written memory; for a turn, what was said, with the speakers."""
    episode_type: EpisodeType
    importance: float
    score: float
    """Score of the ranking; comparable within one search only."""
    created_at: datetime
    sources: list[Source]
    """Messages that it comes from, in order; for a turn, only those relevant to the query."""
    conversation_id: UUID | None
    likelihood: float
    """Probability that it is relevant to the query, 0 to 1."""
    weak: bool
    """Whether it is merely the nearest one. A prompt would not show it without being asked."""
    ranks: dict[str, int]
    """Rank, from 1, of its best part in each list that found it."""


@dataclass(frozen=True)
class FoundEpisodes:
    """Episodes that a search found, best first."""

    items: list[FoundEpisode]
    degraded: list[str]
    """Stores that did not answer: `milvus`, `embedding`. Everything else was searched."""


class Archive:
    """A user's episodes."""

    def __init__(self, database: Database, episodes: EpisodeStore, recall: Recall, log: OperationLog) -> None:
        self._database = database
        self._episodes = episodes
        self._recall = recall
        self._log = log

    async def search(
        self,
        scope: Scope,
        query: str,
        *,
        top_k: int,
        now: datetime,
        timezone: str | None = None,
        said: Sequence[Utterance] = (),
        speaker: str = "",
    ) -> FoundEpisodes:
        """Return the `top_k` best episodes for a query, found as a turn recalls. With `scope.as_of`, search what
        was remembered at that moment."""
        if timezone is None:
            timezone = await self._episodes.timezone(scope.tenant_id, scope.user_id)
        recalled = await self._recall.search(
            scope, query, now=now, timezone=timezone, said=said, speaker=speaker, depth=_DEPTH * top_k
        )
        # Only the first units count: a message that ranks much lower must not stand beside a better one.
        best = by_episode(recalled.ranking, top_k)
        gathered = {one.episode_id for one in best}
        later = by_episode(Ranking(recalled.ranking.results[top_k:]), _DEPTH * top_k)
        best = (*best, *(one for one in later if one.episode_id not in gathered))[:top_k]
        chosen = [([recalled.units[each.unit.id] for each in one.units], one.best) for one in best]
        written = [unit for units, _ in chosen for unit in units if unit.message_id is None]
        ids = [message_id for unit in written for message_id in unit.source_message_ids]
        sources = await sources_of(self._database, scope.tenant_id, ids, user_id=scope.user_id, at=scope.as_of)
        items = [_found(units, ranked, sources) for units, ranked in chosen]
        return FoundEpisodes(items, list(recalled.degraded))

    @again_if_contended
    async def note_search(self, owner: Owner, query: str, found: Sequence[UUID], trigger: Trigger) -> None:
        """Log that a tool searched, with the ids of the episodes that it returned."""
        results = [str(episode_id) for episode_id in found]
        operation = Operation("archival_memory_search", query=query.replace("\x00", ""), results=results)
        async with self._database.tenant(owner.tenant_id) as connection:
            await self._append(connection, owner, operation, trigger)

    async def supersede(
        self, connection: Connection, owner: Owner, episode_id: UUID, by: UUID, trigger: Trigger
    ) -> UUID | None:
        """Supersede a written memory, because another memory or a section of core memory replaces it.

        It stays stored, and the log shows it. Turns are never superseded, because what was said stays said; pinned
        memories are not either.

        Returns:
            The operation that can be undone; None = nothing was changed.
        """
        content = await self._episodes.supersede(connection, owner, episode_id, by)
        if content is None:
            return None
        old, new = {"content": content}, {"superseded_by": str(by)}
        operation = Operation("episode_supersede", field=str(episode_id), old_value=old, new_value=new)
        return await self._append(connection, owner, operation, trigger)

    @again_if_contended
    async def insert(self, owner: Owner, new: NewEpisode, trigger: Trigger) -> UUID:
        """Write a memory; return its id. Raises `InvalidInput` if its content is empty or too long."""
        new = replace(new, content=checked_content(new.content))
        logged = {
            "content": new.content,
            "importance": new.importance,
            "origin": new.origin,
            "source_message_ids": [str(message_id) for message_id in new.source_message_ids],
        }
        async with self._database.tenant(owner.tenant_id) as connection:
            episode_id = await self._episodes.add(connection, owner, new, trigger)
            value = {"id": str(episode_id), **logged}
            operation = Operation("episode_insert", field=new.episode_type, new_value=value)
            await self._append(connection, owner, operation, trigger)
        return episode_id

    async def remove(self, owner: Owner, episode_id: UUID, trigger: Trigger) -> None:
        """Remove an episode together with the memories merged from it or into it; memories that it had superseded
        from other sources come back. The messages of a turn stay in their conversation. Raises `NotFound` if there
        is no such episode."""

        async def removed(connection: Connection) -> None:
            gone = await Rows(connection, vars(owner)).remove_with_merged(episode_id)
            if not gone:
                raise NotFound(f"There is no episode {episode_id}.")
            await self._episodes.leave_index(connection, owner.tenant_id, owner.user_id, gone)
            # The log does not keep the removed words.
            operation = Operation("episode_delete", field=str(episode_id))
            await self._append(connection, owner, operation, trigger)

        await self._database.transact(owner.tenant_id, removed)

    async def _append(self, connection: Any, owner: Owner, operation: Operation, trigger: Trigger) -> UUID:
        whose = replace(trigger, expert_id=trigger.expert_id or owner.expert_id, space_id=owner.space_id)
        return await self._log.append(connection, owner.tenant_id, owner.user_id, operation, whose)


def said_by(unit: StoredUnit) -> str:
    """Return a unit's text with its speaker; a written memory unchanged."""
    return f"{unit.speaker or unit.role}: {unit.text}" if unit.message_id else unit.text


def _found(units: Sequence[StoredUnit], best: Ranked, sources: dict[UUID, Source]) -> FoundEpisode:
    first = units[0]
    own = [
        Source(unit.message_id, unit.external_id, unit.role, unit.text, unit.speaker, unit.created_at)
        for unit in units
        if unit.message_id
    ]
    theirs = [sources[message_id] for message_id in first.source_message_ids if message_id in sources]
    return FoundEpisode(
        id=first.episode_id,
        content="\n".join(said_by(unit) for unit in units),
        episode_type=first.episode_type,
        importance=first.importance,
        score=round(best.score, 6),
        created_at=first.created_at,
        sources=own or theirs,
        conversation_id=first.conversation_id,
        likelihood=round(best.likelihood, 3),
        weak=best.likelihood < LIKELY,
        ranks=best.ranks,
    )
