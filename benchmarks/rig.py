"""The servers that are compared on loopback, and the client that loads them: each a process of its own."""

import itertools
import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.load_client import Load, Samples
from benchmarks.processes import Weight, child, environment_without_settings, free_port, wait_for, weigh
from benchmarks.stand_in_llm import Api

_MESSAGE = "Tell me, in a few words, what you know about it."
_SERVE = "from api.cli.main import app; app()"
_USERS = 50
_SETTLE_S = 0.1
"""Pause after an answer, in which the server does work that still belongs to the turn."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Server:
    """A server under test."""

    name: str
    pid: int
    port: int
    path: str
    first_marker: str
    done_marker: str
    data: Path | None = None
    """Its data folder, if it has one."""

    def load(self, lanes: list[list[dict[str, str]]], concurrency: int) -> Load:
        """Turns for this server."""
        return Load(self.port, self.path, lanes, concurrency, self.first_marker, self.done_marker)


class Client:
    """The load client's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def measure(self, server: Server, load: Load) -> tuple[Samples, Weight, Weight]:
        """Send the turns; weigh the server before and after.

        Raises:
            RuntimeError: a turn failed.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("the client is piped")
        before = weigh(server.pid)
        self._process.stdin.write(json.dumps(asdict(load)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        time.sleep(_SETTLE_S)
        after = weigh(server.pid)
        if not line:
            raise RuntimeError("the load client ended")
        samples = Samples(**json.loads(line))
        if samples.failures:
            raise RuntimeError(
                f"{len(samples.failures)} turns of {server.name} failed; the first: {samples.failures[0]}"
            )
        return samples, before, after


def fresh_lanes(turns: int) -> list[list[dict[str, str]]]:
    """Turns that are each the first of a new conversation."""
    return [
        [{"user_id": f"user-{number % _USERS}", "session_id": f"new-{number}", "message": _MESSAGE}]
        for number in itertools.islice(_numbers, turns)
    ]


@contextmanager
def load_client() -> Iterator[Client]:
    """The load client, ready."""
    with child(["-m", "benchmarks.load_client"], piped=True) as process:
        yield Client(process)


@contextmanager
def stand_in() -> Iterator[int]:
    """The stand-in model's port."""
    with child(["-m", "benchmarks.stand_in_llm"], piped=True) as process:
        if process.stdout is None:
            raise AssertionError("it is piped")
        yield int(process.stdout.readline())


@contextmanager
def floor(base_url: str, api: Api) -> Iterator[Server]:
    """The floor, ready."""
    port = free_port()
    arguments = ["-m", "benchmarks.floor", str(port), base_url, api]
    with child(arguments, environment=environment_without_settings()) as process:
        wait_for(process, f"http://127.0.0.1:{port}/healthz")
        yield Server("floor", process.pid, port, "/chat", 'data: {"token"', "data: [DONE]")


@contextmanager
def service(
    base_url: str,
    api: Api,
    *,
    name: str = "ours",
    before: str = "",
    python: str | None = None,
    **variables: str,
) -> Iterator[Server]:
    """The service over new data, with further environment variables; ready, its engines too.

    `before` is Python that its process runs first; `python` the interpreter of another checkout, whose code runs.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o755)  # root's embedded PostgreSQL runs under another account
        environment = {
            **environment_without_settings(),
            "ANAMNESIS_DATA_DIR": str(folder / "data"),
            "ANAMNESIS_LLM_MODEL": "stand-in",
            "ANAMNESIS_LLM_BASE_URL": base_url,
            "ANAMNESIS_LLM_API": api,
            "ANAMNESIS_LLM_API_KEY": "x",
            "ANAMNESIS_LOG_LEVEL": "warning",
            **variables,
        }
        arguments = ["-c", f"{before}{_SERVE}", "serve", "--port", str(port)]
        with child(arguments, environment=environment, folder=folder, python=python) as process:
            wait_for(process, f"http://127.0.0.1:{port}/readyz", b'{"state":"ok"')
            yield Server(
                name, process.pid, port, "/api/v1/chat/stream", "event: token", "event: done", folder / "data"
            )


def interrupt_once(*_: Any) -> None:
    """Leave through the `finally` blocks, which end our processes; let nothing interrupt those."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
