"""The vectors of items: made in the background right after a write, once for each owner, beside all other work."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any
from uuid import UUID

import structlog
from psycopg.rows import args_row, tuple_row

from services.encryption.marks import Words
from services.errors import Unavailable
from services.llm.embeddings import Embedder
from services.platform.patience import beside_the_loop
from services.platform.postgres import Database
from services.store import sql
from services.store.matching import packed, texts_of
from services.store.model import StoreOwner

_AT_ONCE = 64
"""Items that are read, and whose vectors are stored, together."""
_ALONE, _BESIDE = 4, 2
"""Texts that an encoder in this process takes at a time, while nobody else is served, and while somebody is."""
_RECENT_S, _SHARE = 1.0, 1.0
"""Seconds for which somebody counts as being served, and the pause then, in the time that was taken."""
_LONG_TEXT = 100_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _New:
    """In the order of the statement's columns."""

    id: UUID
    operation_id: UUID
    index_paths: list[str] | None
    value: str


class VectorIndexing:
    """Makes the vectors that items lack: one task for each owner, whoever waits for it and whoever gives up."""

    def __init__(self, database: Database, embedder: Embedder, served_at: Callable[[], float]) -> None:
        """Take what tells when somebody was served last, in seconds of a clock that nobody can set."""
        self._database = database
        self._embedder = embedder
        self._served_at = served_at
        self._resume_at = 0.0
        self._tasks: dict[StoreOwner, asyncio.Task[bool]] = {}
        self._again: set[StoreOwner] = set()
        self._step = asyncio.Lock()

    def begin(self, owner: StoreOwner) -> "asyncio.Task[bool]":
        """Begin with what an owner's items lack now, or let the task that runs look once more. Its result is
        whether the encoder answered."""
        if (running := self._tasks.get(owner)) is not None:
            self._again.add(owner)
            return running
        task = asyncio.create_task(self._run(owner), name="vectors of the store")
        self._tasks[owner] = task
        return task

    async def close(self) -> None:
        """Stop; what lacks vectors gets them after the next write or search."""
        for task in (running := list(self._tasks.values())):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, owner: StoreOwner) -> bool:
        try:
            while True:
                self._again.discard(owner)
                while new := await self._missing(owner):
                    await self._make(owner, new)
                if owner not in self._again:
                    return True
        except Unavailable as error:
            log.warning("items of the store get no vectors now", reason=type(error).__name__)
            return False
        finally:
            del self._tasks[owner]
            self._again.discard(owner)

    async def _missing(self, owner: StoreOwner) -> list[_New]:
        values = {**vars(owner), "embedded_by": self._embedder.model, "limit": _AT_ONCE}
        return await self._database.fetch(owner.tenant_id, sql.MISSING, values, args_row(_New))

    async def _make(self, owner: StoreOwner, new: Sequence[_New]) -> None:
        read = partial(lambda: [texts_of(json.loads(each.value), each.index_paths) for each in new])
        texts = await beside_the_loop(read, characters=sum(len(each.value) for each in new), most=_LONG_TEXT)
        made = iter(await self._embedded([text for of_item in texts for text in of_item]))
        # What has no text gets an empty vector, and is not looked at again.
        vectors = [Words(packed([next(made) for _ in of_item])) for of_item in texts]
        values = {
            "tenant_id": owner.tenant_id,
            "user": owner.user,
            "embedded_by": self._embedder.model,
            "ids": [each.id for each in new],
            "operation_ids": [each.operation_id for each in new],
            "vectors": vectors,
        }
        await self._database.fetch(owner.tenant_id, sql.KEEP_VECTORS, values, tuple_row)

    async def _embedded(self, texts: Sequence[str]) -> list[Any]:
        """Return the vectors of texts; an encoder in this process takes a few at a time, and others go first."""
        if not self._embedder.computes_here:
            return list(await self._embedder.embed_documents(texts))
        vectors: list[Any] = []
        while some := texts[len(vectors) : len(vectors) + (_BESIDE if self._serves_others else _ALONE)]:
            async with self._step:
                if (pause_s := self._resume_at - monotonic()) > 0 and self._serves_others:
                    await asyncio.sleep(pause_s)
                begun = monotonic()
                vectors += await self._embedder.embed_documents(some)
                self._resume_at = monotonic() + _SHARE * (monotonic() - begun)
            await asyncio.sleep(0)
        return vectors

    @property
    def _serves_others(self) -> bool:
        return monotonic() - self._served_at() < _RECENT_S
