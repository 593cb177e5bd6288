"""A Redis for several processes on a Unix socket: the machine's own program, which keeps nothing on disk."""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from services.errors import ConfigurationError
from services.platform import child_process

_PROGRAM = "redis-server"
_START_S = 10.0
_LONGEST_WAIT_S = 5.0
_IN_MEMORY = ("--port", "0", "--unixsocketperm", "700", "--save", "", "--appendonly", "no")


@asynccontextmanager
async def open_redis(folder: Path, log: Path) -> AsyncIterator[str]:
    """Yield the address of an empty Redis that ends with this block.

    Args:
        folder: Folder for the socket, which only this account may enter.
        log: File to which the program writes.

    Raises:
        ConfigurationError: There is no program, or it does not start.
    """
    if (program := shutil.which(_PROGRAM)) is None:
        raise ConfigurationError(f"several processes need a {_PROGRAM}: install it, or set ANAMNESIS_REDIS_URL")
    redis = _Redis(program, folder / "redis.sock", log)
    async with redis.running(asyncio.to_thread(redis.start)):
        yield f"unix://{folder / 'redis.sock'}?protocol=2"


class _Redis(child_process.Engine):
    def __init__(self, program: str, path: Path, log: Path) -> None:
        super().__init__("Redis", log, signal.SIGTERM, longest_wait_s=_LONGEST_WAIT_S)
        self._program, self._path = program, path

    def _command(self) -> Sequence[str | Path]:
        self._path.unlink(missing_ok=True)
        return [self._program, *_IN_MEMORY, "--unixsocket", self._path, "--dir", self._path.parent]

    def start(self) -> None:
        self._spawn()
        child_process.wait_until(lambda: self._path.is_socket() or self._has_ended(), seconds=_START_S)
        if not self._path.is_socket():
            raise ConfigurationError(f"{_PROGRAM} does not start; see {self._log}, or set ANAMNESIS_REDIS_URL")
