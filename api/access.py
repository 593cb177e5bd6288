"""What a route may touch, and for whom it acts."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends
from fastapi.requests import HTTPConnection

from graph.turns import TurnRunner
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT


# Coroutines, though nothing is awaited: FastAPI would run plain functions in a thread each.
async def _services(connection: HTTPConnection) -> Services:
    services: Services = connection.state.services
    return services


async def _runner(connection: HTTPConnection) -> TurnRunner:
    runner: TurnRunner = connection.state.runner
    return runner


async def _tenant() -> UUID:
    return DEFAULT_TENANT


ServicesOf = Annotated[Services, Depends(_services)]
RunnerOf = Annotated[TurnRunner, Depends(_runner)]
TenantOf = Annotated[UUID, Depends(_tenant)]
