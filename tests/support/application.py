"""The application over real HTTP, in the process of the test."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi.dependencies import models

from api.app import make_app
from api.connections import uvicorn_options
from api.tenant_routing import ServedShards
from graph.builder import build_graph
from graph.turns.runner import TurnRunner
from services.bootstrap import Services


@asynccontextmanager
async def running_turns(services: Services) -> AsyncIterator[TurnRunner]:
    """A turn runner over the services."""
    runner = TurnRunner(build_graph(services).compile(), services)
    runner.open()
    try:
        yield runner
    finally:
        await runner.close()


@asynccontextmanager
async def served(services: Services, runner: TurnRunner, shards: ServedShards | None = None) -> AsyncIterator[str]:
    """Serve the application; yield its address."""
    options = uvicorn_options(services.settings)
    config = uvicorn.Config(make_app(services, runner, shards), port=0, timeout_graceful_shutdown=1, **options)
    server = _Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        _forget_the_application()


def _forget_the_application() -> None:
    """FastAPI's caches keep what it inspected, and with it the services of every test so far."""
    for cached in vars(models).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


class _Server(uvicorn.Server):
    """Uvicorn that leaves pytest's signal handlers alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
