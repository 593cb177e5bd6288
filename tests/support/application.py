"""The application over real HTTP, in the process of the test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from socket import socket
from typing import Any, cast

import uvicorn
from fastapi.dependencies import models
from langgraph.pregel import _read

from api.app import make_app
from api.connections import uvicorn_options
from graph.builder import build_graph
from graph.turns.runner import TurnRunner
from services.bootstrap import Services, open_services
from services.engines import Engines
from services.platform.settings import Settings

# At every compilation LangGraph searches the bytecode of each node for graphs within the graph; there are none.
cast(Any, _read).find_subgraph_pregel = lambda _: None


@asynccontextmanager
async def running_turns(services: Services) -> AsyncIterator[TurnRunner]:
    runner = TurnRunner(build_graph(services).compile(), services)
    runner.open()
    try:
        yield runner
    finally:
        await runner.close()


@asynccontextmanager
async def served(services: Services, runner: TurnRunner) -> AsyncIterator[str]:
    """Serve the application; yield its address."""
    options = uvicorn_options(services.settings)
    config = uvicorn.Config(make_app(services, runner), port=0, timeout_graceful_shutdown=1, **options)
    server = _Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.end()
        await serving
        _forget_the_application()


@contextmanager
def serving(settings: Settings, engines: Engines) -> Iterator[str]:
    """Serve in a thread, for tests without an event loop; yield the address."""
    ready: Future[str] = Future()
    ends: list[Callable[[], object]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        ends.append(partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set))
        try:
            async with (
                open_services(settings, engines) as services,
                running_turns(services) as runner,
                served(services, runner) as address,
            ):
                ready.set_result(address)
                await stop.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(asyncio.run, serve())
        try:
            yield ready.result(60)
        finally:
            for end in ends:
                end()
        running.result(60)


def _forget_the_application() -> None:
    """Empty FastAPI's caches, which otherwise keep the services of all earlier tests."""
    for cached in vars(models).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


class _Server(uvicorn.Server):
    """Uvicorn that leaves pytest's signal handlers alone, and ends without its pauses of 0.2 s for each test."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ends = asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        self._ends.set()

    async def main_loop(self) -> None:
        """Wait until it is to end."""
        await self.on_tick(0)
        await self._ends.wait()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """End requests, in uvicorn's own way if one has not ended at once."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        for _ in range(20):
            if not self.server_state.connections and not self.server_state.tasks:
                await self.lifespan.shutdown()
                return
            await asyncio.sleep(0.002)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
