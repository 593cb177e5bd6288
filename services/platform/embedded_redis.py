"""A Redis for several processes, on a Unix socket: the machine's program or, without one, a stand-in."""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from redis.exceptions import NoScriptError, RedisError

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
        ConfigurationError: the program does not start.
    """
    path = folder / "redis.sock"
    async with AsyncExitStack() as stack:
        if (program := shutil.which(_PROGRAM)) is None:
            stack.push_async_callback(await _serve(path))
        else:
            running = _Program(program, path, log)
            stack.push_async_callback(asyncio.to_thread, running.stop)
            await asyncio.to_thread(running.start)
            keeping = child_process.keep_running(
                "Redis", lambda: running.process, running.spawn, log=log, longest_wait_s=_LONGEST_WAIT_S
            )
            stack.callback(asyncio.create_task(keeping, name="supervision of Redis").cancel)
        yield f"unix://{path}?protocol=2"


class _Program:
    """The machine's Redis as a child process that keeps nothing on disk."""

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


async def _serve(path: Path) -> Any:
    """Serve an in-process Redis on a socket; return what stops it."""
    from fakeredis import FakeRedisConnection, FakeServer  # noqa: PLC0415 — only where there is no program

    store, clients = FakeServer(), set[_Client]()
    server = await asyncio.get_running_loop().create_unix_server(
        lambda: _Client(FakeRedisConnection(server=store, protocol=2), clients), path
    )

    async def stop() -> None:
        server.close()
        for client in [*clients]:
            client.close()

    return stop


class _Client(asyncio.Protocol):
    """A client of the in-process Redis; none of its commands waits for anything."""

    def __init__(self, store: Any, clients: "set[_Client]") -> None:
        self._store = store
        self._clients = clients
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._clients.add(self)

    def data_received(self, data: bytes) -> None:
        self._store.get_socket().sendall(data)
        replies = bytearray()
        while self._store.can_read():
            try:
                replies += _encoded(self._store.read_response(disable_decoding=True))
            except RedisError as error:
                replies += _encoded(error)
        self._transport.write(replies)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clients.discard(self)
        self._store.disconnect()

    def close(self) -> None:
        self._transport.close()


def _encoded(reply: Any) -> bytes:
    """Return a reply as the second version of Redis' protocol writes it."""
    if reply is None:
        return b"$-1\r\n"
    if isinstance(reply, Exception):
        code = "NOSCRIPT" if isinstance(reply, NoScriptError) else "ERR"  # the client sends the script then
        return f"-{code} {reply}\r\n".encode()
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, list | tuple):
        return b"*%d\r\n" % len(reply) + b"".join(map(_encoded, reply))
    text = reply if isinstance(reply, bytes) else str(reply).encode()
    return b"$%d\r\n%s\r\n" % (len(text), text)
