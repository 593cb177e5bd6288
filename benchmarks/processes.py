"""Processes of the benchmark: started, waited for, weighed, and ended by their id."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
_STOP_S = 15.0


@dataclass(frozen=True)
class Weight:
    """Resources that a process and its descendants have used, the PostgreSQL processes apart."""

    cpu_s: float
    """User and system time since they began."""
    own_cpu_s: float
    """CPU of the process alone."""
    postgres_cpu_s: float
    rss_mb: float
    """Resident memory of the process alone."""
    tree_rss_mb: float


@contextmanager
def child(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path = ROOT,
    piped: bool = False,
    python: str | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Run this Python with the arguments; end it, and whatever it left behind, with the block.

    `piped` connects its standard input and output; otherwise its output is dropped. `python` is another
    interpreter.
    """
    inner = subprocess.PIPE if piped else subprocess.DEVNULL
    process = subprocess.Popen(
        [python or sys.executable, *arguments],
        stdin=inner,
        stdout=inner,
        cwd=folder,
        env=environment,
        text=True,
        start_new_session=True,  # Ctrl-C reaches it through us, once
    )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    descendants: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        descendants = psutil.Process(process.pid).children(recursive=True)
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _, alive = psutil.wait_procs(descendants, timeout=5)
    for left in alive:
        with contextlib.suppress(psutil.Error):
            left.kill()


def weigh(pid: int) -> Weight:
    """Weigh the process and its descendants."""
    top = psutil.Process(pid)
    own = cpu = cpu_s(pid)
    postgres, tree_rss = 0.0, top.memory_info().rss
    for process in top.children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError):
            if "postgres" in process.name() or any("postgres" in part for part in process.cmdline()[:1]):
                postgres += cpu_s(process.pid)
            else:
                cpu += cpu_s(process.pid)
                tree_rss += process.memory_info().rss
    return Weight(cpu, own, postgres, top.memory_info().rss / 2**20, tree_rss / 2**20)


def cpu_s(pid: int) -> float:
    """Return the seconds of user and system time that one process has used, its children apart."""
    if sys.platform == "linux":
        # The process's CPU clock (see clock_getcpuclockid): nanoseconds, where /proc counts in 10 ms.
        return time.clock_gettime((~pid << 3) | 2)
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(process: subprocess.Popen[str], url: str, beginning: bytes = b"", *, seconds: float = 90.0) -> None:
    """Wait until the address answers with 200 and a body that begins so.

    Raises:
        RuntimeError: the process ended, or did not answer in time.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the process behind {url} ended with {process.returncode}")
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
            if answer.read().startswith(beginning):
                return
        time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer")


def environment_without_settings() -> dict[str, str]:
    """Our environment without what would configure the service or the SDK."""
    prefixes = ("ANAMNESIS_", "OPENAI_", "LANGCHAIN_", "LANGSMITH_")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
