"""Rebuilds indexes of another embedding model, or of an older version, while they are in use."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from services.errors import Unavailable
from services.knowledge.wiring import Knowledge
from services.memory.wiring import Memory
from services.platform.embedded_milvus import Standby
from services.platform.postgres import Database

_REBUILDING = "rebuild_indexes"
"""Lock of the process that rebuilds the indexes."""
_LOOK_AGAIN_S, _LOOK_FOR_OTHERS_S = 1.0, 30.0
"""Seconds until the next look if Milvus did not answer, and if another process rebuilds the indexes."""

log = structlog.get_logger(__name__)


@dataclass
class Progress:
    """Number of episodes and passages that have been indexed, and their total."""

    done: int = 0
    total: int = 0


class IndexRebuild:
    """Rebuilds the indexes of memories and knowledge bases from PostgreSQL. Until a new index is complete,
    recall searches the old one by words alone."""

    def __init__(
        self,
        database: Database,
        memory: Memory,
        knowledge: Knowledge,
        *,
        episodes: bool,
        standby: Standby | None = None,
    ) -> None:
        """Take the services; `episodes` tells whether memories are indexed at all. A note says what an embedded
        Milvus (`standby`) was indexed with, so that it need not be started for the question."""
        self._standby = standby
        self._database = database
        self._memory = memory
        self._knowledge = knowledge
        self._episodes = episodes
        self.progress: Progress | None = None
        """Progress of this process; None = it rebuilds nothing."""

    @property
    def is_due(self) -> bool:
        """Return whether the last look found an index of another model or an older version."""
        return bool(self._memory.index.vectors.outdated or self._knowledge.index.outdated)

    async def look(self) -> bool:
        """Look at the indexes; return whether they have to be rebuilt. Raises `Unavailable` if Milvus does not
        answer."""
        if self._episodes:
            await self._memory.index.vectors.check()
        await self._knowledge.index.check()
        if not self.is_due:
            self._note()
        return self.is_due

    async def keep_current(self) -> None:
        """Look until the indexes are current, and rebuild them unless another process does."""
        if self._is_noted():
            return
        was_due = False
        while True:
            try:
                if not await self.look():
                    if was_due:  # the working sets of this process hold no embeddings of the new model
                        self._memory.working_sets.clear()
                    return
                was_due = True
                async with self._database.only_one(_REBUILDING) as alone:
                    if alone:
                        await self._rebuild_logged()
                        return
                await asyncio.sleep(_LOOK_FOR_OTHERS_S)
            except Unavailable as error:
                log.info("the indexes will be looked at again", reason=error.message)
                await asyncio.sleep(_LOOK_FOR_OTHERS_S if self.is_due else _LOOK_AGAIN_S)

    async def rebuild(
        self, on_episodes: Callable[[int], None], on_passages: Callable[[int], None], *, everything: bool = True
    ) -> tuple[int, int]:
        """Rebuild both indexes; return the numbers of episodes and passages, which the callbacks get as they grow.

        Without `everything`, only indexes that the last look found outdated are rebuilt. Raises `Unavailable` if a
        store or the embedding endpoint does not answer; the old indexes are still in use.
        """
        counts = (
            await self._memory.indexing.rebuild(on_episodes, everything=everything),
            await self._knowledge.indexing.rebuild(on_passages, everything=everything),
        )
        self._memory.working_sets.clear()
        return counts

    async def leave_to_service(self) -> tuple[int, int]:
        """Remove both indexes, which the service makes again in the background; return what is to be indexed.
        Until an item is indexed, it is found by its words. Raises `Unavailable` if a store does not answer."""
        await self._memory.indexing.begin_anew()
        await self._knowledge.indexing.begin_anew()
        self._note()
        return await self.count()

    async def count(self) -> tuple[int, int]:
        """Count the episodes and passages to index."""
        return await self._memory.indexing.count(), await self._knowledge.indexing.count()

    def _is_noted(self) -> bool:
        """Return whether the note says that all is current; an index that never existed is."""
        if self._standby is None:
            return False
        if self._standby.is_empty:
            self._note()
            return True
        try:
            return self._standby.indexed_with.read_text() == self._memory.index.vectors.made_with
        except OSError:
            return False

    def _note(self) -> None:
        if self._standby is not None:
            with suppress(OSError):  # without it, the next start asks Milvus
                self._standby.indexed_with.write_text(self._memory.index.vectors.made_with)

    async def _rebuild_logged(self) -> None:
        self.progress = progress = Progress(total=sum(await self.count()))

        def advance(more: int) -> None:
            tenths = 10 * progress.done // (progress.total or 1)
            progress.done += more
            progress.total = max(progress.total, progress.done)  # more was said meanwhile
            if 10 * progress.done // progress.total > tenths:
                log.info("the indexes are being rebuilt", done=progress.done, of=progress.total)

        log.warning("rebuilding the indexes; until then recall goes by words", items=progress.total)
        try:
            episodes, passages = await self.rebuild(advance, advance, everything=False)
            await self.look()
        finally:
            self.progress = None
        log.warning("the indexes are rebuilt", episodes=episodes, passages=passages)
