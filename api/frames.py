"""Events as the protocols send them. Pure functions."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import orjson

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
