"""JSON of answers that can be megabytes long: made and sent in pieces, between which others run.

For a client that reads it slowly, or never, memory holds one piece and not the whole.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from functools import partial
from typing import Any

import orjson
from pydantic import TypeAdapter

from services.platform.threads import beside_the_loop

PIECE_BYTES = 256 * 1024


async def pieces_of(value: Any, *, size: int) -> AsyncGenerator[bytes]:
    """Yield the JSON of a value with about `size` bytes, made in a thread if it is more than a piece."""
    json = await beside_the_loop(partial(orjson.dumps, value), characters=size, most=PIECE_BYTES)
    for start in range(0, len(json), PIECE_BYTES):
        yield json[start : start + PIECE_BYTES]


async def item_list(view: type[Any], items: Iterable[Any], rest: Mapping[str, Any]) -> AsyncGenerator[bytes]:
    """Yield an object with `items`, each shown as `view`, and with the `rest` of its keys."""
    shown: TypeAdapter[Any] = TypeAdapter(view)
    held, begun = bytearray(b'{"items":['), False
    for item in items:
        held += b"," * begun + shown.dump_json(shown.validate_python(item, from_attributes=True))
        begun = True
        if len(held) >= PIECE_BYTES:
            yield bytes(held)
            held.clear()
            await asyncio.sleep(0)
    yield bytes(held) + b"]," + orjson.dumps(rest)[1:]
