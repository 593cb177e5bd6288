"""Paces requests that start turns, when many have arrived at once."""

import asyncio
from collections import deque

from starlette.types import ASGIApp, Receive, Scope, Send

from api.admission import STARTING_TURNS


class Turnstile:
    """ASGI middleware: lets one request that starts a turn through with each cycle of the event loop.

    Alternately the oldest and the newest. Without it, a burst of hundreds of requests is validated in one go, and
    the next request waits for all of it. Nothing is held: a request that was let through delays nobody by taking
    long.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pausing = False
        """Whether a request was let through in this cycle."""
        self._oldest_next = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for this request's cycle."""
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in STARTING_TURNS:
            await self._pass_through()
        await self._app(scope, receive, send)

    async def _pass_through(self) -> None:
        loop = asyncio.get_running_loop()
        if self._pausing:
            let_through: asyncio.Future[None] = loop.create_future()
            self._waiting.append(let_through)
            await let_through
        else:
            self._pausing = True
            loop.call_soon(self._next)

    def _next(self) -> None:
        while self._waiting:
            let_through = self._waiting.popleft() if self._oldest_next else self._waiting.pop()
            if not let_through.done():  # it was not cancelled
                self._oldest_next = not self._oldest_next
                let_through.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._pausing = False
