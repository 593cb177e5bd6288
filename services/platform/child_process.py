"""Processes of the embedded engines, which never outlive the service that started them."""

import asyncio
import ctypes
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import structlog

_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.25
STOP_S = 1.5
"""Seconds after which a process that was asked to end gets the second signal, and then SIGKILL."""
_FIRST_WAIT_S = 0.5
_LONG_LIFE_S = 60.0
"""Seconds after which the end of a process is not blamed on its start."""

logger = structlog.get_logger(__name__)


class Engine:
    """A program that this process starts, restarts when it ends by itself, and stops."""

    def __init__(
        self,
        name: str,
        log: Path,
        how_to_end: signal.Signals,
        *,
        longest_wait_s: float,
        hurry: signal.Signals = signal.SIGKILL,
    ) -> None:
        """Describe the program.

        Args:
            name: Name of the program in the service's log.
            log: File to which the program writes.
            how_to_end: Signal that ends it.
            longest_wait_s: Maximum seconds before a restart.
            hurry: Signal that it gets if it does not end soon.
        """
        self._name, self._log = name, log
        self._how_to_end, self._how_to_hurry = how_to_end, hurry
        self._longest_wait_s = longest_wait_s
        self._process: subprocess.Popen[bytes] | None = None
        """The running process; None if it was stopped, or if another process started it."""
        self._account: pwd.struct_passwd | None = None
        """System account that it runs as; None = the current one."""
        self._environment: Mapping[str, str] | None = None
        self._starting = threading.RLock()
        self._stopped = False

    async def supervise(self) -> None:
        """Restart it whenever it ends by itself, until cancelled or until another process owns it. The pause is
        half a second, and doubles with each further consecutive end."""
        wait_s = _FIRST_WAIT_S
        while (running := self._process) is not None:
            begun = asyncio.get_running_loop().time()
            while (code := running.poll()) is None:  # noqa: ASYNC110 — no event announces a process's end
                await asyncio.sleep(_LOOK_S)
            if asyncio.get_running_loop().time() - begun > _LONG_LIFE_S:
                wait_s = _FIRST_WAIT_S
            logger.warning(f"{self._name} ended and is started again", code=code, in_s=wait_s, log=str(self._log))
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, self._longest_wait_s)
            try:
                await asyncio.to_thread(self._spawn)
            except OSError as error:
                logger.warning(f"{self._name} cannot be started", reason=str(error))

    @asynccontextmanager
    async def running(self, start: Awaitable[None]) -> AsyncIterator[None]:
        """Start it, keep it running within this block, and stop it at the end."""
        try:
            await start
            supervising = asyncio.create_task(self.supervise(), name=f"supervision of {self._name}")
            try:
                yield
            finally:
                supervising.cancel()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop it if this process started it; it is not restarted."""
        await asyncio.to_thread(self._stop)

    def _command(self) -> Sequence[str | Path]:
        raise NotImplementedError

    def _spawn(self) -> None:
        """Start it; its output goes to its log.

        It gets its own session, so that Ctrl-C in a terminal does not reach it. On Linux the kernel signals it
        when this process dies, even by SIGKILL. The kernel watches the thread that forked, so call this in a
        thread that lives as long as the process, such as one of the event loop's executor. Raises `OSError` if the
        program cannot be started.
        """
        with self._starting:
            if self._stopped:
                return
            with self._log.open("ab") as output:
                self._process = subprocess.Popen(
                    [str(argument) for argument in self._command()],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd="/",
                    start_new_session=True,
                    env=self._environment,
                    preexec_fn=die_with_parent(self._how_to_end),  # noqa: PLW1509 — one system call, no lock taken
                    **as_account(self._account),
                )

    def _has_ended(self) -> bool:
        return self._stopped or (self._process is not None and self._process.poll() is not None)

    def _stop(self) -> None:
        with self._starting:  # a process that is just starting is stopped too
            self._stopped = True
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(self._how_to_end)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.send_signal(self._how_to_hurry)
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def as_account(account: pwd.struct_passwd | None) -> dict[str, Any]:
    """Return arguments for `subprocess` that run a program as a system account; none for the current account."""
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}


def is_running(pid: int, program: str) -> bool:
    """Return whether the process `pid` exists and has `program` in its command line."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and program in " ".join(process.cmdline())
    except psutil.Error:
        return False


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Check every 20 ms; return whether the condition became true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def die_with_parent(death_signal: signal.Signals, parent: int | None = None) -> Callable[[], None] | None:
    """Return a function that a new process calls to get `death_signal` when its parent dies; Linux only.

    Args:
        death_signal: Signal for the new process.
        parent: Id of its parent; None = this process.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = parent or os.getpid()

    def between_fork_and_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:  # the parent died before the line above
            os._exit(1)

    return between_fork_and_exec
