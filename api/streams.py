"""A turn's events in the forms of the protocols: frames, server-sent events, and the single last event."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

import orjson
from fastapi import Depends, Header
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from services.errors import InvalidInput
from state.events import TurnEvent

Done = TypeVar("Done")

_HEARTBEAT_S = 15.0
_HEADERS = {"Cache-Control": "no-cache", "Connection": "keep-alive", "X-Accel-Buffering": "no"}

TurnEvents = AsyncGenerator[Sequence[TurnEvent], None]

_LONGEST_NUMBER = 9


async def _last_seen(
    last_event_id: Annotated[
        str, Header(description="Number of the last event seen; 0 = from the first on.")
    ] = "0",
) -> int:
    if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) <= _LONGEST_NUMBER):
        raise InvalidInput("Last-Event-ID", "is not the number of an event")
    return int(last_event_id)


LastSeen = Annotated[int, Depends(_last_seen)]
"""Number of the last event that a reader has seen."""


def sse_frames(events: Iterable[TurnEvent]) -> bytes:
    """Return events as server-sent events: `id`, `event`, and `data` with status and content."""
    return b"".join(
        b"id: %d\nevent: %s\ndata: %s\n\n"
        % (event.sequence, event.status.encode(), orjson.dumps({"status": event.status, "content": event.content}))
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


class EventStream(Response):
    """A response of frames with comments as a heartbeat; `on_disconnect` is called if the client disconnects."""

    heartbeat_s = _HEARTBEAT_S

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        on_disconnect: Callable[[], Awaitable[object]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Take the stream, which is closed in any case."""
        self._frames = frames
        self._on_disconnect = on_disconnect
        self.status_code = 200
        self.media_type = "text/event-stream"
        self.background = None
        self.init_headers({**_HEADERS, **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the frames until their end, or until the client is gone."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        streaming = asyncio.create_task(self._stream(send))
        watching = asyncio.create_task(self._watch(receive, send))
        both = (streaming, watching)
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            await asyncio.wait(both)
        for task in both:
            if not task.cancelled():
                task.result()
        if not streaming.cancelled():  # nothing is sent any more, so a heartbeat cannot follow it
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, send: Send) -> None:
        async with aclosing(self._frames) as frames:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})

    async def _watch(self, receive: Receive, send: Send) -> None:
        """Wait for the client to disconnect, with a heartbeat from time to time."""
        while True:
            try:
                async with asyncio.timeout(self.heartbeat_s):
                    message = await receive()
            except TimeoutError:
                comment = f": ping - {datetime.now(UTC)}\r\n\r\n".encode()
                await send({"type": "http.response.body", "body": comment, "more_body": True})
                continue
            if message["type"] == "http.disconnect":
                if self._on_disconnect is not None:
                    await self._on_disconnect()
                return


async def last_event(events: TurnEvents) -> TurnEvent:
    """Wait for the last event of a turn and return it."""
    last, _ = await whole_turn(events)
    return last


async def whole_turn(events: TurnEvents) -> tuple[TurnEvent, str]:
    """Wait for the last event of a turn; return it and the model's reasoning, as far as it is still known."""
    reasoning: list[str] = []
    async with aclosing(events):
        async for batch in events:
            reasoning += [event.content for event in batch if event.status == "reasoning"]
            if batch[-1].is_last:
                return batch[-1], "".join(reasoning)
    raise AssertionError("every turn ends with an event")


async def sse_events(events: TurnEvents) -> AsyncGenerator[bytes, None]:
    """Yield a turn's events as frames of `/api/v1`."""
    async with aclosing(events):
        async for batch in events:
            yield sse_frames(batch)


async def disconnected(connection: Request) -> None:
    """Return when the client has gone; the body of its request must have been read."""
    while (await connection.receive())["type"] != "http.disconnect":
        pass


async def while_connected(connection: Request, work: Coroutine[Any, Any, Done]) -> Done | None:
    """Return the result of some work; None = the client has gone, and the work was cancelled."""
    working = asyncio.create_task(work)
    gone = asyncio.create_task(disconnected(connection))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        gone.cancel()
        working.cancel()
        await asyncio.wait({working, gone})
