"""Refuses requests that start turns while the process is full, before their body is read."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from api.problems import response_of
from api.request_bodies import answer_early
from services.errors import Busy

STARTING_TURNS = frozenset(
    {
        "/api/v1/chat",
        "/api/v1/chat/stream",
        "/v1/chat/completions",
        "/v1/responses",
        "/api/v1/ui/chat",
        "/api/v1/ui/ag-ui",
    },
)
"""Paths whose POST starts a turn. WebSockets are accepted: each of their turns is checked separately."""


class Admission:
    """ASGI middleware: 503 with `Retry-After` for requests that start a turn while the process is busy."""

    def __init__(self, app: ASGIApp, *, admit: Callable[[], None]) -> None:
        self._app = app
        self._admit = admit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check only the path."""
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in STARTING_TURNS:
            try:
                self._admit()
            except Busy as busy:
                await answer_early(response_of(busy, path=scope["path"]), scope, receive, send)
                return
        await self._app(scope, receive, send)
