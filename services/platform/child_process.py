"""Processes of the embedded engines, which live no longer than the service that started them."""

import asyncio
import ctypes
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import structlog

_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.25
_FIRST_WAIT_S = 0.5
_LONG_LIFE_S = 60.0
"""Seconds after which the end of a process is not blamed on its start."""

logger = structlog.get_logger(__name__)


def spawn(
    argv: Sequence[str | Path],
    *,
    log: Path,
    death_signal: signal.Signals,
    account: pwd.struct_passwd | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to `log`.

    It gets its own session, so that Ctrl-C in a terminal does not reach it directly, and, on Linux, `death_signal`
    from the kernel when this process dies, even of SIGKILL. The kernel watches the thread that forked: call this
    from one that lives as long as the process, such as the event loop's executor's.

    Raises:
        OSError: the program cannot be started.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(argument) for argument in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,
            env=environment,
            preexec_fn=die_with_parent(death_signal),  # noqa: PLW1509 — one system call, no lock taken
            **as_account(account),
        )


def as_account(account: pwd.struct_passwd | None) -> dict[str, Any]:
    """Return arguments for `subprocess` that run a program as a system account; none for the current account."""
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}


async def keep_running(
    name: str,
    process: Callable[[], "subprocess.Popen[bytes] | None"],
    start: Callable[[], None],
    *,
    log: Path,
    longest_wait_s: float,
) -> None:
    """Restart an engine whenever it ends by itself, until cancelled or until it is not ours to restart.

    It waits half a second, and twice as long after each further consecutive end.

    Args:
        name: of the engine, for the log.
        process: returns the running one; None if it was stopped, or if another process started it.
        start: starts another.
        log: where the engine writes.
        longest_wait_s: maximum seconds to wait.
    """
    wait_s = _FIRST_WAIT_S
    while (running := process()) is not None:
        begun = asyncio.get_running_loop().time()
        while (code := running.poll()) is None:  # noqa: ASYNC110 — no event announces a process's end
            await asyncio.sleep(_LOOK_S)
        if asyncio.get_running_loop().time() - begun > _LONG_LIFE_S:
            wait_s = _FIRST_WAIT_S
        logger.warning(f"{name} ended and is started again", code=code, in_s=wait_s, log=str(log))
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, longest_wait_s)
        try:
            await asyncio.to_thread(start)
        except OSError as error:
            logger.warning(f"{name} cannot be started", reason=str(error))


def stop(process: subprocess.Popen[bytes], how: signal.Signals, *, seconds: float) -> None:
    """Ask the process to end with the signal `how`; after `seconds` kill it."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_running(pid: int, program: str) -> bool:
    """Whether the process `pid` exists and `program` is part of its command line."""
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
    """Return what a new process must call to get `death_signal` when its parent dies; Linux only.

    Args:
        death_signal: for the new process.
        parent: its parent's id; None = this process.
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
