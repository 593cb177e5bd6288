"""A turn's events as a server-sent event stream, and as its one last event."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing

import structlog
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.types import Message, Receive, Scope, Send

from api.frames import sse_frames
from state.events import TurnEvent

log = structlog.get_logger(__name__)

HEARTBEAT_S = 15
SLOW_READER_S = 60.0
"""A reader that takes nothing for so long is cut off; it may come back for the rest."""

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

TurnEvents = AsyncGenerator[Sequence[TurnEvent], None]


class EventStream(EventSourceResponse):
    """Frames as they come, with comments for a heartbeat; `on_disconnect` is called if the client goes away."""

    def __init__(
        self,
        frames: AsyncIterator[bytes],
        on_disconnect: Callable[[], Awaitable[object]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        async def disconnected(_: Message) -> None:
            if on_disconnect is not None:
                await on_disconnect()

        super().__init__(
            frames,
            ping=HEARTBEAT_S,
            headers={**_HEADERS, **(headers or {})},
            send_timeout=SLOW_READER_S,
            client_close_handler_callable=disconnected,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a reader that is too slow loses its connection, and nobody else notices."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            log.info("slow reader cut off")


async def last_event(events: TurnEvents) -> TurnEvent:
    """Wait for a turn's last event."""
    async with aclosing(events):
        async for batch in events:
            if batch[-1].is_last:
                return batch[-1]
    raise AssertionError("every turn ends with an event")


async def sse_events(events: TurnEvents) -> AsyncIterator[bytes]:
    """A turn's events as frames of `/api/v1`."""
    async with aclosing(events):
        async for batch in events:
            yield sse_frames(batch)
