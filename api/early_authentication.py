"""Refuses unknown callers, and large bodies of a tenant over its limit, before the body is read.

FastAPI reads and parses a body before it resolves a route's dependencies: a stranger could make the service
hold 70 MB for nothing.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.mcp.challenge import challenge
from api.problems import response_of
from api.request_bodies import SMALL_BYTES, answer_early
from services.errors import AnamnesisError
from services.identity.authentication import Authenticator
from services.identity.rate_limits import RateLimits


class EarlyAuthentication:
    """ASGI middleware: every request that may have a body must come from a known caller."""

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator, limits: RateLimits) -> None:
        """Take the services that know callers and their limits."""
        self._app = app
        self._authenticator = authenticator
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check only the headers, and pass the caller to `api/access.py`."""
        if scope["type"] == "http" and scope["method"] not in {"GET", "HEAD", "OPTIONS"}:
            headers = Headers(scope=scope)
            try:
                caller = await self._authenticator.caller_of(headers.get("authorization"))
                if _may_be_large(headers):  # others are counted once read: one request to Redis
                    await self._limits.check_tenant(caller.tenant_id)
            except AnamnesisError as error:
                response = response_of(error, path=scope["path"])
                if "WWW-Authenticate" in response.headers:
                    response.headers["WWW-Authenticate"] = challenge(scope)
                await answer_early(response, scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)


def _may_be_large(headers: Headers) -> bool:
    length = headers.get("content-length", "")
    return int(length) > SMALL_BYTES if length.isdecimal() else "transfer-encoding" in headers
