"""Keep other web sites out while there is no authentication.

A page of any site can make a browser on this machine call a loopback address. It cannot choose the
`Host` that the browser sends unless it rebinds its own name to 127.0.0.1, and it cannot hide its
`Origin` when it opens a WebSocket: so both are checked.
"""

from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from api.problems import Problem, problem_response

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class SameHost:
    """ASGI middleware: 421 for a host that is not ours, 403 for a socket that another site opens."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the headers only."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        ours = _name(f"//{headers.get('host', '')}") in self._hosts
        origin = headers.get("origin")
        if scope["type"] == "websocket":
            if ours and (origin is None or _name(origin) in self._hosts):
                await self._app(scope, receive, send)
            else:
                await WebSocketClose(1008, "another site's page")(scope, receive, send)
        elif ours:
            await self._app(scope, receive, send)
        else:
            status = HTTPStatus.MISDIRECTED_REQUEST
            detail = "Without authentication only requests to a loopback name are answered."
            problem = Problem(title=status.phrase, status=status, detail=detail, code="wrong_host")
            await problem_response(problem, path=scope["path"])(scope, receive, send)


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
