"""A Redis for several processes on a Unix socket: the machine's program, which keeps nothing on disk."""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from services.errors import ConfigurationError
from services.platform import child_process

_PROGRAM = "redis-server"
_START_S, _STOP_S = 10.0, 2.0
_LONGEST_WAIT_S = 5.0
_IN_MEMORY = ("--port", "0", "--unixsocketperm", "700", "--save", "", "--appendonly", "no")


@asynccontextmanager
async def open_redis(folder: Path, log: Path) -> AsyncIterator[str]:
    """Yield the address of an empty Redis that ends with this block.

    Args:
        folder: for the socket; only this account may enter it.
        log: where the program writes.

    Raises:
        ConfigurationError: there is no program, or it does not start.
    """
    if (program := shutil.which(_PROGRAM)) is None:
        raise ConfigurationError(f"several processes need a {_PROGRAM}: install it, or set ANAMNESIS_REDIS_URL")
    running = _Program(program, folder / "redis.sock", log)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, running.stop)
        await asyncio.to_thread(running.start)
        keeping = child_process.keep_running(
            "Redis", lambda: running.process, running.spawn, log=log, longest_wait_s=_LONGEST_WAIT_S
        )
        stack.callback(asyncio.create_task(keeping, name="supervision of Redis").cancel)
        yield f"unix://{folder / 'redis.sock'}?protocol=2"


class _Program:
    """The program as a child process."""

    def __init__(self, program: str, path: Path, log: Path) -> None:
        self._command = [program, *_IN_MEMORY, "--unixsocket", str(path), "--dir", str(path.parent)]
        self._path, self._log = path, log
        self.process: subprocess.Popen[bytes] | None = None

    def spawn(self) -> None:
        self._path.unlink(missing_ok=True)
        self.process = child_process.spawn(self._command, log=self._log, death_signal=signal.SIGTERM)

    def start(self) -> None:
        self.spawn()
        child_process.wait_until(lambda: self._path.is_socket() or self._has_ended(), seconds=_START_S)
        if not self._path.is_socket():
            raise ConfigurationError(f"{_PROGRAM} does not start; see {self._log}, or set ANAMNESIS_REDIS_URL")

    def _has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def stop(self) -> None:
        if (process := self.process) is not None:
            self.process = None
            child_process.stop(process, signal.SIGTERM, seconds=_STOP_S)
