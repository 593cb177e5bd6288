"""JSON of answers that can have megabytes: made and sent in pieces, between which other work gets a turn.

For a client that reads slowly or not at all, memory holds one piece and not the whole.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any, Literal
from uuid import UUID

import orjson
import structlog
from pydantic import BaseModel, Field

from api.paging import next_of
from services.conversations.transcript import Message
from services.errors import DatabaseUnavailable
from services.platform.patience import beside_the_loop

PIECE_BYTES = 256 * 1024


class MessageView(BaseModel):
    """One message. `completed` is false for an answer that broke off."""

    id: UUID
    turn_id: UUID
    role: Literal["user", "assistant"]
    content: str
    parts: list[dict[str, Any]]
    completed: bool
    created_at: datetime
    external_id: str | None = Field(description="The caller's own id of a message that was imported.")
    speaker: str | None = Field(description="Who said a message that was imported, if known.")
    promise_id: UUID | None = Field(description="The promise that the assistant has kept by saying it.")


async def pieces_of(value: Any, *, size: int) -> AsyncGenerator[bytes]:
    """Yield the JSON of a value of about `size` bytes; a thread makes it if it is longer than a piece."""
    json = await beside_the_loop(partial(orjson.dumps, value), characters=size, most=PIECE_BYTES)
    for start in range(0, len(json), PIECE_BYTES):
        yield json[start : start + PIECE_BYTES]


log = structlog.get_logger(__name__)

_END = b"}"


class MessageList:
    """Messages that arrive in parts, written as a JSON list; it remembers which were shown."""

    def __init__(self, first: Sequence[Message], others: AsyncGenerator[Sequence[Message]], most: int) -> None:
        """Take the first part, an iterator over the others, and the maximum number of messages to show."""
        self._first, self._others, self._most = first, others, most
        self.received = 0
        self.shown: list[Message] = []
        """The first and the last message that were shown."""
        self.complete = True
        """Whether the list is complete; False = the database failed meanwhile, and the list ends early."""

    async def pieces(self, as_json: Callable[[Message], AsyncGenerator[bytes]]) -> AsyncGenerator[bytes]:
        """Yield the elements of the list; a message without JSON is left out."""
        part = self._first
        async with aclosing(self._others):
            while part:
                for message in part[: max(self._most - self.received, 0)]:
                    begun = False
                    async for piece in as_json(message):
                        yield piece if begun or not self.shown else b"," + piece
                        begun = True
                    if begun:
                        self.shown = [*self.shown[:1], message]
                self.received += len(part)
                try:
                    part = await anext(self._others, [])
                except DatabaseUnavailable as error:
                    log.warning("a list of messages ended early", reason=str(error))
                    part, self.complete = (), False


async def message_page(
    first: Sequence[Message], others: AsyncGenerator[Sequence[Message]], limit: int
) -> AsyncGenerator[bytes]:
    """Yield a page of messages, from its first part and an iterator over the others. If the database fails
    meanwhile, the page ends early, and its `next` names the place."""
    listed = MessageList(first, others, limit)
    yield b'{"items":['
    async for piece in listed.pieces(_pieces):
        yield piece
    is_full = listed.received >= limit or not listed.complete
    following = next_of(listed.shown[-1:], 1) if is_full else None
    yield b'],"next":' + orjson.dumps(following) + _END


async def _pieces(message: Message) -> AsyncGenerator[bytes]:
    """Yield the JSON of a message, in the form of `MessageView`."""
    shown = MessageView.model_validate(message, from_attributes=True)
    text = shown.model_dump_json(exclude={"parts"}).encode()
    begin = text.removesuffix(_END) + b',"parts":['
    for number, part in enumerate(message.parts):
        size = len(part.get("image_url", {}).get("url", ""))
        yield begin + b"," * (number > 0)
        async for piece in pieces_of(part, size=size):
            yield piece
        begin = b""
    yield begin + b"]" + _END
