"""`anamnesis serve --workers N`: processes that share one listening socket, and their supervisor."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

import structlog
from prometheus_client.multiprocess import mark_process_dead

from services.platform.child_process import die_with_parent
from services.platform.exemplars import SHARED_FOLDER

log = structlog.get_logger(__name__)

_READY = b"Anamnesis is ready at"
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0
"""Seconds after which a process that ends is assumed to have started successfully."""


class Processes:
    """Starts processes, restarts those that end, and passes on signals.

    The supervisor keeps the socket open while processes come and go, so that a connection not yet accepted waits
    for the next process instead of being reset.
    """

    def __init__(self, listening: socket.socket, arguments: Sequence[str], first_only: Sequence[str] = ()) -> None:
        """Take what the processes share.

        Args:
            listening: the socket that all of them accept connections from.
            arguments: options of `anamnesis serve` for each of them.
            first_only: further options for the first process's first start.
        """
        self._listening = listening
        self._arguments = arguments
        self._first_only = first_only
        self._running: set[Process] = set()
        self._greeting: Process | None = None
        """Prints where the service is; what the others print is dropped."""
        self._stopping = asyncio.Event()
        self._how = signal.SIGTERM

    async def run(self, count: int) -> int:
        """Keep `count` processes running until a signal ends them; return the exit code.

        The first one starts alone: it updates the schema, and if it fails, for example because of wrong settings,
        everything ends.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop, number)
        with tempfile.TemporaryDirectory(prefix="anamnesis-metrics-") as folder:
            first = self._greeting = await self._start(folder, self._first_only)
            if not await self._is_ready(first, pass_on=True):
                code = await self._end_of(first, folder)
                return 0 if self._stopping.is_set() else code or 1
            others = [self._keep(None, folder) for _ in range(count - 1)]
            codes = await asyncio.gather(self._keep(first, folder), *others)
            return 0 if all(code in (0, -self._how) for code in codes) else 1

    def _stop(self, number: signal.Signals) -> None:
        """Refuse new connections and signal the processes; a second signal is passed on as well."""
        self._how = number
        self._stopping.set()
        self._listening.close()
        for process in self._running:
            self._tell(process)

    def _tell(self, process: Process) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            process.send_signal(self._how)

    async def _keep(self, process: Process | None, folder: str) -> int:
        """Keep one process running until all must end; return its exit code, 0 if there is none."""
        loop = asyncio.get_running_loop()
        pause_s = _FIRST_PAUSE_S
        code = 0
        while process is not None or not self._stopping.is_set():
            began = loop.time()
            if process is None:
                process = await self._start(folder)
                await self._is_ready(process)
            code = await self._end_of(process, folder)
            if self._stopping.is_set():
                break
            pause_s = _FIRST_PAUSE_S if loop.time() - began > _STEADY_S else pause_s
            log.error("process ended and is started again", pid=process.pid, exit_code=code, pause_s=pause_s)
            process, code = None, 0
            try:
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            except TimeoutError:
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return code

    async def _start(self, folder: str, further: Sequence[str] = ()) -> Process:
        descriptor = self._listening.fileno()
        command = [
            "-P",
            "-m",
            "anamnesis_agent",
            "serve",
            *self._arguments,
            *further,
            "--listening-fd",
            str(descriptor),
        ]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            stdout=PIPE,
            pass_fds=[descriptor],
            env={**os.environ, SHARED_FOLDER: folder},
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        self._running.add(process)
        if self._stopping.is_set():  # the signal arrived while it was starting
            self._tell(process)
        return process

    @staticmethod
    async def _is_ready(process: Process, *, pass_on: bool = False) -> bool:
        """Wait until the process serves, or has ended; with `pass_on`, print its greeting."""
        async for line in cast(asyncio.StreamReader, process.stdout):
            if line.startswith(_READY):
                if pass_on:
                    sys.stdout.write(line.decode())
                    sys.stdout.flush()
                return True
        return False

    async def _end_of(self, process: Process, folder: str) -> int:
        """Wait for the end of a process; return its exit code."""
        output = cast(asyncio.StreamReader, process.stdout)
        while lines := await output.read(4096):
            if process is self._greeting:
                sys.stdout.write(lines.decode())
                sys.stdout.flush()
        code = await process.wait()
        self._running.discard(process)
        mark_process_dead(process.pid, folder)  # type: ignore[no-untyped-call]
        return code
