"""`anamnesis serve`: API and worker in one process; stores without an address are embedded."""

import asyncio
import gc
import os
import select
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
import uvicorn
import uvloop

from api.cli.shell import fail, settings_or_exit
from api.cli.start_warnings import warn_of_surroundings
from services.errors import AnamnesisError
from services.platform.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from graph.turns.runner import TurnRunner
    from services.llm.embeddings import Embedder

_STREAMS_END_S = 2
_LOOKS, _LOOK_AGAIN_S = 200, 0.005
_GRACE_S = {signal.SIGTERM: 30.0, signal.SIGINT: 1.0}
"""Seconds for running turns to finish, by signal: on SIGTERM users wait, on Ctrl-C a person at a terminal."""


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    open_console: Annotated[bool, typer.Option("--open", help="Open the console in a browser.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
    listening_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Start the service.

    Example: `anamnesis serve --port 8080`
    """
    settings = settings_or_exit(host=host, port=port)
    if workers > 1:
        raise typer.Exit(_supervise(settings, workers, open_console=open_console))
    gc.disable()  # until everything is imported: collections take a fifth of that time and find nothing
    try:
        listening = _listen(settings) if listening_fd is None else _take_over(listening_fd)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            shared = listening_fd is not None
            again = runner.run(_serve(settings, listening, shared=shared, open_console=open_console))
        if again:
            sys.stdout.flush()
            os.execv(sys.executable, [each for each in sys.orig_argv if each != "--open"])  # noqa: S606
    except AnamnesisError as error:
        fail(error.message)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _supervise(settings: Settings, workers: int, *, open_console: bool) -> int:
    from api.cli.processes import Processes  # noqa: PLC0415

    stores = ("database_url", "milvus_uri", "redis_url")
    if missing := [f"ANAMNESIS_{name.upper()}" for name in stores if getattr(settings, name) is None]:
        fail(f"--workers {workers} needs stores that processes can share; set {', '.join(missing)}")
    address = ["--host", settings.host, "--port", str(settings.port)]
    first_only = ["--open"] if open_console else []
    with _listen(settings) as listening:
        return asyncio.run(Processes(listening, address, first_only).run(workers))


def _take_over(listening_fd: int) -> socket.socket:
    """Return the supervisor's listening socket; child processes do not inherit it."""
    os.set_inheritable(listening_fd, False)
    return socket.socket(fileno=listening_fd)


async def _serve(settings: Settings, listening: socket.socket, *, shared: bool, open_console: bool) -> bool:
    """Serve until a signal or a defect; return whether to start again, with what was chosen meanwhile."""
    from services.bootstrap import open_services  # noqa: PLC0415
    from services.engines import migrate_if_owner, open_engines  # noqa: PLC0415
    from services.platform.tracing import TRACING  # noqa: PLC0415

    signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
    for number in _GRACE_S:
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    async with AsyncExitStack() as stack:
        TRACING.start(content=settings.otel_content)
        stack.push_async_callback(asyncio.to_thread, TRACING.stop)
        engines = await stack.enter_async_context(open_engines(settings, alone=True))
        # Milvus is still starting: import the rest meanwhile, which takes longer.
        from api.app import make_app  # noqa: PLC0415
        from api.connections import uvicorn_options  # noqa: PLC0415
        from graph.builder import build_graph  # noqa: PLC0415
        from graph.turns.runner import TurnRunner  # noqa: PLC0415

        await migrate_if_owner(engines)
        services = await stack.enter_async_context(open_services(settings, engines))
        await services.authenticator.check()
        runner = TurnRunner(build_graph(services).compile(), services)
        stack.push_async_callback(runner.close)
        runner.open()
        if settings.worker == "inline":
            services.jobs.start_worker()
        app = make_app(services, runner)
        restart = asyncio.Event()
        if not shared:  # of several processes each would have to
            app.state.restart = restart.set
        options = uvicorn_options(settings)
        server = _Server(uvicorn.Config(app, timeout_graceful_shutdown=_STREAMS_END_S, **options))
        rebuilding = asyncio.create_task(services.index_rebuild.keep_current(), name="rebuild of the indexes")
        stack.callback(rebuilding.cancel)
        await warn_of_surroundings(services)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        _greet(settings)
        if open_console:
            # A browser started in the foreground would block the service.
            threading.Thread(target=webbrowser.open, args=[f"{_address(settings)}/console"], daemon=True).start()
        finishing = asyncio.create_task(_finish_start(settings, services.embedder, app), name="end of the start")
        stack.callback(finishing.cancel)
        stopping, restarting = asyncio.create_task(signals.get()), asyncio.create_task(restart.wait())
        stack.callback(restarting.cancel)
        await asyncio.wait({serving, stopping, restarting}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            if not shared:  # otherwise other processes accept what waits
                await _accept_what_waits(listening)
            server.refuse_new_connections()
            await _drain(runner, _GRACE_S[stopping.result() if stopping.done() else signal.SIGINT], signals)
        server.should_exit = True
        await serving
    return restart.is_set() and not stopping.done()


async def _finish_start(settings: Settings, embedder: "Embedder", app: "FastAPI") -> None:
    """Finish the start after the service listens, then keep the process small."""
    from api.app import analyse_routes  # noqa: PLC0415
    from services.platform.heap import keep_giving_back  # noqa: PLC0415
    from services.warm_up import warm_up  # noqa: PLC0415

    await warm_up(settings, embedder)
    await asyncio.to_thread(analyse_routes, app)
    calm_garbage_collection()
    await keep_giving_back()


async def _accept_what_waits(listening: socket.socket) -> None:
    """Let the event loop accept the connections that the system has made.

    To close the socket would reset them, and a balancer could not tell whether their requests were carried out.
    While its queue admits none, the system makes no further ones: they are refused once the socket is closed.
    """
    listening.listen(0)
    waiting = select.poll()
    waiting.register(listening, select.POLLIN)
    for _ in range(_LOOKS):
        if not waiting.poll(0):
            return
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _drain(runner: "TurnRunner", grace_s: float, signals: "asyncio.Queue[signal.Signals]") -> None:
    """Let running turns finish; on a second signal end them at once."""
    finishing = asyncio.create_task(runner.close(grace_s))
    again = asyncio.create_task(signals.get())
    await asyncio.wait({finishing, again}, return_when=asyncio.FIRST_COMPLETED)
    if again.done():
        await runner.close(0)
    again.cancel()
    await finishing


def calm_garbage_collection() -> None:
    """Exclude the half million objects of the start from collections, and collect less often.

    A turn makes some ten thousand short-lived objects, which reference counting frees; Python's default
    looks for cycles after every 700. The youngest generation is small, because each collection of it halts the
    process, and the older ones are collected as rarely as a hundred times as many objects allow.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 100, 100)
    gc.enable()


class _Server(uvicorn.Server):
    """Uvicorn without its own signal handlers: on a signal the turns end first, then their streams."""

    def refuse_new_connections(self) -> None:
        """Stop listening; open connections are still served."""
        for listener in self.servers:
            listener.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(settings: Settings) -> socket.socket:
    """Take the port first, so that a second start ends at once with the reason."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        fail(f"port {settings.port} of {settings.host} cannot be used ({error.strerror}); set ANAMNESIS_PORT")
    return listening


def _address(settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def _greet(settings: Settings) -> None:
    """Print the addresses of the service, what it runs on, and how to talk to it."""
    address = _address(settings)
    embedded = [
        name
        for name, url in (
            ("PostgreSQL", settings.database_url),
            ("Milvus Lite", settings.milvus_uri),
            ("in-process Redis", settings.redis_url),
        )
        if url is None
    ]
    model = (
        settings.llm_model or "built-in offline model, which only quotes; set ANAMNESIS_LLM_MODEL for a real one"
    )
    body = '{"user_id": "me", "session_id": "first", "message": "My dog is called Bruno."}'
    lines = [
        f"Anamnesis is ready at {address}",
        f"  console    {address}/console",
        f"  embedded   {', '.join(embedded) + f'; data in {settings.data_dir}' if embedded else 'nothing'}",
        f"  model      {model}",
        f"  API docs   {address}/docs",
        f"  chat       {sys.argv[0]} chat",
        "  or",
        f"    curl -N {address}/api/v1/chat/stream -H 'Content-Type: application/json' \\",
        *([] if settings.auth == "none" else ['      -H "Authorization: Bearer $KEY" \\']),
        f"      -d '{body}'",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
