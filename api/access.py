"""What a route may touch, for whom it acts, and how often."""

from typing import Annotated

from fastapi import Depends
from fastapi.openapi.models import HTTPBearer
from fastapi.requests import HTTPConnection
from fastapi.security.base import SecurityBase

from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.identity.caller import Caller, Scope


# Coroutines, though nothing is awaited: FastAPI would run plain functions in a thread each.
async def _services(connection: HTTPConnection) -> Services:
    services: Services = connection.state.services
    return services


async def _runner(connection: HTTPConnection) -> TurnRunner:
    runner: TurnRunner = connection.state.runner
    return runner


async def caller_of(connection: HTTPConnection) -> Caller:
    """Who sends the request; `api/early_authentication.py` may have found out already."""
    known: Caller | None = getattr(connection.state, "caller", None)
    if known is not None:
        return known
    services: Services = connection.state.services
    return await services.authenticator.caller_of(connection.headers.get("authorization"))


class _Bearer(SecurityBase):
    """What the OpenAPI document says of credentials."""

    scheme_name = "bearer"
    model = HTTPBearer(description="An API key or a token, as ANAMNESIS_AUTH says; with `none`, nothing.")


class _CallerWith(_Bearer):
    """The caller of a request, who must have a scope; the request counts against the tenant's limit."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def __call__(self, connection: HTTPConnection) -> Caller:
        caller = await caller_of(connection)
        caller.require(self._scope)
        services: Services = connection.state.services
        await services.rate_limits.count_request(caller.tenant_id)
        return caller


class _KnownCaller(_Bearer):
    """The caller of a request, whatever their scopes; the request counts against the tenant's limit."""

    async def __call__(self, connection: HTTPConnection) -> Caller:
        caller = await caller_of(connection)
        services: Services = connection.state.services
        await services.rate_limits.count_request(caller.tenant_id)
        return caller


class StartsTurns:
    """A caller who may start turns, by one request or by many over a WebSocket."""

    def __init__(self, connection: HTTPConnection, caller: Caller) -> None:
        self._connection = connection
        self.caller = caller

    async def caller_for(self, user_id: str) -> Caller:
        """Let one turn for the user begin; call it once for each.

        Raises:
            Unauthenticated: the key of an open socket was revoked, or its token has expired.
            NotFound: for this caller there is no such user.
            RateLimited: the user or the tenant has started too many.
        """
        caller = self.caller
        if self._connection.scope["type"] == "websocket":  # it may have been open for long
            caller = await caller_of(self._connection)
            caller.require("chat")
        caller.act_for(user_id)
        services: Services = self._connection.state.services
        await services.rate_limits.count_turn(caller.tenant_id, user_id)
        return caller


class _TurnStarter(_Bearer):
    """The caller of a request that starts turns: each is counted when it starts, the request is not."""

    async def __call__(self, connection: HTTPConnection) -> StartsTurns:
        caller = await caller_of(connection)
        caller.require("chat")
        return StartsTurns(connection, caller)


ServicesOf = Annotated[Services, Depends(_services)]
RunnerOf = Annotated[TurnRunner, Depends(_runner)]
TurnStarter = Annotated[StartsTurns, Depends(_TurnStarter())]
KnownCaller = Annotated[Caller, Depends(_KnownCaller())]
Chatter = Annotated[Caller, Depends(_CallerWith("chat"))]
MemoryReader = Annotated[Caller, Depends(_CallerWith("memory:read"))]
MemoryWriter = Annotated[Caller, Depends(_CallerWith("memory:write"))]
Admin = Annotated[Caller, Depends(_CallerWith("admin"))]
