"""Copies the events of this process's turns to Redis, in batches and with a short delay."""

import asyncio
import contextlib
import time
from dataclasses import dataclass
from uuid import UUID

import structlog

from graph.turns.log import TurnLog
from services.conversations.event_log import EventLog
from services.errors import Unavailable

log = structlog.get_logger(__name__)

_BATCH_S = 0.05
_BATCH_EVENTS = 16
_SHORTEST_S = 0.01
"""Maximum number of turns whose batches are sent together."""
_RETRY_S = 0.5
_GIVE_UP_S = 30.0
"""Seconds to retry the events of an ended turn on a Redis that does not accept them."""


@dataclass(eq=False)
class _Copied:
    turn_id: UUID
    log: TurnLog
    written: int = 0
    ended_at: float = 0.0


class EventWriter:
    """One writer for all turns of the process: a flush is one round trip for any number of turns."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._turns: dict[TurnLog, _Copied] = {}
        self._logs: dict[UUID, TurnLog] = {}
        self._unwritten: set[_Copied] = set()
        self._news = asyncio.Event()
        self._full = asyncio.Event()

    def log_for(self, turn_id: UUID) -> TurnLog:
        """Return a new log that is copied from now on."""
        turn_log = TurnLog(self._note)
        self._turns[turn_log] = _Copied(turn_id, turn_log)
        self._logs[turn_id] = turn_log
        return turn_log

    def find(self, turn_id: UUID) -> TurnLog | None:
        """Return the log of a turn of this process, until all of it has been copied."""
        return self._logs.get(turn_id)

    def forget(self, turn_id: UUID) -> None:
        """Stop copying a turn that another process continues."""
        if turn_log := self._logs.pop(turn_id, None):
            self._unwritten.discard(self._turns.pop(turn_log))

    async def run(self) -> None:
        """Copy until cancelled: everything every 50 ms, and a turn with 16 events sooner."""
        while True:
            try:
                await self._wait_for_news()
                due = time.monotonic() + _BATCH_S
                while await self._is_full_before(due):
                    await asyncio.sleep(_SHORTEST_S)
                    await self._flush(at_least=_BATCH_EVENTS)
                await self._flush()
            except Unavailable:
                await asyncio.sleep(_RETRY_S)

    async def close(self) -> None:
        """Copy the rest, if Redis accepts it."""
        with contextlib.suppress(Unavailable):
            await self._flush()

    def _note(self, turn_log: TurnLog) -> None:
        if (copied := self._turns.get(turn_log)) is None:
            return
        self._unwritten.add(copied)
        self._news.set()
        if turn_log.ended:
            copied.ended_at = time.monotonic()
        if len(turn_log) - copied.written >= _BATCH_EVENTS:
            self._full.set()

    async def _wait_for_news(self) -> None:
        """Wait until there is something to write; while Redis fails, only until the next check."""
        if self._unwritten:
            return
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RETRY_S if self._events.failing else None):
                await self._news.wait()

    async def _is_full_before(self, due: float) -> bool:
        """Wait until a turn has a batch of events; False when it is time to write all of them."""
        try:
            async with asyncio.timeout(max(due - time.monotonic(), 0)):
                await self._full.wait()
        except TimeoutError:
            return False
        self._full.clear()
        return True

    async def _flush(self, at_least: int = 1) -> None:
        """Write the events of turns that have `at_least` this many; if none has, check that Redis answers."""
        unwritten = {copied for copied in self._unwritten if len(copied.log) - copied.written >= at_least}
        self._unwritten -= unwritten
        if not unwritten:
            if at_least == 1:
                await self._events.probe()
            return
        batches = {copied.turn_id: copied.log.events_after(copied.written) for copied in unwritten}
        try:
            await self._events.append(batches)
        except BaseException:
            for copied in unwritten:
                copied.log.uncopied = True
            self._unwritten |= {copied for copied in unwritten if self._worth_keeping(copied)}
            raise
        for copied in unwritten:
            copied.log.uncopied = False
            copied.written += len(batches[copied.turn_id])
            if copied.log.ended and copied.written == len(copied.log):
                self.forget(copied.turn_id)

    def _worth_keeping(self, copied: _Copied) -> bool:
        if copied.ended_at and time.monotonic() - copied.ended_at > _GIVE_UP_S:
            self.forget(copied.turn_id)
            return False
        return copied.log in self._turns
