"""The events of turns: the log of each, its copy in Redis, and the event that ends it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any
from uuid import UUID

import structlog

from services.conversations.event_log import EventLog
from services.conversations.turn import StoredTurn
from services.errors import Unavailable
from state.client_tools import KeptRound, said_in
from state.conversation import ConversationState
from state.events import CALLS, SHOWS_NOTHING, Status, TurnEvent, streamed_text
from state.turn import OpenTurn

log = structlog.get_logger(__name__)

_BATCH_S = 0.05
_BATCH_EVENTS = 16
_AT_ONCE: frozenset[Status] = frozenset({"tool_call", "approval"})
"""Events that are copied at once, as the first text is: who finds none of them may run the turn again."""
_SHORTEST_S = 0.01
"""Seconds between two flushes of full batches."""
_RETRY_S = 0.5
_GIVE_UP_S = 30.0
"""Seconds for which events of an ended turn are retried on a Redis that does not accept them."""

Ending = tuple[Status, dict[str, Any]]
"""Status and content of a turn's last event."""

INTERNAL: dict[str, Any] = {"code": "internal", "message": "Something went wrong on our side.", "retryable": True}
CANCELLED: dict[str, Any] = {"code": "cancelled", "message": "The turn was cancelled.", "retryable": False}
INTERRUPTED_BY_MESSAGE: dict[str, Any] = {
    "code": "interrupted_by_message",
    "message": "A newer message interrupted this turn.",
    "retryable": False,
}
NO_RESULTS: dict[str, Any] = {
    "code": "no_tool_results",
    "message": "The client has not brought the results of its tools.",
    "retryable": False,
}
STOPPING: dict[str, Any] = {
    "code": "interrupted",
    "message": "The service is stopping; please try again.",
    "retryable": True,
}
LOST_PROCESS: dict[str, Any] = {
    "code": "interrupted",
    "message": "The service was interrupted; please try again.",
    "retryable": True,
}


class TurnLog:
    """Numbers a turn's events and passes them to readers, who may start at any event. A slow reader delays
    nobody, because it finds in the log what it missed."""

    def __init__(
        self,
        turn_id: UUID | None = None,
        on_append: Callable[["TurnLog"], None] | None = None,
        *,
        before: int = 0,
        earlier: Sequence[TurnEvent] = (),
    ) -> None:
        """Create an empty log; `turn_id` is given if its events are copied, `on_append` is called after each.

        Its first event has the number after `before`; `earlier` events come from another process and are already
        copied.
        """
        self.turn_id = turn_id
        self._before = before
        self._events: list[TurnEvent] = list(earlier)
        self._readers: set[asyncio.Event] = set()
        self._on_append = on_append
        self.ended = False
        """Whether the last event has been added."""
        self.text_begun = False
        """Whether any of the answer has been streamed."""
        self.shown = before > 0
        """Whether something was shown that another run of the turn would contradict."""
        self.known_as_shown = False
        """Whether the database knows that."""
        self.urgent = False
        """Whether one of its new events does not wait for others."""
        self.left = False
        """Whether another process runs the turn: nothing more is added here, and readers continue there."""
        self.copied = before + len(earlier)
        """Number of the last event copied to where other processes find them."""
        self.uncopied = False
        """Whether events could not be copied."""
        self.ended_at = 0.0
        """When the last event was added, in seconds of a clock that nobody can set."""

    def append(self, status: Status, content: Any) -> None:
        """Add an event; nothing is added after the last one."""
        if self.ended or self.left:
            return
        event = TurnEvent(len(self) + 1, status, content)
        self._events.append(event)
        self.urgent |= status in _AT_ONCE or (status == "token" and not self.text_begun)
        self.text_begun |= status == "token"
        self.shown |= status not in SHOWS_NOTHING
        if event.is_last:
            self.ended, self.ended_at = True, time.monotonic()
        for news in self._readers:
            news.set()
        if self._on_append is not None:
            self._on_append(self)

    def leave(self) -> None:
        """Leave the turn to the process that runs it."""
        self.left = True
        for news in self._readers:
            news.set()

    def __len__(self) -> int:
        """Return the number of the newest event."""
        return self._before + len(self._events)

    def events_after(self, after: int) -> Sequence[TurnEvent]:
        return self._events[max(after - self._before, 0) :]

    @property
    def is_full(self) -> bool:
        """Whether its new events make a batch, or do not wait for one."""
        return self.urgent or len(self) - self.copied >= _BATCH_EVENTS

    @property
    def last(self) -> TurnEvent:
        """Return the newest event; a turn has at least one from its beginning."""
        return self._events[-1]

    @property
    def text(self) -> str:
        """Return the answer as far as it has been streamed."""
        return streamed_text(self._events)

    async def follow(self, after: int = 0) -> AsyncGenerator[Sequence[TurnEvent], None]:
        """Yield the events after number `after`, in batches, until the last or until another process runs it.

        A reader that claims to have seen more events than exist waits for newer ones. A reader that has seen the
        last event gets it again, so that every stream has an end.
        """
        news = asyncio.Event()
        self._readers.add(news)
        try:
            while True:
                if self.ended:
                    after = min(after, len(self) - 1)
                if batch := self.events_after(after):
                    after = batch[-1].sequence
                    yield batch
                    if batch[-1].is_last:
                        return
                news.clear()
                if len(self) <= after and not self.ended:
                    if self.left:
                        return
                    await news.wait()
        finally:
            self._readers.discard(news)


