"""Receives request bodies within limits, before anything parses them.

A body over 1 MB is spooled to disk until it is complete, so that a client that sends half of it costs a file and
no memory. The bytes of all bodies in flight are limited, per caller and in total.
"""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from http import HTTPStatus
from typing import IO, Any

import structlog
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.addresses import restore_slashes
from api.compressed_bodies import TAKEN, coding_of, decompressed
from api.problems import Problem, answer_early, problem_response
from api.schemas import MAX_BODY_BYTES, MAX_IMPORT_BYTES
from services.errors import InvalidInput
from services.identity.caller import Caller
from services.platform.patience import beside_the_loop
from services.platform.settings import Settings
from services.validation import strict_json

log = structlog.get_logger(__name__)

_STREAMED = ("/api/v1/import", "/archive-imports")
"""Ends of paths whose bodies are streamed and never held as a whole."""

SMALL_BYTES = 64 * 1024
"""Bodies up to this size are not counted: the server buffers as much for every connection, and a caller that
sends large ones can still chat."""
_IN_MEMORY_BYTES = 1024 * 1024
_LEAST_BYTES_PER_S = 16 * 1024
"""Bytes that must arrive before a body gets another second, as in Apache's mod_reqtimeout."""
_RETRY_AFTER_S = "5"


class Refused(HTTPException):
    """A body that is refused; holds the answer. FastAPI passes on no other exception from reading a body."""

    def __init__(
        self, status: HTTPStatus, code: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.problem = Problem.of(status, code, detail)
        may_come_back = status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
        more = {"Retry-After": _RETRY_AFTER_S} if may_come_back else {}
        super().__init__(status, detail, {**(headers or {}), **more})


async def refused(request: Request, error: Exception) -> Response:
    """Return the answer to a refused body."""
    if not isinstance(error, Refused):
        raise TypeError(type(error))
    headers = {**(error.headers or {}), "Connection": "close"}  # the rest of the body is not read
    return problem_response(error.problem, headers, path=request.scope["path"])


class BodyBudget:
    """Counts the bytes of the bodies in flight in this process."""

    def __init__(self, settings: Settings) -> None:
        """Take the limits."""
        self._most = settings.http_bodies_mb * 1024 * 1024
        self._most_of_caller = min(self._most, settings.http_bodies_caller_mb * 1024 * 1024)
        self._of_caller: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """Return the bytes of all bodies in flight."""
        return self._of_caller.total()

    def take(self, caller: str, count: int) -> None:
        """Count bytes for a caller. Raises `Refused` if they exceed the limit of the caller, or of all callers."""
        if self._of_caller[caller] + count > self._most_of_caller:
            raise Refused(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too_many_bytes",
                f"Your requests in flight would hold more than {self._most_of_caller} bytes "
                "(ANAMNESIS_HTTP_BODIES_CALLER_MB); send this one when others have been answered.",
            )
        if self.held + count > self._most:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "busy",
                f"The requests in flight hold nearly {self._most} bytes (ANAMNESIS_HTTP_BODIES_MB), and this one "
                "does not fit in; try again in a moment.",
            )
        self._of_caller[caller] += count

    def give_back(self, caller: str, count: int) -> None:
        """Free bytes that were counted."""
        self._of_caller[caller] -= count
        if not self._of_caller[caller]:
            del self._of_caller[caller]


