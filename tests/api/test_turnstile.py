"""A burst of requests is let in one by one, and somebody else with a single request is not the last of it."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from api.admission import Turnstile

pytestmark = pytest.mark.anyio


class _Application:
    def __init__(self) -> None:
        self.entered: list[str] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.entered.append(scope["name"])
        self.bodies.append((await receive())["body"])


async def _nothing(*_: Any) -> Any:
    return None


def _request(
    turnstile: Turnstile, name: str, path: str = "/api/v1/chat", body: bytes = b"{}"
) -> "asyncio.Task[None]":
    headers = [(b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "method": "POST", "path": path, "name": name, "headers": headers}

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    return asyncio.create_task(turnstile(scope, receive, _nothing))


async def test_a_newcomer_enters_among_the_first_of_a_burst_and_everybody_enters() -> None:
    application = _Application()
    turnstile = Turnstile(application)
    burst = [_request(turnstile, f"burst{number}", body=b'{"user_id": "burst"}') for number in range(100)]
    await asyncio.sleep(0)  # all of them have arrived
    newcomer = _request(turnstile, "newcomer", body=b'{"user_id": "newcomer"}')
    await asyncio.gather(*burst, newcomer)
    assert application.entered.index("newcomer") < 8
    assert len(set(application.entered)) == 101


async def test_other_requests_do_not_wait_and_one_that_gives_up_blocks_nobody() -> None:
    application = _Application()
    turnstile = Turnstile(application)
    burst = [_request(turnstile, f"burst-{number}") for number in range(10)]
    await asyncio.sleep(0)
    for leaver in burst[2:]:
        leaver.cancel()
    await _request(turnstile, "reads", "/api/v1/turns")
    await asyncio.gather(*burst, return_exceptions=True)
    await _request(turnstile, "late")
    assert application.entered[-1] == "late"
    assert "reads" in application.entered[:3]
