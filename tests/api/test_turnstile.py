"""A burst of requests is let in one by one, and somebody else is not the last of it."""

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from api.admission import Turnstile


class _Application:
    def __init__(self) -> None:
        self.entered: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.entered.append(scope["name"])
        await receive()


async def _nothing(*_: Any) -> Any:
    return None


def _request(turnstile: Turnstile, name: str, body: bytes) -> "asyncio.Task[None]":
    headers = [(b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "method": "POST", "path": "/api/v1/chat", "name": name, "headers": headers}

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    return asyncio.create_task(turnstile(scope, receive, _nothing))


async def test_a_newcomer_enters_among_the_first_of_a_burst_and_everybody_enters() -> None:
    application = _Application()
    turnstile = Turnstile(application)
    burst = [_request(turnstile, f"burst{number}", b'{"user_id": "burst"}') for number in range(100)]
    await asyncio.sleep(0)  # all of them have arrived
    newcomer = _request(turnstile, "newcomer", b'{"user_id": "newcomer"}')
    await asyncio.gather(*burst, newcomer)
    assert application.entered.index("newcomer") < 8
    assert len(set(application.entered)) == 101
