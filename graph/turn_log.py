"""The events of one running turn, for as many readers as there are."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from state.events import Status, TurnEvent


class TurnLog:
    """Numbers a turn's events and hands them to readers, from any place on.

    A reader that falls behind finds what it missed in the log; it holds up nobody.
    """

    def __init__(self) -> None:
        self._events: list[TurnEvent] = []
        self._readers: set[asyncio.Event] = set()
        self.text_begun = False
        """Whether any of the answer has been streamed."""

    def append(self, status: Status, content: Any) -> None:
        """Add an event. After the last one nothing is added."""
        if self.ended:
            return
        self._events.append(TurnEvent(len(self._events) + 1, status, content))
        if status == "token":
            self.text_begun = True
        for news in self._readers:
            news.set()

    @property
    def ended(self) -> bool:
        """Whether the last event is there."""
        return bool(self._events) and self._events[-1].is_last

    @property
    def text(self) -> str:
        """The answer as far as it has been streamed."""
        return "".join(event.content for event in self._events if event.status == "token")

    async def follow(self, after: int = 0) -> AsyncGenerator[list[TurnEvent], None]:
        """Yield the events behind number `after`, as many at once as there are, until the last."""
        news = asyncio.Event()
        self._readers.add(news)
        try:
            while True:
                if batch := self._events[after:]:
                    after += len(batch)
                    yield batch
                    if batch[-1].is_last:
                        return
                news.clear()
                if len(self._events) == after:
                    await news.wait()
        finally:
            self._readers.discard(news)
