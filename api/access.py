"""Access to routes: scopes, the user for whom a caller acts, and rate limits."""

import base64
from dataclasses import dataclass, fields
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Query
from fastapi.openapi.models import HTTPBearer
from fastapi.requests import HTTPConnection
from fastapi.security.base import SecurityBase
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ASGIScope

from api.end_user import user_in_header
from api.problems import response_of
from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.conversations.values import Id, SpaceName
from services.errors import Forbidden, Unauthenticated
from services.identity.caller import Caller, Scope
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.operations import Trigger

ExpertQuery = Annotated[Id, Query(description="Name of the expert whose memory it is.")]
SpaceQuery = Annotated[
    SpaceName | None,
    Query(description="Name of the space in question; unset = what was said outside of any, which all share."),
]
"""Space whose memory is read or changed; without it, the memory that all spaces of the user share."""
PathId = Annotated[Id, Path()]
"""Name of a user, an expert or something else in a path."""
CONSOLE_HEADER = "X-Anamnesis-Console"
"""Header of every request of the console. A page of another site cannot send it without a CORS preflight."""
_DOCS = frozenset({"/docs", "/openapi.json"})


# A coroutine although nothing is awaited: FastAPI would run a plain function in a thread.
async def _services(connection: HTTPConnection) -> Services:
    services: Services = connection.state.services
    return services


async def caller_of(connection: HTTPConnection) -> Caller:
    """Return the caller, whom `api/admission.py` may already have identified."""
    known: Caller | None = getattr(connection.state, "caller", None)
    if known is not None:
        return known
    services: Services = connection.state.services
    return await services.authenticator.caller_of(await _authorization(connection))


async def _authorization(connection: HTTPConnection) -> str | None:
    """Return the `Authorization` header, or the one that a WebSocket's ticket stands for; a ticket works once."""
    sent = connection.headers.get("authorization")
    ticket = connection.query_params.get("ticket") if connection.scope["type"] == "websocket" else None
    if sent is not None or ticket is None:
        return sent
    if (redeemed := getattr(connection.state, "redeemed", None)) is None:
        services: Services = connection.state.services
        redeemed = connection.state.redeemed = await services.tickets.redeem(ticket)
    return str(redeemed)


async def is_operator(connection: HTTPConnection) -> bool:
    """Return whether the caller is an operator: an admin of the default tenant, or anybody without
    authentication. Raises `Unavailable` if the key cannot be checked now."""
    services: Services = connection.state.services
    if not services.settings.operations_protected:
        return True
    return await services.operators.include(connection.headers.get("authorization"))


async def _operator(connection: HTTPConnection) -> None:
    if not await is_operator(connection):
        raise _not_for_everybody()


def _not_for_everybody() -> Unauthenticated:
    return Unauthenticated("This needs the key of an admin of the default tenant (ANAMNESIS_PROTECT_OPERATIONS).")


@dataclass(frozen=True)
class ProtectedDocs:
    """ASGI middleware: requires an admin's key for the documentation; a browser sends it as the password.
    Nothing else accepts a password, because a browser would also send it with requests made by other sites."""

    app: ASGIApp
    services: Services

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Check the headers of requests for the documentation."""
        if scope["type"] == "http" and scope["path"] in _DOCS:
            sent = Headers(scope=scope).get("authorization", "")
            if not await self.services.operators.include(_password_as_bearer(sent)):
                response = response_of(_not_for_everybody(), path=scope["path"])
                response.headers["WWW-Authenticate"] = 'Basic realm="Anamnesis: any name, an admin\'s key"'
                await response(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _password_as_bearer(authorization: str) -> str:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return authorization
    try:
        return f"Bearer {base64.b64decode(encoded, validate=True).decode().partition(':')[2]}"
    except ValueError:
        return ""


class _Bearer(SecurityBase):
    """The OpenAPI description of credentials."""

    scheme_name = "bearer"
    model = HTTPBearer(description="An API key or a token, as ANAMNESIS_AUTH says; with `none`, nothing.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCaller(Caller):
    """The caller of a request, with the services and the turn runner."""

    services: Services
    runner: TurnRunner


class _CallerWith(_Bearer):
    """Dependency: the caller, who must have a scope, if one is given, and may act for the user in the path.

    The request counts towards the tenant's rate limit, so that guessing the names of users is limited as well.
    """

    def __init__(self, scope: Scope | None = None, *, by_header: bool = False) -> None:
        self._scope, self._by_header = scope, by_header

    async def __call__(self, connection: HTTPConnection) -> ServedCaller:
        caller = await caller_of(connection)
        if self._scope is not None:
            caller.require(self._scope)
        services: Services = connection.state.services
        if services.rate_limits is not None:
            await services.rate_limits.count_request(caller.tenant_id)
        if (user_id := connection.path_params.get("user_id")) is not None:
            caller.act_for(user_id)
        known = {each.name: getattr(caller, each.name) for each in fields(caller)}
        if self._by_header:
            known["user_id"] = user_in_header(caller, connection.headers, services.settings)
        return ServedCaller(**known, services=services, runner=connection.state.runner)


@dataclass(frozen=True)
class UserOfPath:
    """The user in a path, the caller, who may act for that user, and the services."""

    caller: ServedCaller
    user_id: str
    trigger: Trigger
    """Who writes, as memory notes it: the user in the console, elsewhere a program for the user."""

    @property
    def services(self) -> Services:
        """Return the services."""
        return self.caller.services

    @property
    def named(self) -> tuple[UUID, str]:
        """Return the tenant and the user's name, as services take them."""
        return self.caller.tenant_id, self.user_id

    async def owner(self, expert: str = "default", space: str | None = None, *, make_space: bool = False) -> Owner:
        """Return the owner of the memory that an expert has of the user, within a space or outside of any.
        Raises `NotFound` if there is no such user, expert or space."""
        return await self.services.memory.core.owner(*self.named, expert, space, make_space=make_space)


