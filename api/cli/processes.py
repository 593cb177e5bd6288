"""Runs `anamnesis serve --workers N`: processes that share a port and stores, supervised by one that serves
nothing.

The supervisor keeps the stores. The workers are forked from a server of `multiprocessing` that has imported what
they share.
"""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic

import structlog
import uvloop
from prometheus_client.multiprocess import mark_process_dead

from services.engines import Engines, migrate_if_owner, open_engines
from services.errors import AnamnesisError
from services.platform.child_process import die_with_parent
from services.platform.logs import configure_logs
from services.platform.settings import Settings

log = structlog.get_logger(__name__)

_SHARED = "api.cli.preloaded"
_SERVER = multiprocessing.get_context("forkserver")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ASKED = {0, *(-number for number in _SIGNALS)}
"""Exit codes of processes that ended normally."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_STEADY_S = 60.0
"""Seconds after which a process that ends counts as started successfully."""


async def serve_with(
    workers: int, settings: Settings, listening: socket.socket, folder: Path, *, open_console: bool
) -> int:
    """Keep workers running until a signal ends them; return the exit code.

    The first one starts alone: if it fails, for example because of wrong settings, everything ends. The socket
    stays open while workers are replaced: a connection that is not yet accepted waits for the next worker.

    Args:
        workers: Number of processes.
        settings: Settings of all of them.
        listening: Socket of the port that they share.
        folder: Folder for the metrics that they share, and the socket of their Redis.
        open_console: Whether to open the console in a browser once the service is ready.
    """
    signals: asyncio.Queue[signal.Signals] = asyncio.Queue()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    _SERVER.set_forkserver_preload([_SHARED])
    async with open_engines(settings, alone=True, processes=workers, shared_in=folder) as engines:
        await migrate_if_owner(engines)
        if engines.redis_url:
            settings = settings.model_copy(update={"redis_url": engines.redis_url})
        group = _Group(settings, listening, engines, folder, open_console=open_console)
        return await group.run(workers, signals)


class _Group:
    """The workers."""

    def __init__(
        self, settings: Settings, listening: socket.socket, engines: Engines, folder: Path, *, open_console: bool
    ) -> None:
        self._settings, self._listening, self._engines = settings, listening, engines
        self._folder = folder
        self._open_console = open_console
        self._running: dict[int, multiprocessing.process.BaseProcess] = {}
        self._served, self._stopping = asyncio.Event(), asyncio.Event()

    async def run(self, count: int, signals: "asyncio.Queue[signal.Signals]") -> int:
        """Run `count` workers until a signal, or until the first one ends too early; return the exit code."""
        stop, served = asyncio.create_task(signals.get()), asyncio.create_task(self._served.wait())
        keeping = [asyncio.create_task(self._keep(1))]
        await asyncio.wait({stop, served, *keeping}, return_when=asyncio.FIRST_COMPLETED)
        if not stop.done() and served.done():
            keeping += [asyncio.create_task(self._keep(number)) for number in range(2, count + 1)]
            await asyncio.wait({stop, *keeping}, return_when=asyncio.FIRST_COMPLETED)
        served.cancel()
        self._stopping.set()
        self._listening.close()
        passing = asyncio.create_task(self._pass_on(stop, signals))
        codes = await asyncio.gather(*keeping)
        for task in (stop, passing):
            task.cancel()
        return int(not _ASKED.issuperset(codes))

    async def _pass_on(
        self, first: "asyncio.Task[signal.Signals]", signals: "asyncio.Queue[signal.Signals]"
    ) -> None:
        """Pass a signal to this process on to the workers, and a second one too."""
        number = await first
        while True:
            for process in self._running.values():
                if process.pid is not None:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, number)
            number = await signals.get()

    async def _keep(self, number: int) -> int:
        """Run a worker, and start it again when it ends by itself; return the last exit code."""
        pause_s = _FIRST_PAUSE_S
        while True:
            began = monotonic()
            code = await self._work(number)
            if self._stopping.is_set() or not self._served.is_set():
                return code
            if monotonic() - began > _STEADY_S:
                pause_s = _FIRST_PAUSE_S
            name = f"worker {number}"
            log.error("process ended and is started again", process=name, exit_code=code, pause_s=pause_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
                return 0
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _work(self, number: int) -> int:
        """Run a worker until its process ends; return its exit code."""
        hearing, telling = _SERVER.Pipe(duplex=False)
        greets = not self._served.is_set()
        process = _SERVER.Process(
            target=_serve,
            args=(number, self._settings, self._listening, self._engines, telling),
            kwargs={"greets": greets, "open_console": greets and self._open_console},
        )
        await asyncio.to_thread(process.start)
        telling.close()  # its end is noticed when the process has ended
        self._running[number] = process
        if self._stopping.is_set():
            process.terminate()
        with hearing:
            while await _told(hearing):
                self._served.set()
        del self._running[number]
        await asyncio.to_thread(process.join)
        mark_process_dead(process.pid, self._folder)  # type: ignore[no-untyped-call]
        return process.exitcode or 0


async def _told(pipe: Connection) -> bool:
    """Wait for a message of the other process; return False once it has closed its end."""
    readable = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), readable.set)
    try:
        await readable.wait()
        pipe.recv()
    except EOFError:
        return False
    finally:
        asyncio.get_running_loop().remove_reader(pipe.fileno())
    return True


def _serve(
    number: int,
    settings: Settings,
    listening: socket.socket,
    engines: Engines,
    telling: Connection,
    *,
    greets: bool,
    open_console: bool,
) -> None:
    """Serve as one of the workers; the first one runs the background jobs."""
    from api.cli import serving  # noqa: PLC0415 — a hundred megabytes, which the process that keeps this one spares

    for each in _SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    os.setsid()  # Ctrl-C in a terminal reaches only the supervisor
    if guard := die_with_parent(signal.SIGTERM, os.getppid()):
        guard()
    configure_logs(settings.log_format, settings.log_level)
    structlog.contextvars.bind_contextvars(process=f"worker {number}")
    worker = serving.Worker(engines, runs_jobs=number == 1, greets=greets, tell=telling.send)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serving.serve_until_stopped(settings, listening, worker, open_console=open_console))
    except AnamnesisError as error:
        sys.exit(f"anamnesis: {error.message}")
