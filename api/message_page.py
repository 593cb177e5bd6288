"""The JSON of a page of messages, made and sent in pieces: messages can hold megabytes of images.

For a client that reads it slowly, or never, memory holds one part of the page and not the whole.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import orjson
import structlog

from api.long_json import pieces_of
from api.paging import next_of
from api.turn_schemas import MessageView
from services.conversations.transcript import Message
from services.errors import DatabaseUnavailable

log = structlog.get_logger(__name__)

_END = b"}"


async def message_page(
    first: Sequence[Message], others: AsyncGenerator[Sequence[Message]], limit: int
) -> AsyncGenerator[bytes]:
    """Yield a page of messages, given its first part and what yields the others.

    If the database fails meanwhile, the page ends early, and its `next` names the place.
    """
    places = [(message.created_at, message.id) for message in first]
    complete = True
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
            places += [(message.created_at, message.id) for message in part]
    following = next_of(places, limit if complete else len(places))
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
