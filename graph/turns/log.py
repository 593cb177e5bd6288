"""The events of one running turn, for any number of readers."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from state.events import Status, TurnEvent, streamed_text


class TurnLog:
    """Numbers a turn's events and passes them to readers, starting at any event.

    A slow reader delays nobody: it finds what it missed in the log.
    """

    def __init__(self, on_append: Callable[["TurnLog"], None] | None = None) -> None:
        self._events: list[TurnEvent] = []
        self._readers: set[asyncio.Event] = set()
        self._on_append = on_append
        self.text_begun = False
        """Whether any of the answer has been streamed."""
        self.uncopied = False
        """Whether events could not be copied to where other processes find them."""

    def append(self, status: Status, content: Any) -> None:
        """Add an event; nothing is added after the last one."""
        if self.ended:
            return
        self._events.append(TurnEvent(len(self._events) + 1, status, content))
        if status == "token":
            self.text_begun = True
        for news in self._readers:
            news.set()
        if self._on_append is not None:
            self._on_append(self)

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self._events)

    def events_after(self, after: int) -> Sequence[TurnEvent]:
        """Return the events after number `after`."""
        return self._events[after:]

    @property
    def ended(self) -> bool:
        """Whether the last event has been added."""
        return bool(self._events) and self._events[-1].is_last

    @property
    def last(self) -> TurnEvent:
        """The newest event; a turn has at least one from its beginning."""
        return self._events[-1]

    @property
    def text(self) -> str:
        """The answer as far as it has been streamed."""
        return streamed_text(self._events)

    async def follow(self, after: int = 0) -> AsyncGenerator[Sequence[TurnEvent], None]:
        """Yield the events after number `after`, in batches, until the last.

        A reader that claims to have seen more events than exist waits for newer ones; one that has seen the last
        event gets it again, so that every stream has an end.
        """
        news = asyncio.Event()
        self._readers.add(news)
        try:
            while True:
                if self.ended:
                    after = min(after, len(self._events) - 1)
                if batch := self._events[after:]:
                    after += len(batch)
                    yield batch
                    if batch[-1].is_last:
                        return
                news.clear()
                if len(self._events) <= after and not self.ended:
                    await news.wait()
        finally:
            self._readers.discard(news)
