"""Messages as items of `/v1/conversations`."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import orjson
import structlog

from api.long_json import pieces_of
from services.conversations.transcript import Message
from services.errors import DatabaseUnavailable

log = structlog.get_logger(__name__)


def item_of(message: Message) -> dict[str, Any]:
    """Return a message as an item."""
    if message.role == "user":
        content: list[dict[str, Any]] = [{"type": "input_text", "text": message.content}]
        content += [{"type": "input_image", "image_url": part["image_url"]["url"]} for part in message.parts]
    else:
        content = [{"type": "output_text", "text": message.content, "annotations": [], "logprobs": []}]
    return {
        "id": f"msg_{message.id}",
        "type": "message",
        "role": message.role,
        "status": "completed" if message.completed else "incomplete",
        "content": content,
    }


def item_list(messages: Sequence[Message]) -> dict[str, Any]:
    """Return a whole list of messages."""
    shown = [item_of(message) for message in messages if message.content]  # of a deleted one the row stays
    return {"object": "list", "data": shown, **_end([each["id"] for each in shown], has_more=False)}


async def item_page(
    first: Sequence[Message], others: AsyncGenerator[Sequence[Message]], limit: int
) -> AsyncGenerator[bytes]:
    """Yield the JSON of a list of at most `limit` messages, given its first part and what yields the others.

    If the database fails meanwhile, the list ends early, and says that there are more.
    """
    ids: list[str] = []
    seen, has_more = 0, False
    yield b'{"object":"list","data":['
    async with aclosing(others):
        part = first
        while part:
            for message in part[: limit - seen]:
                if not message.content:
                    continue
                if ids:
                    yield b","
                ids.append(f"msg_{message.id}")
                async for piece in pieces_of(item_of(message), size=_size(message)):
                    yield piece
            seen += len(part)
            has_more = seen > limit
            try:
                part = [] if has_more else await anext(others, [])
            except DatabaseUnavailable as error:
                log.warning("a list of messages ended early", reason=str(error))
                part, has_more = [], True
    yield b"]," + orjson.dumps(_end(ids, has_more=has_more))[1:]


def _end(ids: Sequence[str], *, has_more: bool) -> dict[str, Any]:
    return {"first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None, "has_more": has_more}


def _size(message: Message) -> int:
    return len(message.content) + sum(len(part.get("image_url", {}).get("url", "")) for part in message.parts)
