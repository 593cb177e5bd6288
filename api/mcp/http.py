"""`/mcp`: the MCP server over HTTP, without sessions; made with the first request."""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson
from fastapi.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from api.access import caller_of
from api.end_user import end_user_of
from api.mcp.challenge import MCP_PATH, METADATA_PATH, public_address
from api.problems import response_of
from api.request_bodies import parsed
from services.bootstrap import Services
from services.errors import AnamnesisError, InvalidInput, NotFound
from services.identity.caller import Scope as Permission

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


_SCOPES: list[Permission] = ["memory:read", "memory:write"]
"""Scopes that the tools need. Clients ask for all that are named here, and a token with `admin` has no user."""


class McpOverHttp:
    """Answers the requests of assistants, once there is one."""

    def __init__(
        self, services: Services, make: "Callable[[Services], StreamableHTTPSessionManager] | None" = None
    ) -> None:
        """Take the services; `make` makes the server's manager with the first request."""
        self._services = services
        self._make = make or _make_manager
        self._opening = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of a known caller."""
        connection = HTTPConnection(scope)
        try:
            caller = await caller_of(connection)
            if self._services.rate_limits is not None:
                await self._services.rate_limits.count_request(caller.tenant_id)
            end_user = end_user_of(caller, connection.headers, self._services.settings)
        except AnamnesisError as error:
            await response_of(error, path=MCP_PATH)(scope, receive, send)
            return
        scope["state"]["acting"] = (caller, end_user.user_id)
        if connection.headers.get("content-type", "").startswith("application/json"):
            body, receive = await read_body(receive, MOST_BYTES)
            if len(body) <= MOST_BYTES and (refused := await refusal(body)) is not None:
                await refused(scope, receive, send)
                return
        manager = await self._opened()
        await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """Let go of the server, if one was made."""
        self._stop.set()
        if self._running is not None:
            await self._running

    async def _opened(self) -> "StreamableHTTPSessionManager":
        async with self._opening:
            if self._manager is None:
                manager = await asyncio.to_thread(self._make, self._services)
                started = asyncio.get_running_loop().create_future()
                # The task that opens it must also close it, so no request's task may be the one.
                self._running = asyncio.create_task(self._run(manager, started))
                await started
                self._manager = manager
            return self._manager

    async def _run(self, manager: "StreamableHTTPSessionManager", started: "asyncio.Future[None]") -> None:
        try:
            async with manager.run():
                started.set_result(None)
                await self._stop.wait()
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)


def _make_manager(services: Services) -> "StreamableHTTPSessionManager":
    from api.mcp.server import make_manager  # noqa: PLC0415 — a third of a second and 15 MB, for those who use it

    return make_manager(services)


class _Endpoint:
    """Leads to the application's own server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        serving: McpOverHttp = scope["state"]["mcp"]
        await serving.answer(scope, receive, send)


async def _metadata(request: HTTPConnection) -> JSONResponse:
    """Where tokens for `/mcp` come from (RFC 9728); there is no such thing without tokens."""
    services: Services = request.state.services
    settings = services.settings
    if settings.auth != "jwt":
        return response_of(NotFound("Tokens are not in use here."), path=METADATA_PATH)
    return JSONResponse(
        {
            "resource": str(public_address(request.scope, MCP_PATH)),
            "authorization_servers": [settings.jwt_issuer],
            "scopes_supported": _SCOPES,
            "bearer_methods_supported": ["header"],
            "resource_name": "Anamnesis",
        }
    )


routes = (Route(MCP_PATH, _Endpoint(), methods=["POST"]), Route(METADATA_PATH, _metadata, methods=["GET"]))


MOST_BYTES = 1024 * 1024
"""Bytes of a request at most; a tool's arguments are a few sentences."""
_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


async def read_body(receive: Receive, most: int) -> tuple[bytes, Receive]:
    """Read a body, up to slightly more than `most` bytes; also return what gives the same request once more."""
    read: list[Message] = []
    size, more = 0, True
    while more and size <= most:
        message = await receive()
        read.append(message)
        size += len(message.get("body", b""))
        more = message["type"] == "http.request" and message.get("more_body", False)
    body = b"".join(message.get("body", b"") for message in read)
    kept = iter(read)

    async def again() -> Message:
        return next(kept, None) or await receive()

    return body, again


async def refusal(body: bytes) -> JSONResponse | None:
    """The error answer to a body that is no message of JSON-RPC 2.0; None = it is one."""
    try:
        message = orjson.loads(body)
        await parsed(body)
    except InvalidInput as error:
        return _error(None, _INVALID_REQUEST, f"Invalid request: {error.field}: {error.message}.")
    except (ValueError, RecursionError):
        return _error(None, _PARSE_ERROR, "Parse error: the body is not valid JSON.")
    if not isinstance(message, dict):
        return _error(None, _INVALID_REQUEST, "Invalid request: the body must be one message, a JSON object.")
    named = message.get("id")
    id_fits = isinstance(named, str | int) and not isinstance(named, bool)
    reason = None
    if "id" in message and not id_fits:
        reason = "id: must be a string or an integer"
    elif message.get("jsonrpc") != "2.0":
        reason = 'jsonrpc: must be "2.0"'
    elif not ({"result", "error"} & message.keys()):
        reason = _wrong_in_request(message)
    if reason is None:
        return None
    return _error(named if id_fits else None, _INVALID_REQUEST, f"Invalid request: {reason}.")


def _wrong_in_request(message: Mapping[str, Any]) -> str | None:
    if not isinstance(message.get("method"), str):
        return "method: must be a string" if "method" in message else "method: is missing"
    if not isinstance(message.get("params") or {}, dict):
        return "params: must be an object"
    return None


def _error(named: str | int | None, code: int, message: str) -> JSONResponse:
    document = {"jsonrpc": "2.0", "id": named, "error": {"code": code, "message": message}}
    return JSONResponse(document, HTTPStatus.BAD_REQUEST)
