"""Paths as they were sent: an id within one may hold a slash, and `/docs` works below a proxy's path.

Servers decode a path before it is routed, and there a slash sent as `%2F` would end the segment.
"""

from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

_SLASH = "\ue000"
"""Stands for an encoded slash until the route is known."""
_NO_SLASH = "\ue001"
"""Stands for that character where it was sent itself: neither is printable, so neither is in an id."""


class EncodedSlashes:
    """ASGI middleware: keeps encoded slashes apart from those between segments."""

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
