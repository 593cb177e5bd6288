"""JSON of answers that can be megabytes long: made and sent in pieces, between which others run.

For a client that reads it slowly, or never, memory holds one piece and not the whole.
"""

from collections.abc import AsyncGenerator, Sequence
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


async def pieces_of(value: Any, *, size: int) -> AsyncGenerator[bytes]:
    """Yield the JSON of a value with about `size` bytes, made in a thread if it is more than a piece."""
    json = await beside_the_loop(partial(orjson.dumps, value), characters=size, most=PIECE_BYTES)
    for start in range(0, len(json), PIECE_BYTES):
        yield json[start : start + PIECE_BYTES]


log = structlog.get_logger(__name__)

_END = b"}"


async def message_page(
    first: Sequence[Message], others: AsyncGenerator[Sequence[Message]], limit: int
) -> AsyncGenerator[bytes]:
    """Yield a page of messages, given its first part and what yields the others.

    If the database fails meanwhile, the page ends early, and its `next` names the place.
    """
    count, last, complete = len(first), first[-1:], True
    yield b'{"items":['
    async with aclosing(others):
        part, begun = first, False
        while part:
            for message in part:
                if begun:
                    yield b","
                begun = True
                async for piece in _pieces(message):
                    yield piece
            try:
                part = await anext(others, [])
            except DatabaseUnavailable as error:
                log.warning("a page of messages ended early", reason=str(error))
                part, complete = (), False
            count, last = count + len(part), part[-1:] or last
    is_full = count >= limit or not complete
    following = next_of(last, 1) if is_full else None
    yield b'],"next":' + orjson.dumps(following) + _END


async def _pieces(message: Message) -> AsyncGenerator[bytes]:
    """Yield a message as `MessageView` in JSON."""
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
