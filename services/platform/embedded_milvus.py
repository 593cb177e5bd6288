"""Milvus Lite as a child process on a loopback port.

It is pure Python, so inside the service it would hold the interpreter's lock, and only one process may open its
data folder: hence a separate process, whose port is noted in a file for others to find."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from services.errors import ConfigurationError
from services.platform import child_process

_START_SECONDS = 60.0
_STOP_SECONDS = 4.0
_LONGEST_WAIT_SECONDS = 30.0


class EmbeddedMilvus:
    """One Milvus Lite server over one data folder; the process that starts it owns and stops it."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir.resolve() / "milvus"
        self._note = data_dir.resolve() / "milvus.json"
        self._log = data_dir.resolve() / "milvus.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._stopped = False
        self._reserved: socket.socket | None = None
        self._port = 0
        self.uri = ""

    def launch(self) -> None:
        """Start the server, or find the running one; return at once."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            note = json.loads(self._note.read_text())
            if child_process.is_running(note["pid"], str(self._folder)):
                self.uri = f"http://127.0.0.1:{note['port']}"
                return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._reserved = _reserved()
        self._port = int(self._reserved.getsockname()[1])
        self.uri = f"http://127.0.0.1:{self._port}"
        self._start()

    async def wait(self) -> None:
        """Wait until the server accepts connections.

        Raises:
            ConfigurationError: it does not come up.
        """
        if not await asyncio.to_thread(child_process.wait_until, self._accepts, seconds=_START_SECONDS):
            raise ConfigurationError(f"The embedded Milvus does not start; see {self._log}")

    async def supervise(self) -> None:
        """Restart the server, on its port, whenever it ends by itself, until cancelled.

        Does nothing about one that another process started.
        """
        await child_process.keep_running(
            "Milvus", lambda: self._process, self._start, log=self._log, longest_wait_s=_LONGEST_WAIT_SECONDS
        )

    async def stop(self) -> None:
        """Stop the server, if we started it; it is not started again."""
        await asyncio.to_thread(self._stop)

    def _start(self) -> None:
        with self._starting:
            if self._stopped:
                return
            where = ["--data-dir", str(self._folder), "--host", "127.0.0.1", "--port", str(self._port)]
            self._process = child_process.spawn(
                [sys.executable, "-m", "services.platform.pandas_placeholder", "server", *where],
                log=self._log,
                death_signal=signal.SIGINT,
            )
            self._note.write_text(json.dumps({"pid": self._process.pid, "port": self._port}))

    def _stop(self) -> None:
        with self._starting:  # a server that is just starting is stopped as well
            self._stopped = True
            if self._process is not None:
                self._note.unlink(missing_ok=True)
                child_process.stop(self._process, signal.SIGINT, seconds=_STOP_SECONDS)
                self._process = None
            if self._reserved is not None:
                self._reserved.close()
                self._reserved = None

    def _accepts(self) -> bool:
        host, _, port = self.uri.removeprefix("http://").partition(":")
        try:
            socket.create_connection((host, int(port)), timeout=0.5).close()
        except OSError:
            return False
        return True


def _reserved() -> socket.socket:
    """Hold a free port, at which the server listens beside this socket.

    Nobody else gets it, be it before the server has begun to listen or while one that has died is started again:
    the service would talk to a stranger.
    """
    holding = socket.socket()
    holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # gRPC sets it as well
    holding.bind(("127.0.0.1", 0))
    return holding
