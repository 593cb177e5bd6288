"""A turn's events as the protocols send them: frames, a stream of server-sent events, and the one last event."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any
from uuid import UUID

import orjson
from sse_starlette import EventSourceResponse
from starlette.types import Message

from state.events import TurnEvent


def sse_frames(events: Iterable[TurnEvent]) -> bytes:
    """Events as server-sent events: `id`, `event`, and `data` with status and content."""
    return b"".join(
        b"id: %d\nevent: %s\ndata: %s\n\n"
        % (
            event.sequence,
            event.status.encode(),
            orjson.dumps({"status": event.status, "content": event.content}),
        )
        for event in events
    )


def ws_frame(event: TurnEvent, turn_id: UUID | None, request_id: str | None = None) -> str:
    """Return an event as a JSON text frame; `turn_id`, or the caller's `request_id`, identifies the turn."""
    frame: dict[str, Any] = {
        "id": event.sequence,
        "status": event.status,
        "content": event.content,
        "turn_id": str(turn_id) if turn_id else None,
    }
    if request_id is not None:
        frame["request_id"] = request_id
    return orjson.dumps(frame).decode()


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
