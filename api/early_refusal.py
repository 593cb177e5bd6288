"""Refuse an unknown caller before the body of the request is read.

FastAPI reads and parses a body before it asks what a route depends on: a stranger could make the service
hold 70 MB for nothing.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.problems import response_of
from services.errors import AnamnesisError
from services.identity.authentication import Authenticator


class EarlyRefusal:
    """ASGI middleware: every request that may have a body must come from a known caller."""

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the headers only, and leave the caller for `api/access.py`."""
        if scope["type"] == "http" and scope["method"] not in {"GET", "HEAD", "OPTIONS"}:
            try:
                caller = await self._authenticator.caller_of(Headers(scope=scope).get("authorization"))
            except AnamnesisError as error:
                response = response_of(error, path=scope["path"])
                response.headers["Connection"] = "close"  # the rest of the body is not wanted either
                await response(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)
