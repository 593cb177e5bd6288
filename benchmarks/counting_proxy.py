"""A proxy before PostgreSQL's socket that counts statements and round trips."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

_SOCKET = ".s.PGSQL.5432"
_HEAD = struct.Struct("!cI")
_COMMAND_COMPLETE, _READY = b"C", b"Z"
_TRANSACTIONS = (b"BEGIN", b"COMMIT", b"ROLLBACK")


@dataclass
class Counts:
    """Counts since the start."""

    statements: int = 0
    """Completed, the setting of the tenant in each transaction among them, but not BEGIN and COMMIT."""
    round_trips: int = 0

    def since(self, before: "Counts") -> "Counts":
        """The difference."""
        return Counts(self.statements - before.statements, self.round_trips - before.round_trips)

    def copy(self) -> "Counts":
        """The counts of now."""
        return Counts(self.statements, self.round_trips)


@asynccontextmanager
async def counting(sockets: Path, folder: Path) -> AsyncIterator[Counts]:
    """Listen on a socket in `folder` and pass everything on to the one in `sockets`.

    Messages follow https://www.postgresql.org/docs/current/protocol-message-formats.html; the server ends every
    round trip with ReadyForQuery. Connections must not be encrypted.
    """
    counts = Counts()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(str(sockets / _SOCKET))
        try:
            await asyncio.gather(_copy(reader, server_writer), _count(server_reader, writer, counts))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            server_writer.close()
            writer.close()

    server = await asyncio.start_unix_server(pass_on, str(folder / _SOCKET))
    async with server:
        yield counts


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counts: Counts) -> None:
    started = False
    while True:
        head = await reader.readexactly(_HEAD.size)
        kind, length = _HEAD.unpack(head)
        body = await reader.readexactly(length - 4)
        writer.write(head + body)
        if kind == _READY:
            counts.round_trips += started
            started = True  # the first one ends the connection's start
            await writer.drain()
        elif kind == _COMMAND_COMPLETE and not body.startswith(_TRANSACTIONS):
            counts.statements += 1
