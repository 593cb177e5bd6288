"""The events of a user as they happen: kinds and ids, resumable by number, for readers in this process."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.errors import DatabaseUnavailable
from services.platform.postgres import Database

EventKind = Literal["promise.due", "memory.changed", "proposal.waiting", "turn.failed", "erasure.done"]
_CHANNEL = "anamnesis_events"
_AT_ONCE = 100
_LOOK_S = 10.0
"""Seconds after which a reader looks by itself, in case a notification is lost."""
_RECONNECT_S = 1.0

_AFTER: LiteralString = """
SELECT id, kind, about, at FROM user_events
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
"""
_NEWEST: LiteralString = """
SELECT coalesce(max(id), 0) FROM user_events WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
"""


@dataclass(frozen=True)
class UserEvent:
    """Something that happened to a user; events are kept for a week."""

    id: int
    kind: EventKind
    about: dict[str, Any]
    """Ids of what it is about."""
    at: datetime


class EventFeed:
    """Reads events, and wakes the readers of this process when there are new ones."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._readers: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._listening: asyncio.Task[None] | None = None

    async def newest(self, tenant_id: UUID, user_id: UUID) -> int:
        """Return the number of a user's newest event; 0 = there is none."""
        values = {"tenant_id": tenant_id, "user_id": user_id}
        return int((await self._database.fetch(tenant_id, _NEWEST, values, tuple_row))[0][0])

    async def after(self, tenant_id: UUID, user_id: UUID, number: int) -> Sequence[UserEvent]:
        """Return the events after a number, in order."""
        values = {"tenant_id": tenant_id, "user_id": user_id, "after": number, "limit": _AT_ONCE}
        return await self._database.fetch(tenant_id, _AFTER, values, class_row(UserEvent))

    async def follow(
        self, tenant_id: UUID, user_id: UUID, number: int
    ) -> AsyncGenerator[Sequence[UserEvent], None]:
        """Yield the events after a number as they come, without end; empty where nothing came for a while."""
        with self._reader(str(user_id)) as woken:
            while True:
                woken.clear()
                found = await self.after(tenant_id, user_id, number)
                yield found
                if found:
                    number = found[-1].id
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await woken.wait()

    async def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
            self._listening = None

    @contextmanager
    def _reader(self, user_id: str) -> Iterator[asyncio.Event]:
        woken = asyncio.Event()
        self._readers[user_id].add(woken)
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen(), name="events of users")
        try:
            yield woken
        finally:
            self._readers[user_id].discard(woken)
            if not self._readers[user_id]:
                del self._readers[user_id]
            if not self._readers and self._listening is not None:
                self._listening.cancel()
                self._listening = None

    async def _listen(self) -> None:
        while True:
            with suppress(DatabaseUnavailable):
                async with aclosing(self._database.notifications(_CHANNEL)) as notifications:
                    async for user_id in notifications:  # the first one is empty: it listens
                        for readers in [self._readers.get(user_id, ())] if user_id else [*self._readers.values()]:
                            for woken in readers:
                                woken.set()
            await asyncio.sleep(_RECONNECT_S)