class EventWriter:
    """One writer for all turns of the process: a flush is one round trip for any number of turns."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._logs: dict[UUID, TurnLog] = {}
        self._unwritten: set[TurnLog] = set()
        self._news = asyncio.Event()
        self._full = asyncio.Event()
        self.unread = asyncio.Event()
        """Set when Redis does not have what a turn has shown, and the database does not know of it either."""

    def log_for(self, turn_id: UUID, *, before: int = 0, earlier: Sequence[TurnEvent] = ()) -> TurnLog:
        """Return a new log that is copied from now on; it begins after number `before`, or `earlier` events."""
        turn_log = self._logs[turn_id] = TurnLog(turn_id, self._note, before=before, earlier=earlier)
        return turn_log

    def find(self, turn_id: UUID) -> TurnLog | None:
        """Return the log of a turn of this process until it has been copied completely."""
        return self._logs.get(turn_id)

    def forget(self, turn_id: UUID) -> None:
        """Stop copying a turn that another process continues."""
        if (turn_log := self._logs.pop(turn_id, None)) is not None:
            self._unwritten.discard(turn_log)

    async def run(self) -> None:
        """Copy until cancelled: everything every 50 ms, and turns with 16 new events sooner. To an in-process
        Redis, which ends with this process, a turn is copied when it has ended."""
        while True:
            try:
                await self._wait_for_news()
                due = time.monotonic() + _BATCH_S
                while await self._is_full_before(due):
                    await asyncio.sleep(_SHORTEST_S)
                    await self._flush(only_full=True)
                await self._flush()
            except Unavailable:
                await asyncio.sleep(_RETRY_S)

    async def close(self) -> None:
        """Copy the rest, if Redis accepts it."""
        with contextlib.suppress(Unavailable):
            await self._flush()

    def _note(self, turn_log: TurnLog) -> None:
        if not self._copies(turn_log) or not (turn_log.ended or self._events.is_shared):
            return
        self._unwritten.add(turn_log)
        self._news.set()
        if turn_log.is_full:
            self._full.set()
        if self._events.failing:
            self._note_unread(turn_log)

    def _note_unread(self, turn_log: TurnLog) -> None:
        if turn_log.shown and not turn_log.known_as_shown:
            self.unread.set()

    async def _wait_for_news(self) -> None:
        """Wait until there is something to write; while Redis fails, only until the next check."""
        if self._unwritten:
            return
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RETRY_S if self._events.failing else None):
                await self._news.wait()

    async def _is_full_before(self, due: float) -> bool:
        """Wait until a turn has a full batch of events; return False when it is time to write all of them."""
        try:
            async with asyncio.timeout(max(due - time.monotonic(), 0)):
                await self._full.wait()
        except TimeoutError:
            return False
        self._full.clear()
        return True

    async def _flush(self, *, only_full: bool = False) -> None:
        """Write new events, or those of turns with a batch; if there are none, check that Redis answers."""
        unwritten = {each for each in self._unwritten if each.is_full or not only_full}
        self._unwritten -= unwritten
        if not unwritten:
            if not only_full:
                await self._events.probe()
            return
        new = {each: each.events_after(each.copied) for each in unwritten}
        for each in unwritten:
            each.urgent = False
        batches: dict[UUID, list[TurnEvent]] = {}
        for each in sorted(new, key=lambda each: each.copied):  # a turn may have a log for each of two parts
            if each.turn_id is not None:
                batches.setdefault(each.turn_id, []).extend(new[each])
        try:
            await self._events.append(batches)
        except BaseException:
            for each in unwritten:
                each.uncopied = True
                self._note_unread(each)
            self._unwritten |= {each for each in unwritten if self._worth_keeping(each)}
            raise
        for each in unwritten:
            each.uncopied = False
            if each.turn_id is not None:
                each.copied += len(new[each])
                if each.ended and each.copied == len(each) and self._copies(each):  # not its next part's
                    self.forget(each.turn_id)

    def _copies(self, turn_log: TurnLog) -> bool:
        return turn_log.turn_id is not None and self._logs.get(turn_log.turn_id) is turn_log

    def _worth_keeping(self, turn_log: TurnLog) -> bool:
        if turn_log.turn_id is not None and turn_log.ended and time.monotonic() - turn_log.ended_at > _GIVE_UP_S:
            self.forget(turn_log.turn_id)
        return self._copies(turn_log)


def done_ending(turn: OpenTurn, written: ConversationState, trace_id: str | None = None) -> Ending:
    """Build the last event of a turn that succeeded, from what its nodes wrote."""
    content: dict[str, Any] = {
        "answer": written["answer"],
        "conversation_id": str(turn.conversation_id),
        "turn_id": str(turn.turn_id),
        "message_id": str(turn.answer_message_id),
        "usage": written["usage"],
        "timings": written["timings"],
        "degraded": written.get("degraded", []),
        "sources": written["context_report"]["sources"],
        "finish": written["context_report"].get("finish", "stop"),
        "memory_changes": written.get("memory_changes", []),
    }
    if "request_budget" in written["context_report"]:
        content["request_budget"] = written["context_report"]["request_budget"]
    if before := said_in(written["context_report"].get("rounds", [])):
        content["begins_at"] = len(before)
    if trace_id is not None:
        content["trace_id"] = trace_id
    if written.get("execution_logs"):
        content["context_report"] = written["context_report"]
    return "done", content


def calls_ending(turn: OpenTurn, written: ConversationState) -> Ending:
    """Build the last event of a part of a turn: what was said, and which of the client's tools are called."""
    report = written["context_report"]
    return CALLS, {
        **_calls(report["rounds"][-1]),
        "conversation_id": str(turn.conversation_id),
        "turn_id": str(turn.turn_id),
        "timings": written["timings"],
        "degraded": written.get("degraded", []),
        "sources": report["sources"],
    }


