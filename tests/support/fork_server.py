"""Processes of `anamnesis` for a tenth of the cost of a start: forks of a process that has imported everything.

An interpreter that imports the service and loads its dictionaries works for three seconds; a fork of one that has
done so works for milliseconds. The first test that needs the fork server starts it. It has one thread, opens
nothing, and ends with the process of tests that started it.
"""

import asyncio
import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

ROOT = Path(__file__).parents[2]
_ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "GRPC_ENABLE_FORK_SUPPORT": "0"}
_REQUEST_BYTES = 1 << 17
_NUMBER = struct.Struct("i")
_starting = threading.Lock()
_servers: dict[int, socket.socket] = {}
"""Connections to the fork server by process: a fork of this process has none."""


class ForkedProcess:
    """A command of `anamnesis` as a process, with the part of `subprocess.Popen`'s interface that tests use."""

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] = _ENVIRONMENT,
        folder: Path = ROOT,
        typed: bytes = b"",
        merged: bool = False,
        terminal: int | None = None,
    ) -> None:
        """Start it.

        Args:
            arguments: the command and its arguments; or `-c`, Python code and its arguments.
            environment: all of its variables; without settings unless given.
            folder: its working directory.
            typed: its standard input.
            merged: write errors to `stdout`, too.
            terminal: file descriptor of the terminal that controls it, to be used for all three streams.
        """
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        request = {
            "arguments": arguments,
            "environment": dict(environment),
            "folder": str(folder),
            "terminal": terminal is not None,
            "coverage": _coverage_file(),
        }
        self._status, theirs = socket.socketpair()
        with ExitStack() as stack:
            stack.enter_context(theirs)
            if terminal is None:
                given = stack.enter_context(TemporaryFile())
                given.write(typed)
                given.seek(0)
                self.stdout, written = _pipe()
                stack.callback(os.close, written)
                streams = [given.fileno(), written, written]
                if not merged:
                    self.stderr, streams[2] = _pipe()
                    stack.callback(os.close, streams[2])
            else:
                streams = [terminal]
            socket.send_fds(_connection(), [json.dumps(request).encode()], [theirs.fileno(), *streams])
        self.returncode: int | None = None
        self.pid = self._number()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; return what it wrote to its standard output and errors. Raises
        `subprocess.TimeoutExpired` if it still ran after `timeout` seconds, and is killed."""
        streams = [stream for stream in (self.stdout, self.stderr) if stream]
        with ExitStack() as stack, ThreadPoolExecutor() as threads:
            for stream in streams:
                stack.enter_context(stream)
            written = threads.map(lambda stream: stream.read(), streams)
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            out, *errors = written
        return out, "".join(errors)

    def poll(self) -> int | None:
        """Return its exit code if it has ended; a signal that ended it counts as a negative number."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit code. Raises `subprocess.TimeoutExpired` if it still runs after
        `timeout` seconds."""
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                self.returncode = self._number()
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("anamnesis", timeout or 0) from None
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        received = self._status.recv(_NUMBER.size)
        if not received:
            raise ConnectionError("the fork server has ended")
        return int(_NUMBER.unpack(received)[0])


def _coverage_file() -> str | None:
    """Return the file with the lines that this process' tests run; None while they are not counted."""
    try:
        from coverage import Coverage
    except ImportError:
        return None
    current = Coverage.current()
    return None if current is None else str(ROOT / current.config.data_file)


def _pipe() -> tuple[IO[str], int]:
    """Return the end to read from, and the file descriptor to write to."""
    reading, writing = os.pipe()
    return os.fdopen(reading), writing


def _connection() -> socket.socket:
    with _starting:
        if os.getpid() not in _servers:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _REQUEST_BYTES)
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    cwd=ROOT,
                    env=_ENVIRONMENT,
                )
            atexit.register(_end, ours, process)
            _servers[os.getpid()] = ours
        return _servers[os.getpid()]


def _end(connection: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    connection.close()
    process.wait(60)


def _serve(control: socket.socket) -> None:
    """Fork at every request; return in the fork, which is then ready for its command."""
    _import_everything()
    ended, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which end their processes
    running: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([control, ended], [], [])
        if ended in readable:
            ended.recv(4096)
            _report_ends(running)
            continue
        message, descriptors, _, _ = socket.recv_fds(control, _REQUEST_BYTES, 4)
        if not message:
            sys.exit()
        status = socket.socket(fileno=descriptors[0])
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            for connection in (control, ended, wakeup, status, *running.values()):
                connection.close()
            _become(json.loads(message), descriptors[1:])
            return
        for stream in descriptors[1:]:
            os.close(stream)
        running[pid] = status
        status.sendall(_NUMBER.pack(pid))


def _report_ends(running: dict[int, socket.socket]) -> None:
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with running.pop(pid) as connection, suppress(OSError):  # its parent may be gone
                connection.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["terminal"]:
        os.login_tty(streams[0])
    else:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    if request["coverage"]:
        _count_lines(request["coverage"])
    os.chdir(request["folder"])
    sys.argv[1:] = request["arguments"]


def _count_lines(file: str) -> None:
    """Count the lines that this process runs until it ends, and add them to those of the tests."""
    from coverage import Coverage

    counting = Coverage(data_file=file, data_suffix=True, config_file=str(ROOT / "pyproject.toml"))
    counting.set_option("run:disable_warnings", ["module-not-measured", "no-data-collected"])
    counting.start()
    atexit.register(counting.save)
    atexit.register(counting.stop)


def _import_everything() -> None:
    for module in ("api.app", "api.cli.main", "graph.turns.runner", "services.bootstrap", "services.warm_up"):
        importlib.import_module(module)
    from services.llm.builtin_embeddings import BuiltinEncoder
    from services.platform.settings import load_settings
    from services.warm_up import warm_up

    BuiltinEncoder().load()

    asyncio.run(warm_up(load_settings(llm_model="scripted", llm_api_key="none")))
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    if sys.argv[1] == "-c":
        code = sys.argv.pop(2)
        sys.argv.pop(0)
        exec(code, {"__name__": "__main__"})
    else:
        from api.cli.main import app

        app()
