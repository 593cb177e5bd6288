"""Addresses as they were sent: foreign hosts and origins are refused, and ids may contain slashes.

A page of any site can make a browser on this machine call a loopback address, but it cannot choose the `Host` that
the browser sends, unless it rebinds its own name to 127.0.0.1. Without authentication, therefore, only requests to
the service's own names are answered.

Such a page can also make a browser send a request, without asking first if the request looks like that of a form.
It cannot hide where the request comes from: browsers add `Origin` and `Sec-Fetch-Site` themselves, and programs
send neither. With authentication the header `Authorization` is proof enough, because no browser adds it by itself.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from api.problems import Problem, answer_early, problem_response

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_SLASH = "\ue000"
"""Character that stands for an encoded slash until the route is known."""
_NO_SLASH = "\ue001"
"""Character that stands for `_SLASH` if it was sent itself. Neither is printable, so neither occurs in an id."""


def host_name(address: str) -> str | None:
    """Return the host of an address in lower case; None if the address or its port is not valid."""
    try:
        parts = urlsplit(address)
        return parts.hostname if parts.port is None or parts.port else None
    except ValueError:
        return None


_PAGES = frozenset({"/docs", "/docs/oauth2-redirect"})
_WHOSE = re.compile(
    rb"authorization|idempotency-key|x-(?:api-key|user-id|session-id|conversation-id|topic-id)"
    rb"|x-(?:anamnesis|openwebui|librechat|litellm)-.*"
)
"""Headers that say whose a request is and where it belongs: two of them that differ have no meaning."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class SameSite:
    """ASGI middleware: answers 421 for a foreign host, 400 for several, and 403 for a request that a page of
    another site makes; a WebSocket is closed."""

    app: ASGIApp
    hosts: frozenset[str] | None
    """Names of the service, checked while there is no authentication; None = any name."""
    trusted: frozenset[str]
    """Origins of pages that may make any request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the headers only."""
        problem = self._problem(scope, Headers(scope=scope)) if scope["type"] in {"http", "websocket"} else None
        if problem is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(1008, problem.code)(scope, receive, send)
        elif scope["method"] in _READING:
            await problem_response(problem, path=scope["path"])(scope, receive, send)
        else:
            await answer_early(problem_response(problem, path=scope["path"]), scope, receive, send)

    def _problem(self, scope: Scope, headers: Headers) -> Problem | None:
        given = headers.getlist("host")
        if len(given) > 1:
            return Problem.of(HTTPStatus.BAD_REQUEST, "wrong_host", "The request has more than one header Host.")
        if (twice := _given_twice(scope["headers"])) is not None:
            detail = f"The request has more than one header {twice}, and they differ."
            return Problem.of(HTTPStatus.BAD_REQUEST, "repeated_header", detail)
        if self.hosts is not None and not (given and host_name(f"//{given[0]}") in self.hosts):
            detail = "Without authentication only requests to a loopback name are answered."
            return Problem.of(HTTPStatus.MISDIRECTED_REQUEST, "wrong_host", detail)
        if scope["type"] == "websocket":
            # With authentication it needs a ticket, which pages of other sites do not have.
            is_foreign = self.hosts is not None and self._has_foreign_origin(headers)
        else:
            is_foreign = scope["method"] not in _READING and self._is_foreign(headers)
        if not is_foreign:
            return None
        return Problem.of(
            HTTPStatus.FORBIDDEN,
            "foreign_origin",
            "A page of another site may not do this. If the page is yours, name its origin in "
            "ANAMNESIS_TRUSTED_ORIGINS.",
        )

    def _is_foreign(self, headers: Headers) -> bool:
        site = headers.get("sec-fetch-site")
        if self.hosts is None:
            if "authorization" in headers:
                return False
            if site in {"same-origin", "none"}:  # right even behind a proxy that changes `Host`
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
        if self.hosts is not None:
            return host_name(origins[0]) not in self.hosts
        return origins[0].partition("://")[2] != headers.get("host")

    def _is_trusted(self, headers: Headers) -> bool:
        origins = headers.getlist("origin")
        return len(origins) == 1 and origins[0] in self.trusted


def _given_twice(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if _WHOSE.fullmatch(name) and found.setdefault(name, value) != value:
            return name.decode("latin-1")
    return None


@dataclass(frozen=True)
class Addresses:
    """ASGI middleware: keeps encoded slashes apart from separators, and gives the API's documentation page
    relative addresses.

    Servers decode a path before it is routed, and a slash sent as `%2F` would then end the segment.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the path as it was sent."""
        raw: bytes = scope.get("raw_path") or b""
        if b"%2f" in raw or b"%2F" in raw or b"%EE" in raw.upper():
            parts = raw.partition(b"?")[0].replace(b"%2f", b"%2F").split(b"%2F")
            decoded = (unquote(part.decode("ascii", "replace")).replace(_SLASH, _NO_SLASH) for part in parts)
            scope = {**scope, "path": _SLASH.join(decoded)}
        elif scope["type"] == "http" and scope["path"] in _PAGES:
            scope = {**scope, "root_path": "."}  # the page puts it before its addresses
        await self.app(scope, receive, send)


def restore_slashes(request: Request) -> None:
    """Put slashes into the values of a path once its route is known."""
    values = request.scope.get("path_params", {})
    for name, value in values.items():
        if isinstance(value, str) and _SLASH in value:
            values[name] = value.replace(_SLASH, "/")
