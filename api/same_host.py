"""Answer only under the service's own names while there is no authentication, and never under two at once.

A page of any site can make a browser on this machine call a loopback address, but it cannot choose the `Host` that
the browser sends, unless it rebinds its own name to 127.0.0.1. `api/same_origin.py` looks at pages that do not.
"""

from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from api.problems import Problem, problem_response

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class SameHost:
    """ASGI middleware: 421 for a host that is not ours, 400 for several; a WebSocket is closed."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str] | None) -> None:
        """Take the names; None = any."""
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the headers only."""
        problem = self._problem(Headers(scope=scope)) if scope["type"] in {"http", "websocket"} else None
        if problem is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(1008, "wrong Host")(scope, receive, send)
        else:
            await problem_response(problem, path=scope["path"])(scope, receive, send)

    def _problem(self, headers: Headers) -> Problem | None:
        given = headers.getlist("host")
        if len(given) > 1:
            status, detail = HTTPStatus.BAD_REQUEST, "The request has more than one header Host."
        elif self._hosts is None or (given and host_name(f"//{given[0]}") in self._hosts):
            return None
        else:
            status = HTTPStatus.MISDIRECTED_REQUEST
            detail = "Without authentication only requests to a loopback name are answered."
        return Problem(title=status.phrase, status=status, detail=detail, code="wrong_host")


def host_name(address: str) -> str | None:
    """Return the host of an address, in lower case; None where it is no address or its port is none."""
    try:
        parts = urlsplit(address)
        return parts.hostname if parts.port is None or parts.port else None
    except ValueError:
        return None
