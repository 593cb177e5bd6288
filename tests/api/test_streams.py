"""A stream of frames as an ASGI server sees it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from starlette.types import Message

from api.streams import EventStream

SCOPE: dict[str, Any] = {"type": "http", "method": "GET"}


class QuickHeart(EventStream):
    heartbeat_s = 0.01


async def test_a_silent_stream_has_a_heartbeat_and_its_end() -> None:
    sent: list[Message] = []
    beaten = asyncio.Event()

    async def frames() -> AsyncGenerator[bytes, None]:
        yield b"data: 1\n\n"
        await beaten.wait()
        yield b"data: 2\n\n"

    async def send(message: Message) -> None:
        sent.append(message)
        if message.get("body", b"").startswith(b": ping"):
            beaten.set()

    async with asyncio.timeout(60):
        await QuickHeart(frames())(SCOPE, asyncio.Event().wait, send)  # type: ignore[arg-type]
    bodies = [message["body"] for message in sent[1:]]
    assert sent[0]["status"] == 200
    assert (b"content-type", b"text/event-stream; charset=utf-8") in sent[0]["headers"]
    assert [body for body in bodies if not body.startswith(b": ping")] == [b"data: 1\n\n", b"data: 2\n\n", b""]
    assert bodies[1].endswith(b"\r\n\r\n")
    assert [message["more_body"] for message in sent[-2:]] == [True, False]
