"""A turn's events as a server-sent event stream, and as its one last event."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing

from sse_starlette import EventSourceResponse
from starlette.types import Message

from api.frames import sse_frames
from state.events import TurnEvent

HEARTBEAT_S = 15
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

TurnEvents = AsyncGenerator[Sequence[TurnEvent], None]


class EventStream(EventSourceResponse):
    """Frames as they come, with comments as a heartbeat; `on_disconnect` is called if the client disconnects."""

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
            client_close_handler_callable=disconnected,
        )


async def last_event(events: TurnEvents) -> TurnEvent:
    """Wait for a turn's last event."""
    last, _ = await whole_turn(events)
    return last


async def whole_turn(events: TurnEvents) -> tuple[TurnEvent, str]:
    """Wait for a turn's last event; return it and the model's reasoning, as far as it is still known."""
    reasoning: list[str] = []
    async with aclosing(events):
        async for batch in events:
            reasoning += [event.content for event in batch if event.status == "reasoning"]
            if batch[-1].is_last:
                return batch[-1], "".join(reasoning)
    raise AssertionError("every turn ends with an event")


async def sse_events(events: TurnEvents) -> AsyncIterator[bytes]:
    """A turn's events as frames of `/api/v1`."""
    async with aclosing(events):
        async for batch in events:
            yield sse_frames(batch)
