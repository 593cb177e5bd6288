"""Makes indexes of another embedding model, or of an older version, anew while they are in use."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from services.errors import Unavailable
from services.platform.postgres import Database

if TYPE_CHECKING:
    from services.knowledge.wiring import Knowledge
    from services.memory.wiring import Memory

_RENEWING = "renew_indexes"
"""Lock of the process that makes them anew."""
_LOOK_AGAIN_S, _LOOK_FOR_OTHERS_S = 1.0, 30.0
"""Seconds until the next look where Milvus did not answer, and where another process makes them anew."""

log = structlog.get_logger(__name__)


@dataclass
class Progress:
    """How many episodes and passages are in the new indexes, of how many."""

    done: int = 0
    total: int = 0


class IndexRenewal:
    """Makes the indexes of memories and knowledge bases anew from PostgreSQL.

    Until an index is whole, what it held before is found by its words alone.
    """

    def __init__(self, database: Database, memory: "Memory", knowledge: "Knowledge", *, episodes: bool) -> None:
        """Take the services; `episodes` tells whether memories are indexed at all."""
        self._database = database
        self._memory = memory
        self._knowledge = knowledge
        self._episodes = episodes
        self.progress: Progress | None = None
        """None = this process makes none anew."""

    @property
    def is_due(self) -> bool:
        """Whether the last look found an index of another model or an older version."""
        return self._memory.index.is_outdated or self._knowledge.index.is_outdated

    async def look(self) -> bool:
        """Look at the indexes; return whether one is to be made anew.

        Raises:
            Unavailable: Milvus does not answer.
        """
        if self._episodes:
            await self._memory.index.check()
        await self._knowledge.index.check()
        return self.is_due

    async def keep_current(self) -> None:
        """Look until the indexes are current, and make them anew if no other process does."""
        while True:
            try:
                if not await self.look():
                    return
                async with self._database.only_one(_RENEWING) as alone:
                    if alone:
                        await self._renew_logged()
                        return
                await asyncio.sleep(_LOOK_FOR_OTHERS_S)
                self._memory.working_sets.clear()  # they hold no embeddings of the new model
            except Unavailable as error:
                log.info("the indexes are looked at again", reason=error.message)
                await asyncio.sleep(_LOOK_FOR_OTHERS_S if self.is_due else _LOOK_AGAIN_S)

    async def renew(
        self, on_episodes: Callable[[int], None], on_passages: Callable[[int], None]
    ) -> tuple[int, int]:
        """Make both anew; return the numbers of episodes and passages.

        Args:
            on_episodes: called with the number of further episodes indexed.
            on_passages: the same of passages.

        Raises:
            Unavailable: a store or the embedding endpoint does not answer; what was there is still in use.
        """
        counts = (
            await self._memory.indexing.rebuild(on_episodes),
            await self._knowledge.indexing.rebuild(on_passages),
        )
        self._memory.working_sets.clear()
        return counts

    async def count(self) -> tuple[int, int]:
        """Count the episodes and passages that there are to index.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        return await self._memory.indexing.count(), await self._knowledge.indexing.count()

    async def _renew_logged(self) -> None:
        self.progress = progress = Progress(total=sum(await self.count()))

        def advance(more: int) -> None:
            progress.done += more

        log.warning("the indexes are made anew; until then recall goes by words", items=progress.total)
        try:
            episodes, passages = await self.renew(advance, advance)
            await self.look()
        finally:
            self.progress = None
        log.warning("the indexes were made anew", episodes=episodes, passages=passages)
