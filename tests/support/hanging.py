"""Servers that accept connections and then say nothing, or end them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Flow(asyncio.Event):
    """Whether a proxy passes anything on; while it is cleared, everything hangs."""

    away = False
    """Whether new connections end at once."""

    def __init__(self) -> None:
        super().__init__()
        self.open_now: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """End every connection, and new ones until `away` is false."""
        self.away = True
        for writer in self.open_now:
            writer.close()


@asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """Accept connections and never answer; yield the port."""
    async with hanging_proxy(None) as (port, _):
        yield port


@asynccontextmanager
async def hanging_proxy(socket: str | None) -> AsyncIterator[tuple[int, Flow]]:
    """Pass on what comes to a Unix socket and back; yield the port, and the flow that makes it hang or end.
    Without a socket nothing is passed on."""
    flows = Flow()
    if socket is not None:
        flows.set()

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await flows.wait()
                target.write(data)
        target.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flows.open_now.add(writer)
        if flows.away:
            writer.close()
            return
        await flows.wait()
        server_reader, server_writer = await asyncio.open_unix_connection(socket)
        flows.open_now.add(server_writer)
        await asyncio.gather(copy(reader, server_writer), copy(server_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], flows
    finally:
        server.close()
        flows.set() if socket is not None else None
        for writer in flows.open_now:
            writer.close()
