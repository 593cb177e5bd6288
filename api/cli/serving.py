"""The process of the service: API and worker on a socket that is already bound, until a signal."""

import asyncio
import gc
import os
import select
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import structlog
import uvicorn

from api.app import analyse_routes, make_app
from api.cli.working import warn_of_surroundings
from api.connections import Server, uvicorn_options
from api.pages import SITE
from graph.builder import build_graph
from graph.turns.runner import TurnRunner
from services.bootstrap import Services, open_services
from services.engines import Engines, migrate_if_owner, open_engines
from services.llm.chat_models import ChatModels
from services.llm.offered_models import is_own
from services.platform.heap import calm_garbage_collection, keep_giving_back, use_large_pages
from services.platform.outgoing import OutgoingHttp
from services.platform.settings import Settings
from services.platform.tracing import TRACING
from services.platform.watchdog import ended_when_it_hangs
from services.warm_up import load_encoder, warm_up

log = structlog.get_logger(__name__)

_STREAMS_END_S = 2
_THREADS_END_S = 0.5
_LOOKS, _LOOK_AGAIN_S = 200, 0.005
_GRACE_S = {signal.SIGTERM: 30.0, signal.SIGINT: 1.0}
"""Seconds in which running turns may finish: on SIGTERM users wait, on Ctrl-C a person at a terminal."""


@dataclass(frozen=True)
class Worker:
    """One of several processes that share a port, on stores that another process keeps."""

    engines: Engines
    runs_jobs: bool
    greets: bool
    """Whether it prints the address of the service."""
    tell: Callable[[object], None]
    """Called when it begins to serve."""


