"""Milvus Lite as a child process on a loopback port.

It is pure Python, so inside our process it would hold our interpreter's lock, and only one process
may open its data folder: hence a process of its own, with a note of its port for others to find it.
"""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

from services.errors import ConfigurationError
from services.platform import child_process

_START_SECONDS = 60.0
_STOP_SECONDS = 4.0


class EmbeddedMilvus:
    """One Milvus Lite server over one data folder; whoever starts it first owns it and stops it."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir.resolve() / "milvus"
        self._note = data_dir.resolve() / "milvus.json"
        self._log = data_dir.resolve() / "milvus.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.uri = ""

    def launch(self) -> None:
        """Start the server, or find the one that runs; return at once."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            note = json.loads(self._note.read_text())
            if child_process.is_running(note["pid"], str(self._folder)):
                self.uri = f"http://127.0.0.1:{note['port']}"
                return
        self._folder.mkdir(parents=True, exist_ok=True)
        port = _free_port()
        where = ["--data-dir", str(self._folder), "--host", "127.0.0.1", "--port", str(port)]
        self._process = child_process.spawn(
            [sys.executable, "-m", "milvus_lite", "server", *where],
            log=self._log,
            death_signal=signal.SIGINT,
        )
        self._note.write_text(json.dumps({"pid": self._process.pid, "port": port}))
        self.uri = f"http://127.0.0.1:{port}"

    async def wait(self) -> None:
        """Wait until the server accepts connections.

        Raises:
            ConfigurationError: it does not come up.
        """
        if not await asyncio.to_thread(child_process.wait_until, self._accepts, seconds=_START_SECONDS):
            raise ConfigurationError(f"The embedded Milvus does not start; see {self._log}")

    async def stop(self) -> None:
        """Stop the server, if we started it."""
        if self._process is not None:
            self._note.unlink(missing_ok=True)
            await asyncio.to_thread(child_process.stop, self._process, signal.SIGINT, seconds=_STOP_SECONDS)
            self._process = None

    def _accepts(self) -> bool:
        host, _, port = self.uri.removeprefix("http://").partition(":")
        try:
            socket.create_connection((host, int(port)), timeout=0.5).close()
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
