"""The HTTP application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from api import chat, health, reading
from api.body_limit import BodyLimit
from api.problems import add_problem_handlers
from api.schemas import MAX_BODY_BYTES
from graph.turns import TurnRunner
from services.bootstrap import Services


def make_app(services: Services, runner: TurnRunner) -> FastAPI:
    """The application over services that are open; whoever opened them closes them."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        yield {"services": services, "runner": runner}

    app = FastAPI(
        title="Anamnesis",
        summary="A self-hosted conversational agent service that remembers.",
        version=version("anamnesis"),
        lifespan=lifespan,
    )
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    add_problem_handlers(app)
    for routes in (chat.router, reading.router, health.router):
        app.include_router(routes)
    return app