async def serve_until_stopped(
    settings: Settings, listening: socket.socket, worker: Worker | None = None, *, open_console: bool = False
) -> bool:
    """Serve until a signal or a defect; return whether to start again with settings that were chosen meanwhile."""
    signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
    for number in _GRACE_S:
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    async with AsyncExitStack() as stack:
        TRACING.start(content=settings.otel_content)
        stack.push_async_callback(asyncio.to_thread, TRACING.stop)
        await stack.enter_async_context(ended_when_it_hangs(settings.hang_exit_s))
        encoder = asyncio.create_task(load_encoder(settings), name="encoder")
        if worker is None:
            engines = await stack.enter_async_context(open_engines(settings, alone=True))
            await migrate_if_owner(engines)
        else:
            engines = worker.engines
        services = await stack.enter_async_context(open_services(settings, engines))
        await services.authenticator.check()
        runner = TurnRunner(build_graph(services).compile(), services)
        stack.push_async_callback(runner.close)
        runner.open()
        if settings.worker == "inline" and (worker is None or worker.runs_jobs):
            services.jobs.start_worker()
        app = make_app(services, runner)
        restart = asyncio.Event()
        if worker is None:  # several processes would each have to restart
            app.state.restart = restart.set
        options = uvicorn_options(settings)
        server = Server(uvicorn.Config(app, timeout_graceful_shutdown=_STREAMS_END_S, **options))
        rebuilding = asyncio.create_task(services.index_rebuild.keep_current(), name="rebuild of the indexes")
        stack.callback(rebuilding.cancel)
        await warn_of_surroundings(services)
        await encoder
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        if worker is None or worker.greets:
            _greet(settings)
        if worker is not None:
            worker.tell("ready")
        if open_console:
            # A browser started in the foreground would block the service.
            threading.Thread(target=webbrowser.open, args=[f"{settings.address}/console"], daemon=True).start()
        finish = _finish_start(settings, services, alone=worker is None)
        finishing = asyncio.create_task(finish, name="end of the start")
        stack.callback(finishing.cancel)
        stopping, restarting = asyncio.create_task(signals.get()), asyncio.create_task(restart.wait())
        stack.callback(restarting.cancel)
        await asyncio.wait({serving, stopping, restarting}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            if worker is None:  # otherwise other processes accept waiting connections
                await _accept_what_waits(listening)
            server.refuse_new_connections()
            await _drain(runner, _GRACE_S[stopping.result() if stopping.done() else signal.SIGINT], signals)
        server.should_exit = True
        await serving
    return restart.is_set() and not stopping.done()


async def leave_threads() -> None:
    """End the process at once if a thread still works, for example on an embedding that nobody waits for.

    Objects are not cleaned up, which after a large import would take two seconds.
    """
    gc.freeze()
    ending = asyncio.create_task(asyncio.get_running_loop().shutdown_default_executor())
    if not (await asyncio.wait({ending}, timeout=_THREADS_END_S))[0]:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


async def _finish_start(settings: Settings, services: Services, *, alone: bool) -> None:
    """Finish the start after the service listens, then keep the process small.

    Only a process that is `alone` moves its objects; several processes share the objects of the one that forked
    them.
    """
    await _refuse_own_address(settings, services.models)
    await warm_up(settings, services.embedder)
    await asyncio.to_thread(analyse_routes)
    calm_garbage_collection()
    if alone:
        await asyncio.to_thread(use_large_pages)
    await keep_giving_back()


async def _refuse_own_address(settings: Settings, models: ChatModels) -> None:
    """Disable a model whose address leads back to this service, for example through a proxy.

    The service recognises itself by its list of models, so it must already listen.
    """
    if settings.llm_model is None or settings.llm_base_url is None:
        return
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    http = OutgoingHttp()
    try:
        if await is_own(http, settings.llm_base_url, key, settings.llm_model):
            models.refuse_own_address()
            log.error(
                "the model's address leads to an Anamnesis service; no model is asked", at=settings.llm_base_url
            )
    finally:
        await http.close()


async def _accept_what_waits(listening: socket.socket) -> None:
    """Let the event loop accept the connections that the system has already made.

    Closing the socket would reset them, and a balancer could not tell whether their requests were carried out.
    While the queue of the socket admits none, the system makes no new connections; after closing they are refused.
    """
    listening.listen(0)
    waiting = select.poll()
    waiting.register(listening, select.POLLIN)
    for _ in range(_LOOKS):
        if not waiting.poll(0):
            return
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _drain(runner: TurnRunner, grace_s: float, signals: "asyncio.Queue[signal.Signals]") -> None:
    """Let running turns finish; on a second signal end them at once."""
    finishing = asyncio.create_task(runner.close(grace_s))
    again = asyncio.create_task(signals.get())
    await asyncio.wait({finishing, again}, return_when=asyncio.FIRST_COMPLETED)
    if again.done():
        await runner.close(0)
    again.cancel()
    await finishing


def _greet(settings: Settings) -> None:
    """Print the addresses of the service, what it runs on, and how to talk to it."""
    address = settings.address
    embedded = [
        name
        for name, url in (
            ("PostgreSQL", settings.database_url),
            ("Milvus Lite", settings.milvus_uri),
            ("in-process Redis", settings.redis_url),
        )
        if url is None
    ]
    model = settings.llm_model or "built-in offline model, which only quotes; choose one in the console"
    body = '{"user_id": "me", "session_id": "first", "message": "My dog is called Bruno."}'
    lines = [
        f"Anamnesis is ready at {address}",
        f"  console    {address}/console",
        f"  guide      {f'{address}/guide' if SITE.is_dir() else 'not in this installation'}",
        f"  API docs   {address}/docs",
        f"  embedded   {', '.join(embedded) + f'; data in {settings.data_dir}' if embedded else 'nothing'}",
        f"  model      {model}",
        "  stop       Ctrl-C",
        "  more       anamnesis demo, anamnesis chat; in a checkout: make demo, make chat",
        f"  try        curl -N {address}/api/v1/chat/stream -H 'Content-Type: application/json' \\",
        *([] if settings.auth == "none" else ['               -H "Authorization: Bearer $KEY" \\']),
        f"               -d '{body}'",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
