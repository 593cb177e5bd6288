"""Milvus Lite as a child process on a loopback port.

It is a separate process because it is pure Python, so inside the service it would hold the interpreter's lock, and
because only one process may open its data folder. A file notes its port for other processes. It is started when it
is first needed; a process that needs it says so by touching a file.

It keeps in memory whatever was used since its start, and its allocators keep up to eight times as much unless told
to be frugal (`_FRUGAL`). The rest is bounded by a restart: when it has grown large, it is started again while
unused.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import structlog

from services.errors import ConfigurationError
from services.platform import child_process

log = structlog.get_logger(__name__)

_START_SECONDS = 60.0
_LONGEST_WAIT_SECONDS = 30.0
_LOOK_S, _LOOK_AT_SIZE_S = 0.1, 1.0
_UNUSED_S = 5.0
"""Seconds without a request after which a large server may be restarted."""
_CLOCK_S = 2.0
"""Tolerated seconds between two processes' readings of when a third began."""
_LIVES_AT_LEAST = 60
"""Minimum lifetime in multiples of `unused_s`; otherwise a heavy user would wait for every restart."""
_LARGE_BYTES = 512 << 20
_FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "MALLOC_TRIM_THRESHOLD_": "131072"}


@dataclass(frozen=True)
class Standby:
    """The server as any process of the machine sees it: asleep until a process needs it."""

    data_dir: Path

    @property
    def note(self) -> Path:
        """Return the file that notes its port and its state."""
        return self.data_dir / "milvus.json"

    @property
    def needed(self) -> Path:
        """Return the file that is touched whenever a process needs it."""
        return self.data_dir / "milvus.used"

    @property
    def indexed_with(self) -> Path:
        """Return the file that notes the embedding model and version with which all its collections were made."""
        return self.data_dir / "milvus.index"

    @property
    def is_running(self) -> bool:
        """Return whether it has been started."""
        return bool(self.read().get("running"))

    @property
    def is_empty(self) -> bool:
        """Return whether it has never been started on this folder."""
        return not (self.data_dir / "milvus").exists()

    def need(self) -> None:
        """Ask for it to be started, or to be left running."""
        with contextlib.suppress(OSError):
            self.needed.touch()

    def read(self) -> dict[str, Any]:
        """Return the note; empty if there is none."""
        try:
            note: dict[str, Any] = json.loads(self.note.read_text())
        except (OSError, ValueError):
            return {}
        return note


