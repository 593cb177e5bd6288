"""A turn's events as the parts of another protocol's stream."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

import orjson

from api.streams import TurnEvents
from state.events import TurnEvent

Part = dict[str, Any]


class Mapper(Protocol):
    """Maps one event to the parts of another protocol; it keeps state between events."""

    end: bytes
    """Text after the last part."""

    def parts(self, event: TurnEvent) -> list[Part]:
        """The parts for the next event."""
        ...


async def mapped(events: TurnEvents, mapper: Mapper, after: int = 0) -> AsyncGenerator[bytes, None]:
    """Yield the frames of a stream, each with the number of its event; those up to `after` are not repeated.

    All events of the turn are read, because the mapping of an event depends on those before it.
    """
    async with aclosing(events):
        async for batch in events:
            frames = b"".join(
                b"id: %d\ndata: %s\n\n" % (event.sequence, orjson.dumps(part))
                for event in batch
                for part in mapper.parts(event)
                if event.sequence > after
            )
            if frames:
                yield frames
    if mapper.end:
        yield mapper.end
