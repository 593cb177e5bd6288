"""The HTTP application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi_offline import FastAPIOffline

from api import chat, health, jobs, reading, users
from api.body_limit import BodyLimit, TooLarge, too_large_response
from api.problems import add_problem_handlers
from api.same_host import LOOPBACK_NAMES, SameHost
from graph.turns import TurnRunner
from services.bootstrap import Services


def make_app(services: Services, runner: TurnRunner) -> FastAPI:
    """The application over services that are open; whoever opened them closes them."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        yield {"services": services, "runner": runner}

    # Its page /docs loads nothing from another host; /redoc would load a picture.
    app = FastAPIOffline(
        redoc_url=None,
        title="Anamnesis",
        summary="A self-hosted conversational agent service that remembers.",
        version=version("anamnesis"),
        lifespan=lifespan,
    )
    app.add_middleware(BodyLimit)
    if services.settings.auth == "none":
        app.add_middleware(SameHost, hosts=LOOPBACK_NAMES | {services.settings.host})
    add_problem_handlers(app)
    app.add_exception_handler(TooLarge, _too_large)
    for routes in (chat.router, reading.router, users.router, jobs.router, health.router):
        app.include_router(routes)
    return app


async def _too_large(_: Request, __: Exception) -> Response:
    return too_large_response()
