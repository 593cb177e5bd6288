"""The MCP server over HTTP at `/mcp`, made with the first request.

Only clients of the older protocol that can ask their user have a session, which lives in this process.
"""

import asyncio
import re
from collections.abc import Hashable
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

from fastapi.requests import HTTPConnection
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.datastructures import URL, Headers
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from api.access import known_caller
from api.end_user import end_user_of, header_text
from api.problems import invalid_fields, response_of
from api.request_bodies import Replayed, parsed
from services.bootstrap import Services
from services.conversations.values import space_name
from services.errors import AnamnesisError, InvalidInput, NotFound
from services.identity.caller import Scope as Permission

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


MCP_PATH = "/mcp"
SPACE_HEADER = "X-Anamnesis-Space"
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]{1,64}){1,8}")
METADATA_PATH = f"/.well-known/oauth-protected-resource{MCP_PATH}"
_SCOPES: list[Permission] = ["memory:read", "memory:write"]
"""Scopes that the tools need. Clients ask for all that are named here, and a token with `admin` has no user."""


def public_address(scope: Scope, path: str) -> URL:
    """Return the address by which the client reaches a path, below the prefix that a proxy removes and names."""
    prefix = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
    if not _PREFIX.fullmatch(prefix):
        prefix = ""
    return URL(scope=scope).replace(path=f"{prefix}{path}", query="")


def challenge(scope: Scope) -> str:
    """Return the value of `WWW-Authenticate` for a request."""
    if scope["path"] != MCP_PATH:
        return "Bearer"
    address = public_address(scope, METADATA_PATH)
    return f'Bearer resource_metadata="{address}"'


class McpOverHttp:
    """Answers the requests of assistants; makes the server with the first one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._opening = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._asking: StreamableHTTPSessionManager | None = None
        """Manager for clients of the older protocol that can ask their user: the user's answer comes in a
        request of its own, and the session leads it to its question."""
        self._owners: dict[str, Hashable] = {}
        """Owner of each session; nobody else may answer in it."""
        self._running: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of a known caller."""
        connection = HTTPConnection(scope)
        try:
            caller = await known_caller(connection)
            user_id = end_user_of(caller, connection.headers, self._services.settings)
            space = _space_of(connection)
        except AnamnesisError as error:
            await response_of(error, path=MCP_PATH)(scope, receive, send)
            return
        scope["state"]["acting"] = (caller, user_id, space)
        body = b""
        if connection.headers.get("content-type", "").startswith("application/json"):
            message = await receive()  # the whole body: `api/request_bodies.py` has waited for it
            receive, body = Replayed(receive, message), message.get("body", b"")
            if len(body) <= MOST_BYTES and (refused := await refusal(body)) is not None:
                await refused(scope, receive, send)
                return
        manager, asking = await self._opened()
        owner = (caller.tenant_id, user_id)
        session = connection.headers.get(_SESSION, "")
        if session in self._owners and self._owners[session] == owner:
            await asking.handle_request(scope, receive, send)
        elif not session and len(body) <= MOST_BYTES and await can_ask(body):
            await asking.handle_request(scope, receive, partial(self._note, owner, send))
        else:
            scope["state"]["asks_elsewhere"] = bool(session)
            await manager.handle_request(scope, receive, send)

    async def _note(self, owner: Hashable, send: Send, message: Message) -> None:
        """Pass on the beginning of a session, and note its owner."""
        if message["type"] == "http.response.start":
            session = Headers(raw=message["headers"]).get(_SESSION)
            if session is not None:
                while len(self._owners) >= MOST_SESSIONS:
                    del self._owners[next(iter(self._owners))]
                self._owners[session] = owner
        await send(message)

    async def close(self) -> None:
        """Close the server, if one was made."""
        self._stop.set()
        if self._running is not None:
            await self._running

    async def _opened(self) -> "tuple[StreamableHTTPSessionManager, StreamableHTTPSessionManager]":
        async with self._opening:
            if self._manager is None or self._asking is None:
                manager, asking = await asyncio.to_thread(_make_managers, self._services)
                started = asyncio.get_running_loop().create_future()
                # The task that opens them must also close them, so it cannot be the task of a request.
                self._running = asyncio.create_task(self._run(manager, asking, started))
                await started
                self._manager, self._asking = manager, asking
            return self._manager, self._asking

    async def _run(
        self,
        manager: "StreamableHTTPSessionManager",
        asking: "StreamableHTTPSessionManager",
        started: "asyncio.Future[None]",
    ) -> None:
        try:
            async with manager.run(), asking.run():
                started.set_result(None)
                await self._stop.wait()
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)


def _space_of(connection: HTTPConnection) -> str | None:
    """Return the user's space for this connection, such as that of a project; None = none. Raises
    `InvalidInput` if the name is not valid for a space."""
    if not (named := header_text(connection.headers, SPACE_HEADER)):
        return None
    try:
        return space_name(named)
    except ValueError as error:
        raise InvalidInput(SPACE_HEADER, str(error)) from error


def _make_managers(services: Services) -> "tuple[StreamableHTTPSessionManager, StreamableHTTPSessionManager]":
    from api.mcp.server import make_manager  # noqa: PLC0415 — a third of a second and 15 MB, for those who use it

    return make_manager(services), make_manager(services, asks=True)


class _Endpoint:
    """Endpoint that passes requests to the application's own MCP server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        serving: McpOverHttp = scope["state"]["mcp"]
        await serving.answer(scope, receive, send)


async def _metadata(request: HTTPConnection) -> JSONResponse:
    """Return where tokens for `/mcp` come from (RFC 9728); 404 if no tokens are used."""
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
"""Maximum bytes of a request; the arguments of a tool are a few sentences."""
_SESSION = "mcp-session-id"
MOST_SESSIONS = 1_000
"""Maximum sessions of clients that can ask their user; users of older sessions are no longer asked."""
_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


class _Message(BaseModel):
    """A message of JSON-RPC, with the fields of a response that are read here."""

    model_config = ConfigDict(strict=True)

    jsonrpc: Literal["2.0"]
    id: str | int = ""


class _Request(_Message):
    """A request, or a notification."""

    method: str
    params: dict[str, Any] | None = None


async def refusal(body: bytes) -> JSONResponse | None:
    """Return the error answer to a body that is no message of JSON-RPC 2.0; None = it is one."""
    code = _INVALID_REQUEST
    try:
        found = await parsed(body)
        if not isinstance(found, dict):
            raise InvalidInput("body", "must be one message, a JSON object")
        (_Message if {"result", "error"} & found.keys() else _Request).model_validate(found)
    except InvalidInput as error:
        reason = f"Invalid request: {error.field}: {error.message}."
    except ValidationError as error:
        reason = f"Invalid request: {invalid_fields(error.errors(), {}).detail}."
    except (ValueError, RecursionError):
        code, reason = _PARSE_ERROR, "Parse error: the body is not valid JSON."
    else:
        return None
    document = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": reason}}
    return JSONResponse(document, HTTPStatus.BAD_REQUEST)


async def can_ask(body: bytes) -> bool:
    """Return whether a checked message begins a session of a client that can ask its user."""
    found = await parsed(body) if body else {}
    if found.get("method") != "initialize":
        return False
    params = found.get("params")
    capabilities = params.get("capabilities") if isinstance(params, dict) else None
    return isinstance(capabilities, dict) and capabilities.get("elicitation") is not None
