"""Addresses as they were sent: hosts and origins that are not ours are refused; ids may hold slashes.

A page of any site can make a browser on this machine call a loopback address, but it cannot choose the `Host` that
the browser sends, unless it rebinds its own name to 127.0.0.1. So without authentication only the service's own
names are answered.

Such a page can make a browser send a request, without asking first if it looks like a form's. It cannot hide where
it comes from: browsers add `Origin` and `Sec-Fetch-Site` themselves, and programs send neither. Where callers are
known, a header `Authorization` is proof enough: no browser adds one by itself.
"""

from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from api.problems import Problem, answer_early, problem_response

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_SLASH = "\ue000"
"""Stands for an encoded slash until the route is known."""
_NO_SLASH = "\ue001"
"""Stands for that character where it was sent itself: neither is printable, so neither is in an id."""


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


_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class SameOrigin:
    """ASGI middleware: 403 for what a page of another site wants done or, as a WebSocket, opened."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str] | None, trusted: frozenset[str]) -> None:
        """Take what is not foreign.

        Args:
            app: what is protected.
            hosts: names of the service, while there is no authentication; None = callers are known.
            trusted: origins of pages that may do everything.
        """
        self._app = app
        self._hosts = hosts
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the headers only."""
        is_socket = scope["type"] == "websocket"
        if is_socket:
            # Where callers are known, it takes a ticket, which other sites' pages have not.
            is_refused = self._hosts is not None and self._has_foreign_origin(Headers(scope=scope))
        else:
            may_change = scope["type"] == "http" and scope["method"] not in _READING
            is_refused = may_change and self._is_foreign(Headers(scope=scope))
        if not is_refused:
            await self._app(scope, receive, send)
        elif is_socket:
            await WebSocketClose(1008, "another site's page")(scope, receive, send)
        else:
            problem = Problem(
                title=HTTPStatus.FORBIDDEN.phrase,
                status=HTTPStatus.FORBIDDEN,
                detail="A page of another site may not do this. If the page is yours, name its origin in "
                "ANAMNESIS_TRUSTED_ORIGINS.",
                code="foreign_origin",
            )
            await answer_early(problem_response(problem, path=scope["path"]), scope, receive, send)

    def _is_foreign(self, headers: Headers) -> bool:
        site = headers.get("sec-fetch-site")
        if self._hosts is None:
            if "authorization" in headers:
                return False
            if site in {"same-origin", "none"}:  # right also behind a proxy that changes `Host`
                return False
        elif site == "cross-site" and not self._is_trusted(headers):
            return True
        return self._has_foreign_origin(headers)

    def _has_foreign_origin(self, headers: Headers) -> bool:
        origins = headers.getlist("origin")
        if not origins or self._is_trusted(headers):
            return False
        if len(origins) > 1 or not origins[0].startswith(("http://", "https://")):
            return True
        if self._hosts is not None:
            return host_name(origins[0]) not in self._hosts
        return origins[0].partition("://")[2] != headers.get("host")

    def _is_trusted(self, headers: Headers) -> bool:
        origins = headers.getlist("origin")
        return len(origins) == 1 and origins[0] in self._trusted


class EncodedSlashes:
    """ASGI middleware: keeps encoded slashes apart from those between segments.

    Servers decode a path before it is routed, and there a slash sent as `%2F` would end the segment.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the path as it was sent."""
        raw: bytes = scope.get("raw_path") or b""
        if b"%2f" in raw or b"%2F" in raw or b"%EE" in raw.upper():
            parts = raw.partition(b"?")[0].replace(b"%2f", b"%2F").split(b"%2F")
            decoded = (unquote(part.decode("ascii", "replace")).replace(_SLASH, _NO_SLASH) for part in parts)
            scope = {**scope, "path": _SLASH.join(decoded)}
        await self._app(scope, receive, send)


def restore_slashes(request: Request) -> None:
    """Put slashes into the values of a path, once its route is known."""
    values = request.scope.get("path_params", {})
    for name, value in values.items():
        if isinstance(value, str) and _SLASH in value:
            values[name] = value.replace(_SLASH, "/")


_PAGES = frozenset({"/docs", "/docs/oauth2-redirect"})


class RelativeDocs:
    """ASGI middleware: the page's addresses begin with `./` in place of `/`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the page a root to put before its addresses."""
        if scope["type"] == "http" and scope["path"] in _PAGES:
            scope = {**scope, "root_path": "."}
        await self._app(scope, receive, send)