class RequestBodies:
    """ASGI middleware: passes on a body when it has arrived completely, within the limits."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app = app
        self._budget = BodyBudget(settings)
        self._timeout_s = settings.http_body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Receive the body and pass it on, or answer with the reason for refusing it."""
        if scope["type"] != "http" or scope["method"] in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        is_streamed = scope["path"].endswith(_STREAMED)
        limit = MAX_IMPORT_BYTES if is_streamed else MAX_BODY_BYTES
        try:
            declared = declared_bytes(scope)
            if declared > limit:
                raise _too_large(limit)
            coding = coding_of(scope)
            if coding and (is_streamed or coding not in TAKEN):
                raise _not_taken(coding, is_streamed)
            if is_streamed:
                await self._app(scope, self._limited(receive, limit), send)
            else:
                await self._pass_whole(scope, receive, send, declared, coding)
        except Refused as error:
            await answer_early(await refused(Request(scope), error), scope, receive, send)

    def _limited(self, receive: Receive, limit: int) -> Receive:
        """Return a receiver that passes pieces on as they arrive, up to the limit."""
        count = 0

        async def limited() -> Message:
            nonlocal count
            message = await self._next(receive, self._timeout_s)
            count += len(message.get("body", b""))
            if count > limit:
                raise _too_large(limit)
            return message

        return limited

    async def _pass_whole(self, scope: Scope, receive: Receive, send: Send, declared: int, coding: str) -> None:
        """Receive a whole body, then pass it on. Its bytes count until the request has been answered."""
        caller, counted = sender_of(scope), declared if declared > SMALL_BYTES else 0

        def grown(size: int) -> None:
            nonlocal counted
            if size > MAX_BODY_BYTES:
                raise _too_large(MAX_BODY_BYTES)
            if size > max(counted, SMALL_BYTES):  # its length was not declared
                self._budget.take(caller, size - counted)
                counted = size

        self._budget.take(caller, counted)
        try:
            message = await self._next(receive, self._timeout_s)
            is_whole = not message.get("more_body", False) and len(message.get("body", b"")) <= declared
            if is_whole and not coding:
                await self._app(scope, Replayed(receive, message), send)  # nearly all bodies
                return
            with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as body:
                begun, size = time.monotonic(), 0
                while message["type"] == "http.request":
                    piece = message.get("body", b"")
                    size += len(piece)
                    grown(size)
                    _write(body, piece)
                    if not message.get("more_body", False):
                        break
                    left_s = begun + self._timeout_s + size / _LEAST_BYTES_PER_S - time.monotonic()
                    message = await self._next(receive, min(left_s, self._timeout_s))
                else:
                    return  # the client is gone
                body.seek(0)
                whole = await beside_the_loop(body.read, characters=size, most=_IN_MEMORY_BYTES)
            if coding:
                before = counted
                whole = await _decompressed(whole, coding, lambda more: grown(before + more))
                scope = _uncompressed(scope, len(whole))
            received = Replayed(receive, {"type": "http.request", "body": whole, "more_body": False})
            del whole  # the application holds it from here on
            await self._app(scope, received, send)
        finally:
            self._budget.give_back(caller, counted)

    async def _next(self, receive: Receive, seconds: float) -> Message:
        try:
            async with asyncio.timeout(seconds):
                return await receive()
        except TimeoutError:
            status = HTTPStatus.REQUEST_TIMEOUT
            detail = f"The body did not arrive in time (ANAMNESIS_HTTP_BODY_TIMEOUT_S={self._timeout_s:g})."
            raise Refused(status, "body_timeout", detail) from None


def _not_taken(coding: str, is_streamed: bool) -> Refused:
    taken = "identity" if is_streamed else ", ".join(TAKEN)
    detail = f"Content-Encoding: {coding[:40]!r} is not taken here; send the body as {taken}."
    return Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", detail, {"Accept-Encoding": taken})


async def _decompressed(body: bytes, coding: str, grown: Callable[[int], None]) -> bytes:
    try:
        return await decompressed(body, coding, grown)
    except ValueError as error:
        detail = f"Content-Encoding says {coding}, but the body cannot be read so: {error}"
        raise Refused(HTTPStatus.BAD_REQUEST, "bad_encoding", detail) from None


def _uncompressed(scope: Scope, size: int) -> Scope:
    """Return the request's scope as it would be without compression."""
    others = [each for each in scope["headers"] if each[0] not in {b"content-encoding", b"content-length"}]
    return {**scope, "headers": [*others, (b"content-length", str(size).encode())]}


class Replayed:
    """Replays what was received, then passes on what else the connection receives."""

    def __init__(self, receive: Receive, message: Message) -> None:
        self._receive, self._message = receive, message

    async def __call__(self) -> Message:
        if self._message:
            message, self._message = self._message, {}
            return message
        return await self._receive()


async def whole_body(request: Request, most: int, what: str) -> bytes:
    """Return a whole body.

    Args:
        request: The request.
        most: Maximum bytes.
        what: Name of the body, for the error.

    Raises:
        HTTPException: The body is larger.
        ClientDisconnect: The rest does not arrive.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            detail = f"The {what} is larger than {most} bytes."
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail, {"Connection": "close"})
    return bytes(body)


class _JsonRequest(Request):
    """A request whose long body a thread parses, and in which each key of an object may occur once."""

    async def json(self) -> Any:
        try:
            return await parsed(await self.body())
        except InvalidInput as error:  # FastAPI passes on only its own exceptions from here
            raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error


async def parsed(text: str | bytes) -> Any:
    """Return the value of JSON, which a thread parses if it is long.

    Raises:
        InvalidInput, ValueError, RecursionError: As `strict_json`.
    """
    return await beside_the_loop(partial(strict_json, text), characters=len(text), most=_IN_MEMORY_BYTES)


class JsonRoute(APIRoute):
    """The class of all routes with JSON, which may have megabytes because messages can hold images."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, with a request that parses long bodies in a thread."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            restore_slashes(request)
            return await handle(_JsonRequest(request.scope, request.receive))

        return handled


def _write(body: IO[bytes], piece: bytes) -> None:
    try:
        body.write(piece)
    except OSError as error:
        log.warning("body cannot be put on disk", folder=tempfile.gettempdir(), reason=error.strerror)
        detail = f"The service cannot put the body on its disk ({error.strerror}); try again later."
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "no_space", detail) from None


def _too_large(limit: int) -> Refused:
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", f"The body is larger than {limit} bytes.")


def declared_bytes(scope: Scope) -> int:
    """Return the bytes of a body that the headers announce; 0 if they announce none."""
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isdecimal() else 0


def sender_of(scope: Scope) -> str:
    """Return the sender of a request: a known caller, or an address."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    if caller is not None:
        return f"{caller.tenant_id}/{caller.user_id or ''}"
    return str((scope.get("client") or ("",))[0])
