"""The HTTP application."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi_offline import FastAPIOffline
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute

from api import (
    administration,
    chat,
    conversations,
    episodes,
    erasures,
    events,
    experiments,
    experts,
    knowledge,
    memories,
    memory,
    model,
    pages,
    promises,
    prompt_memory,
    service,
    store,
    tool_accounts,
    transfer,
    turns,
    upkeep,
    users,
    visits,
)
from api.access import ProtectedDocs
from api.addresses import LOOPBACK_NAMES, Addresses, SameSite
from api.admission import Admission, Draining, EarlyAuthentication, RequestSpans, Turnstile
from api.anthropic import routes as anthropic
from api.browsers import Browsers
from api.console import demo
from api.frontends import routes as frontends
from api.mcp import http as mcp_http
from api.mcp.http import McpOverHttp
from api.openai import chat as openai_chat
from api.openai import conversations as openai_conversations
from api.openai import embeddings as openai_embeddings
from api.openai import models as openai_models
from api.openai import responses as openai_responses
from api.problems import add_problem_handlers, documented
from api.request_bodies import Refused, RequestBodies, refused
from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.platform.tracing import TRACING

_VERSION = version("anamnesis-agent")
_WITH_OWN_PROBLEMS = (
    *(openai_chat, openai_responses, anthropic, openai_models, openai_conversations, openai_embeddings),
)
_MODULES = (
    # Routers are tried in this order, each at a cost, so those of turns and of the store come first.
    *(chat, store, *_WITH_OWN_PROBLEMS, turns, administration, conversations, knowledge, experts, experiments),
    *(
        memory,
        memories,
        promises,
        events,
        prompt_memory,
        erasures,
        episodes,
        upkeep,
        visits,
        users,
        transfer,
        demo,
        service,
        model,
        frontends,
        tool_accounts,
    ),
    pages,
)
_ACCESS_PROBLEMS = documented(HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)


def make_app(services: Services, runner: TurnRunner) -> FastAPI:
    """Make the application over open services, which the caller closes."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        mcp = McpOverHttp(services)
        yield {"services": services, "runner": runner, "mcp": mcp}
        await mcp.close()

    # /docs loads nothing from another host; /redoc would load a picture.
    app = FastAPIOffline(
        redoc_url=None,
        title="Anamnesis",
        summary="A self-hosted conversational agent service that remembers.",
        version=_VERSION,
        lifespan=lifespan,
        routes=[*routes()],
    )
    app.add_middleware(Turnstile)
    app.add_middleware(RequestBodies, settings=services.settings)
    app.add_middleware(Admission, admit=runner.admit)
    if services.authenticator.is_needed:
        app.add_middleware(EarlyAuthentication, authenticator=services.authenticator, limits=services.rate_limits)
        app.add_middleware(anthropic.ApiKeyHeader)
        app.add_middleware(pages.ConsoleSession)
    names = None if services.authenticator.is_needed else LOOPBACK_NAMES | {services.settings.host}
    trusted = frozenset(services.settings.trusted_origins)
    if trusted:
        app.add_middleware(Browsers, origins=trusted)
    app.add_middleware(SameSite, hosts=names, trusted=trusted)
    app.add_middleware(Addresses)
    app.add_middleware(Draining, draining=lambda: runner.draining)
    app.mount("/guide", GZipMiddleware(pages.Guide(), minimum_size=500))
    app.mount("/console/static", GZipMiddleware(pages.console_files(), minimum_size=500))
    if TRACING.tracer is not None:
        app.add_middleware(RequestSpans)
    if services.settings.operations_protected:
        app.add_middleware(ProtectedDocs, services=services)
    add_problem_handlers(app)
    app.add_exception_handler(Refused, refused)
    return app


def analyse_routes() -> None:
    """Analyse every route with FastAPI now; otherwise the first request of each route would delay all others."""
    nowhere = {"type": "http", "method": "GET", "path": "/nowhere", "root_path": "", "headers": []}
    for route in routes():
        route.matches(nowhere)


@lru_cache(maxsize=1)
def routes() -> Sequence[BaseRoute]:
    """Return every route. Routes do not depend on an application; FastAPI analyses each when first used."""
    router = APIRouter()
    for module in _MODULES:
        for each in vars(module).values():
            if isinstance(each, APIRouter):
                own = module in _WITH_OWN_PROBLEMS or each is service.health_router
                router.include_router(each, responses={} if own else _ACCESS_PROBLEMS)
    return [*router.routes, *mcp_http.routes]
