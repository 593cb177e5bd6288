"""What a route may touch, and for whom it acts."""

from typing import Annotated

from fastapi import Depends
from fastapi.requests import HTTPConnection

from graph.turns import TurnRunner
from services.bootstrap import Services
from services.identity.caller import NOBODY_IN_PARTICULAR, Caller, Scope


# Coroutines, though nothing is awaited: FastAPI would run plain functions in a thread each.
async def _services(connection: HTTPConnection) -> Services:
    services: Services = connection.state.services
    return services


async def _runner(connection: HTTPConnection) -> TurnRunner:
    runner: TurnRunner = connection.state.runner
    return runner


class _CallerWith:
    """The caller of a request, who must have a scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def __call__(self) -> Caller:
        caller = NOBODY_IN_PARTICULAR
        caller.require(self._scope)
        return caller


ServicesOf = Annotated[Services, Depends(_services)]
RunnerOf = Annotated[TurnRunner, Depends(_runner)]
Chatter = Annotated[Caller, Depends(_CallerWith("chat"))]
MemoryReader = Annotated[Caller, Depends(_CallerWith("memory:read"))]
MemoryWriter = Annotated[Caller, Depends(_CallerWith("memory:write"))]
Admin = Annotated[Caller, Depends(_CallerWith("admin"))]