class _UserWith(_Bearer):
    """Dependency: the user in the path, for a caller who must have a scope."""

    def __init__(self, scope: Scope) -> None:
        self._caller = _CallerWith(scope)

    async def __call__(self, connection: HTTPConnection, user_id: PathId) -> UserOfPath:
        by = "console" if CONSOLE_HEADER in connection.headers else "api"
        return UserOfPath(await self._caller(connection), user_id, Trigger("user", details={"by": by}))


class StartsTurns:
    """A caller who may start turns, by one request or by many over a WebSocket."""

    def __init__(self, connection: HTTPConnection, caller: Caller) -> None:
        self._connection = connection
        self.caller = caller
        self.headers = connection.headers
        self.services: Services = connection.state.services
        self.runner: TurnRunner = connection.state.runner

    async def caller_for(self, user_id: str) -> Caller:
        """Check that a turn for the user may begin; call it once per turn.

        Raises:
            Unauthenticated: The key of an open socket was revoked, or its token has expired.
            NotFound: This caller may not know whether there is such a user.
            RateLimited: The user or the tenant has started too many turns.
        """
        caller = self.caller
        if self._connection.scope["type"] == "websocket":  # it may have been open for a long time
            caller = await caller_of(self._connection)
            caller.require("chat")
        caller.act_for(user_id)
        if self.services.rate_limits is not None:
            await self.services.rate_limits.count_turn(caller.tenant_id, user_id)
        if self.services.budgets is not None:
            await self.services.budgets.check(caller.tenant_id, user_id)
        return caller


class _TurnStarter(_Bearer):
    """Dependency: the caller of a request that starts turns; turns are counted at their start, not the request."""

    async def __call__(self, connection: HTTPConnection) -> StartsTurns:
        caller = await caller_of(connection)
        caller.require("chat")
        return StartsTurns(connection, caller)


FOR_OPERATORS = Depends(_operator)
ServicesOf = Annotated[Services, Depends(_services)]
TurnStarter = Annotated[StartsTurns, Depends(_TurnStarter())]
known_caller = _CallerWith()
KnownCaller = Annotated[ServedCaller, Depends(known_caller)]
Chatter = Annotated[ServedCaller, Depends(_CallerWith("chat"))]
MemoryReader = Annotated[ServedCaller, Depends(_CallerWith("memory:read"))]
MemoryWriter = Annotated[ServedCaller, Depends(_CallerWith("memory:write"))]
ClientChatter = Annotated[ServedCaller, Depends(_CallerWith("chat", by_header=True))]
"""Caller of an endpoint of `/v1` whose path names no user; a header of the request may."""
ClientReader = Annotated[ServedCaller, Depends(_CallerWith("memory:read", by_header=True))]
ClientWriter = Annotated[ServedCaller, Depends(_CallerWith("memory:write", by_header=True))]
Admin = Annotated[ServedCaller, Depends(_CallerWith("admin"))]
ReadUser = Annotated[UserOfPath, Depends(_UserWith("memory:read"))]
WrittenUser = Annotated[UserOfPath, Depends(_UserWith("memory:write"))]


async def _admin_of_service(caller: Admin) -> Caller:
    if caller.tenant_id != DEFAULT_TENANT:
        raise Forbidden("This needs a key of the default tenant.")
    return caller


OfServiceAdmins = Depends(_admin_of_service)
"""Dependency for admins of the default tenant: models belong to the whole service."""
