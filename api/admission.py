"""Admission of requests: only of known callers, not while the process is full or stops, and paced in a burst."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

from opentelemetry.trace import SpanKind
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.mcp.http import challenge
from api.problems import STARTING_TURNS, answer_early, response_of
from api.request_bodies import SMALL_BYTES, Replayed, declared_bytes, sender_of
from graph.turns.turn_queue import FairGate
from services.errors import AnamnesisError, Busy
from services.identity.authentication import Authenticator
from services.identity.rate_limits import RateLimits
from services.platform import span_names as names
from services.platform.tracing import mark_failed, span, trace_id


def _starts_turn(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in STARTING_TURNS


@dataclass(frozen=True)
class Admission:
    """ASGI middleware: 503 with `Retry-After` for requests that start a turn while the process is busy."""

    app: ASGIApp
    admit: Callable[[], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check only the path."""
        if _starts_turn(scope):
            try:
                self.admit()
            except Busy as busy:
                await answer_early(response_of(busy, path=scope["path"]), scope, receive, send)
                return
        await self.app(scope, receive, send)


@dataclass(frozen=True)
class Draining:
    """ASGI middleware: asks clients to reconnect while the process stops, which takes them to another process."""

    app: ASGIApp
    draining: Callable[[], bool]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Change only one header."""
        if scope["type"] != "http" or not self.draining():
            await self.app(scope, receive, send)
            return

        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        await self.app(scope, receive, closing)


_AT_ONCE = 2
"""Requests that may be between admission and start. A place is free again in the next cycle of the event loop,
and the next request takes it one cycle later: two places admit one request per cycle."""
_NAMED_USER = re.compile(rb'"(?:user_id|user)"\s*:\s*"([^"\\]{1,200})"')


class Turnstile:
    """ASGI middleware: admits one request that starts a turn in each cycle of the event loop.

    Otherwise a burst of hundreds of requests is validated at once, and the next request waits for all of it.
    `FairGate` chooses the next request. An admitted request holds nothing, so it delays nobody by taking long.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._gate = FairGate(_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for this request's cycle."""
        if _starts_turn(scope):
            named = b""
            if 0 < declared_bytes(scope) <= SMALL_BYTES:
                message = await receive()
                receive = Replayed(receive, message)
                named = _named_user(message.get("body", b""))
            place = await self._gate.enter((sender_of(scope), named))
            asyncio.get_running_loop().call_soon(place.close)
        await self._app(scope, receive, send)


def _named_user(body: bytes) -> bytes:
    """Return the user whom a body seems to name. It is checked later and only decides who waits for whom."""
    found = _NAMED_USER.search(body)
    return found[1] if found else b""


@dataclass(frozen=True)
class EarlyAuthentication:
    """ASGI middleware: refuses requests that may have a body unless their caller is known."""

    app: ASGIApp
    authenticator: Authenticator
    limits: RateLimits | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check only the headers, and pass the caller to `api/access.py`."""
        if scope["type"] == "http" and scope["method"] not in {"GET", "HEAD", "OPTIONS"}:
            headers = Headers(scope=scope)
            try:
                caller = await self.authenticator.caller_of(headers.get("authorization"))
                if self.limits is not None and _may_be_large(
                    headers
                ):  # others are counted once they have been read
                    await self.limits.check_tenant(caller.tenant_id)
            except AnamnesisError as error:
                response = response_of(error, path=scope["path"])
                if "WWW-Authenticate" in response.headers:
                    response.headers["WWW-Authenticate"] = challenge(scope)
                await answer_early(response, scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
        await self.app(scope, receive, send)


def _may_be_large(headers: Headers) -> bool:
    length = headers.get("content-length", "")
    return int(length) > SMALL_BYTES if length.isdecimal() else "transfer-encoding" in headers


HEADER = "X-Trace-Id"
_SERVER_ERROR = 500


@dataclass(frozen=True)
class RequestSpans:
    """ASGI middleware: a span for each request that starts a turn, within the trace that its caller names."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open the span until the last byte of the answer."""
        if not _starts_turn(scope):
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        about = {names.METHOD: "POST", names.PATH: path}
        with span(f"POST {path}", about, kind=SpanKind.SERVER, parent=Headers(scope=scope)) as current:

            async def send_with_id(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = message["status"]
                    current.set_attribute(names.STATUS, status)
                    if status >= _SERVER_ERROR:
                        mark_failed(current, str(status))
                    MutableHeaders(scope=message)[HEADER] = trace_id() or ""
                await send(message)

            await self.app(scope, receive, send_with_id)
