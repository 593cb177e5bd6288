"""Commands that run the service: `serve`, with API and worker in one process, `worker`; and `demo`."""

import asyncio
import gc
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from anamnesis_client import Anamnesis
from api.cli.service import over_http
from api.cli.shell import fail, read_settings
from services.platform.metrics import SHARED_FOLDER
from services.platform.settings import Settings


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    open_console: Annotated[bool, typer.Option("--open", help="Open the console in a browser.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that share the port.")] = 1,
) -> None:
    """Start the service.

    Example: `anamnesis serve --port 8080`
    """
    settings = read_settings(host=host, port=port)
    gc.disable()  # until everything is imported: collections take a fifth of that time and find nothing
    try:
        if workers > 1:
            raise typer.Exit(_serve_with(workers, settings, open_console=open_console))
        listening = listen(settings.host, settings.port)
        from api.cli import serving  # noqa: PLC0415 — a second, once the port is taken

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            again = runner.run(serving.serve_until_stopped(settings, listening, open_console=open_console))
            if not again:
                runner.run(serving.leave_threads())
        if again:
            sys.stdout.flush()
            os.execv(sys.executable, [each for each in sys.orig_argv if each != "--open"])  # noqa: S606
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _serve_with(workers: int, settings: Settings, *, open_console: bool) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="anamnesis-") as folder,
        listen(settings.host, settings.port) as listening,
    ):
        os.environ[SHARED_FOLDER] = folder  # the metrics library reads it when it is imported
        from api.cli.processes import serve_with  # noqa: PLC0415 — a second, once the port is taken

        return asyncio.run(serve_with(workers, settings, listening, Path(folder), open_console=open_console))


def listen(host: str, port: int, setting: str = "PORT") -> socket.socket:
    """Take a port first, so that a second start ends at once with the reason, which names `setting`."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        fail(f"port {port} of {host} cannot be used ({error.strerror}); set ANAMNESIS_{setting}")
    return listening


def worker() -> None:
    """Run background jobs for services started with ANAMNESIS_WORKER=external.

    Example: `ANAMNESIS_DATABASE_URL=postgresql://anamnesis:…@db/anamnesis anamnesis worker`
    """
    from api.cli.working import work  # noqa: PLC0415 — half a second, which other commands do without

    asyncio.run(work(read_settings()))


@over_http
def demo(
    service: Anamnesis,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the demo and all derived from it.")] = False,
) -> None:
    """Load a month of invented conversations in two languages, as a separate user.

    Example: `anamnesis demo`, and afterwards `anamnesis demo --remove`
    """
    if remove:
        service.request("DELETE", "demo")
        typer.echo("The demo is removed.")
        return
    loaded = service.request("POST", "demo")
    typer.echo(f"{loaded['turns']} turns of the user {loaded['user_id']}. The first page of a new chat in the")
    typer.echo("console opens them; `anamnesis demo --remove` removes all of it.")
