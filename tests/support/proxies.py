"""Proxies as desktops have them; they lead every name to this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_TO_ADDRESS, _TO_NAME = 1, 3


class Proxy:
    """Speaks HTTP (absolute addresses and CONNECT) and SOCKS5 on one port, and notes the requests."""

    def __init__(self, target: int) -> None:
        """Take the port of this machine to which every request is led."""
        self._target = target
        self.asked: list[str] = []
        self.port = 0
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        try:
            first = await reader.read(1)
            await (self._socks(reader, writer) if first == b"\x05" else self._http(first, reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.tasks.discard(task)
            writer.close()

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        length = (await reader.readexactly(1))[0] if kind == _TO_NAME else 4
        host = await reader.readexactly(length)
        port = int.from_bytes(await reader.readexactly(2))
        self.asked.append(f"socks {host.decode() if kind == _TO_NAME else '.'.join(map(str, host))}:{port}")
        writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        await self._tunnel(b"", reader, writer)

    async def _http(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = first + await reader.readuntil(b"\r\n\r\n")
        line, _, headers = head.partition(b"\r\n")
        method, address, version = line.split()
        self.asked.append(f"{method.decode()} {address.decode()}")
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await self._tunnel(b"", reader, writer)
        else:
            path = b"/" + address.split(b"/", 3)[3]
            await self._tunnel(b" ".join((method, path, version)) + b"\r\n" + headers, reader, writer)

    async def _tunnel(self, sent: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self._target)
        forth.write(sent)
        copies = [asyncio.create_task(_copy(*each)) for each in ((reader, forth), (back, writer))]
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for copy in copies:
                copy.cancel()
            forth.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


@asynccontextmanager
async def running_proxy(target: int) -> AsyncIterator[Proxy]:
    """Run a proxy that leads everything to a port of this machine."""
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in tuple(proxy.tasks):
            task.cancel()
        await asyncio.gather(*proxy.tasks, return_exceptions=True)
