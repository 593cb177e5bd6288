"""The worker's own HTTP: whether it is alive, and its metrics, on a port of their own."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from api.connections import Server, uvicorn_options
from services.bootstrap import Services
from services.errors import Unavailable
from services.health import measure
from services.platform.metrics import exposition


def worker_app(services: Services) -> Starlette:
    """Make the application of a worker. Who may read the metrics is as for the service."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok")

    async def metrics(request: Request) -> Response:
        if services.settings.operations_protected:
            try:
                known = await services.operators.include(request.headers.get("authorization"))
            except Unavailable as error:
                return PlainTextResponse(error.message, 503)
            if not known:
                return PlainTextResponse("This needs the key of an admin of the default tenant.", 401)
        await measure(services)
        content, media_type = exposition(request.headers.get("accept", ""))
        return Response(content, media_type=media_type)

    return Starlette(routes=[Route("/healthz", healthz), Route("/metrics", metrics)])


@asynccontextmanager
async def served(services: Services, listening: socket.socket) -> AsyncIterator[None]:
    """Serve a worker's metrics on a socket that is taken already."""
    options = uvicorn_options(services.settings)
    server = Server(uvicorn.Config(worker_app(services), timeout_graceful_shutdown=1, **options))
    serving = asyncio.create_task(server.serve(sockets=[listening]), name="metrics of the worker")
    try:
        yield
    finally:
        server.should_exit = True
        await serving