def _calls(kept: KeptRound) -> dict[str, Any]:
    return {"answer": kept["text"], "calls": kept["calls"], "usage": kept["usage"], "finish": "tool_calls"}


def stored_calls_ending(stored: StoredTurn, part: int) -> Ending:
    """Build the last event of a part of a turn from what is stored."""
    report = stored.context_report or {}
    return CALLS, {
        **_calls(report["rounds"][part]),
        "conversation_id": str(stored.conversation_id),
        "turn_id": str(stored.id),
        "timings": stored.timings,
        "degraded": stored.degraded,
        "sources": report.get("sources", []),
    }


def failed_ending(turn: OpenTurn, error: dict[str, Any], answer: str) -> Ending:
    """Build the last event of a failed turn; `answer` is the partial answer, sent if anything was streamed."""
    content = {**error, "turn_id": str(turn.turn_id)}
    return "error", {**content, "answer": answer} if answer else content


def stored_ending(stored: StoredTurn) -> Ending:
    """Build the last event of an ended turn from what is stored. Its answer is authoritative."""
    if stored.status != "completed":
        error = stored.error or LOST_PROCESS
        return "error", {**error, "turn_id": str(stored.id), "answer": stored.answer or ""}
    report = stored.context_report or {}  # a turn stored by an earlier version has less in it
    content = {
        "answer": stored.answer or "",
        "conversation_id": str(stored.conversation_id),
        "turn_id": str(stored.id),
        "message_id": str(stored.assistant_message_id) if stored.assistant_message_id else None,
        "usage": stored.usage,
        "timings": stored.timings,
        "degraded": stored.degraded,
        "sources": report.get("sources", []),
        "finish": report.get("finish", "stop"),
        "memory_changes": stored.memory_changes,
    }
    if "request_budget" in report:
        content["request_budget"] = report["request_budget"]
    if before := said_in(report.get("rounds", [])):
        content["begins_at"] = len(before)
    return "done", content
