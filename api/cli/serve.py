"""`anamnesis serve`: API and worker in one process; stores without an address are embedded."""

import asyncio
import gc
import os
import socket
import sys
from typing import Annotated

import typer
import uvloop

from api.cli.processes import Processes
from api.cli.shell import fail, settings_or_exit
from services.errors import AnamnesisError
from services.platform.settings import Settings


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
        from api.cli.serving import serve_until_stopped  # noqa: PLC0415 — a second, once the port is taken

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            shared = listening_fd is not None
            again = runner.run(serve_until_stopped(settings, listening, shared=shared, open_console=open_console))
        if again:
            sys.stdout.flush()
            os.execv(sys.executable, [each for each in sys.orig_argv if each != "--open"])  # noqa: S606
    except AnamnesisError as error:
        fail(error.message)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _supervise(settings: Settings, workers: int, *, open_console: bool) -> int:
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
