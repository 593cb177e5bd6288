"""Paces requests that start turns, when many have arrived at once."""

import asyncio
import re

from starlette.types import ASGIApp, Receive, Scope, Send

from api.admission import STARTING_TURNS
from api.request_bodies import SMALL_BYTES, Replayed, declared_bytes, sender_of
from graph.turns.gate import FairGate

_AT_ONCE = 2
"""A place is free again in the next cycle of the loop, and who waited for it enters in the one after that: two
places let one request through with each cycle."""
_NAMED_USER = re.compile(rb'"(?:user_id|user)"\s*:\s*"([^"\\]{1,200})"')


class Turnstile:
    """ASGI middleware: lets one request that starts a turn through with each cycle of the event loop.

    Without it, a burst of hundreds of requests is validated in one go, and the next request waits for all of it.
    Who comes next is chosen by `FairGate`. Nothing is held: a request that was let through delays nobody by
    taking long.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._gate = FairGate(_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for this request's cycle."""
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in STARTING_TURNS:
            named = b""
            if 0 < declared_bytes(scope) <= SMALL_BYTES:
                message = await receive()
                receive = Replayed(receive, message)
                named = _named_user(message.get("body", b""))
            place = await self._gate.enter((sender_of(scope), named))
            asyncio.get_running_loop().call_soon(place.leave)
        await self._app(scope, receive, send)


def _named_user(body: bytes) -> bytes:
    """The user whom a body seems to name. Whether it may is checked later; it only decides who waits for whom."""
    found = _NAMED_USER.search(body)
    return found[1] if found else b""