class EmbeddedMilvus(child_process.Engine):
    """One Milvus Lite server on one data folder; the process that starts it owns and stops it."""

    def __init__(self, data_dir: Path, *, unused_s: float = _UNUSED_S) -> None:
        """Take the folder, and the seconds without use after which a large server is started again."""
        super().__init__(
            "Milvus", data_dir.resolve() / "milvus.log", signal.SIGINT, longest_wait_s=_LONGEST_WAIT_SECONDS
        )
        self._large_bytes, self._unused_s = _LARGE_BYTES, unused_s
        self.standby = Standby(data_dir.resolve())
        self._needed_before = (
            self._last_need()
        )  # not the current time: the clock of files is some milliseconds behind
        self._folder = data_dir.resolve() / "milvus"
        self._environment = {**_FRUGAL, **os.environ}
        self._since = time.time()
        self._reserved: socket.socket | None = None
        self._port = 0
        self.uri = ""

    def launch(self) -> None:
        """Take a port, or find that of the server of another process; nothing is started yet."""
        note = self.standby.read()
        if _is_alive(note.get("keeper"), note.get("since")):
            self.uri = f"http://127.0.0.1:{note['port']}"
            return
        if child_process.is_running(pid := note.get("pid") or 0, str(self._folder)):
            _end_orphan(pid)
        self.standby.data_dir.mkdir(parents=True, exist_ok=True)
        self._reserved = _reserved()
        self._port = int(self._reserved.getsockname()[1])
        self.uri = f"http://127.0.0.1:{self._port}"
        self._write_note(running=False)

    async def wait(self) -> None:
        """Start the server, or wait until its owner does, until it accepts connections. Raises
        `ConfigurationError` if it does not start."""
        self.standby.need()
        if self._reserved is not None and self._process is None:
            await asyncio.to_thread(self._spawn)
        # Stop waiting once it has ended, so that it is restarted at once
        await asyncio.to_thread(
            child_process.wait_until, lambda: self._accepts() or self._has_ended(), seconds=_START_SECONDS
        )
        if self._has_ended() or not self._accepts():
            raise ConfigurationError(f"The embedded Milvus does not start; see {self._log}")
        if self._reserved is not None:
            self._write_note(running=True)

    async def supervise(self) -> None:
        """Start the server when it is needed; restart it, on its port, whenever it ends by itself or has grown
        large. A server of another process is left alone. Runs until cancelled."""
        if self._reserved is None:
            return
        while self._process is None and self._last_need() == self._needed_before:  # noqa: ASYNC110 — others touch a file
            await asyncio.sleep(_LOOK_S)
        log.info("Milvus is needed and is started")
        await self._wait_logged()
        while not self._stopped:
            task = asyncio.create_task(super().supervise())
            try:
                while not self._may_shrink():  # noqa: ASYNC110 — others touch a file
                    await asyncio.sleep(_LOOK_AT_SIZE_S)
            finally:
                task.cancel()
            log.info("Milvus is started again: it has grown large")
            self._write_note(running=False)
            await asyncio.to_thread(self._end)
            await self._wait_logged()

    async def _wait_logged(self) -> None:
        try:
            await self.wait()
        except ConfigurationError as error:
            log.warning(error.message)

    def _command(self) -> Sequence[str | Path]:
        self._folder.mkdir(parents=True, exist_ok=True)
        where = ("--data-dir", self._folder, "--host", "127.0.0.1", "--port", str(self._port))
        return [sys.executable, "-m", "services.platform.milvus_lite_server", "server", *where]

    def _spawn(self) -> None:
        with self._starting:
            was_running = self._process is not None
            super()._spawn()
            if not self._stopped:
                self._since = time.time()
                self._write_note(running=was_running)

    def _stop(self) -> None:
        with self._starting:
            super()._stop()
            if self._reserved is not None:
                self.standby.note.unlink(missing_ok=True)
                self._reserved.close()
                self._reserved = None

    def _write_note(self, *, running: bool) -> None:
        keeper = psutil.Process()
        note = {
            "port": self._port,
            "pid": self._process.pid if self._process else None,
            "running": running,
            "keeper": keeper.pid,
            "since": keeper.create_time(),
        }
        written = self.standby.note.with_suffix(".new")
        written.write_text(json.dumps(note))
        written.replace(self.standby.note)

    def _last_need(self) -> float:
        try:
            return self.standby.needed.stat().st_mtime
        except OSError:
            return 0.0

    def _may_shrink(self) -> bool:
        """Return whether it has become large, and nobody has used it for a while."""
        now = time.time()
        if self._process is None or now - self._last_need() < self._unused_s:
            return False
        if now - self._since < _LIVES_AT_LEAST * self._unused_s:
            return False
        try:
            return bool(psutil.Process(self._process.pid).memory_info().rss > self._large_bytes)
        except psutil.Error:
            return False

    def _accepts(self) -> bool:
        host, _, port = self.uri.removeprefix("http://").partition(":")
        try:
            socket.create_connection((host, int(port)), timeout=0.5).close()
        except OSError:
            return False
        return True


def _is_alive(pid: int | None, since: float | None) -> bool:
    try:
        return pid is not None and abs(psutil.Process(pid).create_time() - (since or 0)) < _CLOCK_S
    except psutil.Error:
        return False


def _end_orphan(pid: int) -> None:
    """End a server whose keeper has died; on Linux it is ending already and does not count as running."""
    with contextlib.suppress(psutil.NoSuchProcess):
        orphan = psutil.Process(pid)
        orphan.send_signal(signal.SIGINT)
        try:
            orphan.wait(child_process.STOP_S)
        except psutil.TimeoutExpired:
            orphan.kill()
            orphan.wait()


def _reserved() -> socket.socket:
    """Hold a free port, on which the server listens beside this socket.

    Nobody else can take it, neither before the server begins to listen nor while a server that died is restarted:
    the service would talk to a stranger.
    """
    holding = socket.socket()
    holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # gRPC sets it as well
    holding.bind(("127.0.0.1", 0))
    return holding
