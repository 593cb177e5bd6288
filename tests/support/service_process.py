"""The service as its users run it: a process that is used over HTTP."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import orjson
import psutil

from services.platform.child_process import wait_until
from tests.support.fork_server import ROOT, ForkedProcess

READY = re.compile(r"Anamnesis is ready at (\S+)|The worker is ready")
_START_S = 300
"""Seconds for a start: with several processes, on a machine that does much else, it has taken two minutes."""


class ServiceProcess:
    """`anamnesis serve`, or another command that keeps running, with settings of the test's own."""

    def __init__(
        self,
        data_dir: Path,
        port: int,
        *,
        command: str = "serve",
        arguments: Sequence[str] = (),
        program: Sequence[str] = (),
        measured: bool = False,
        environment: Mapping[str, str] | None = None,
        **variables: str,
    ) -> None:
        """Take the settings.

        Args:
            data_dir: Folder of the embedded engines.
            port: Port on which it listens.
            command: The command.
            arguments: Arguments of the command.
            program: An installed `anamnesis` to start; empty = that of the checkout.
            environment: Other variables, by their whole names.
            variables: Settings, without their prefix.
        """
        self._arguments, self._program = (command, *arguments), program
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ANAMNESIS_", "COV"))},
            "ANAMNESIS_DATA_DIR": str(data_dir),
            "ANAMNESIS_PORT": str(port),
            "ANAMNESIS_MEMORY_RECALL_BUDGET_MS": "5000",  # a busy machine must not decide what a prompt holds
            **{f"ANAMNESIS_{name.upper()}": value for name, value in variables.items()},
            **(environment or {}),
        }
        self._data_dir = data_dir
        self.output: list[str] = []
        self.earlier = ""
        """Output before its last start."""
        self.url = f"http://127.0.0.1:{port}"
        self.process: ForkedProcess | subprocess.Popen[str] | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def text(self) -> str:
        """Return its output since its last start."""
        return "".join(self.output)

    def start(self) -> "ServiceProcess":
        """Start it and wait until it says that it is ready."""
        self.earlier += self.text
        self.output = []
        self.process = self._installed() if self._program else self._forked()
        ready = threading.Event()
        self._collecting = threading.Thread(target=self._collect, args=[self.process, ready], daemon=True)
        self._collecting.start()
        if not ready.wait(_START_S) or not READY.search(self.text):
            self.kill()
            raise AssertionError(f"the service did not start:\n{self.text}")
        return self

    def _forked(self) -> ForkedProcess:
        environment = {**self._environment, "PYTHONPATH": str(ROOT)}
        return ForkedProcess(*self._arguments, environment=environment, folder=self._data_dir.parent, merged=True)

    def _installed(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self._program, *self._arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._data_dir.parent,
            env=self._environment,
        )

    def settled(self) -> dict[str, str]:
        """Wait until all that it needs is well; return the states. What was just started is not well at first."""
        found: dict[str, Any] = {}

        def well() -> bool:
            nonlocal found
            found = httpx.get(f"{self.url}/readyz", timeout=60).json()
            return bool(found["state"] == "ok")

        assert wait_until(well, seconds=120), found
        return {each["name"]: each["state"] for each in found["dependencies"]}

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end; return its exit code."""
        assert self.process
        self.process.send_signal(how)
        return self.wait()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        if self.process is not None and self.alive:
            self.process.send_signal(number)

    def end(self) -> None:
        """Stop it, if it runs."""
        if self.alive:
            self.stop()

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        assert self.process
        self.process.kill()
        self.wait()

    def wait(self) -> int:
        """Wait for its end; return its exit code."""
        assert self.process
        code = self.process.wait(60)
        self._collecting.join(5)  # unless a process that it has left behind keeps the pipe open
        if self.process.stdout:
            self.process.stdout.close()
        return code

    def _collect(self, process: "ForkedProcess | subprocess.Popen[str]", ready: threading.Event) -> None:
        assert process.stdout
        try:
            for line in process.stdout:
                self.output.append(line)
                if READY.search(line):
                    ready.set()
        except ValueError:  # it was closed
            pass
        ready.set()


Event = tuple[int, str, Any]
"""Sequence, status and content."""


def events_of(lines: Iterator[str]) -> Iterator[Event]:
    """The events of a stream, their form checked."""
    number, name = 0, ""
    for line in lines:
        if line.startswith("id: "):
            number = int(line.removeprefix("id: "))
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = orjson.loads(line.removeprefix("data: "))
            assert set(data) == {"status", "content"}
            assert data["status"] == name
            yield number, name, data["content"]


def chat(url: str, message: str, **values: Any) -> list[Event]:
    """Send a message; return every event of its stream."""
    return list(stream(url, message, **values))


def stream(url: str, message: str, **values: Any) -> Iterator[Event]:
    """Send a message; yield the events of its stream as they come."""
    body = {"user_id": "u-1", "session_id": "s-1", "message": message, **values}
    with httpx.stream("POST", f"{url}/api/v1/chat/stream", json=body, timeout=60) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["x-accel-buffering"] == "no"
        yield from events_of(response.iter_lines())


def answer_of(events: list[Event]) -> str:
    """The answer; the stream's form is checked."""
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert events[-1][1] == "done", events[-1]
    answer = "".join(content for _, status, content in events if status == "token")
    assert events[-1][2]["answer"] == answer
    return answer


def messages_of(url: str, conversation_id: str) -> list[tuple[str, str, bool]]:
    """Role, content and completeness of a conversation's messages."""
    found = (
        httpx.get(f"{url}/api/v1/conversations/{conversation_id}/messages", timeout=60).raise_for_status().json()
    )
    return [(item["role"], item["content"], item["completed"]) for item in found["items"]]


def none_alive(processes: Iterable[psutil.Process]) -> bool:
    """Wait until none of the processes is running; return whether that happened in time."""

    def lives(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False

    return wait_until(lambda: not any(map(lives, processes)), seconds=60)
