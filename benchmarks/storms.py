"""Storms of hostile clients: how much memory stays, what a neighbour waits, and which connections stay open.

`python -m benchmarks.storms [--only TEXT] [--json FILE]`

Against the service with its embedded engines, one after the other: 30 and then 300 bodies of 10 MB that never end,
30 clients that never read a large page and 30 that never read a stream, 500 streams that are cancelled at their
first event, 50 requests with half a header, 2,000 connections that say nothing, and a WebSocket that takes 1,000
turns. Meanwhile a neighbour takes one turn after another. After each storm the command waits until resident
memory is back within 15 % of what it was at rest, at most a minute. Exit code 1 when an aim is missed.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table
from websockets.asyncio.client import connect

from benchmarks.load import allow_files
from benchmarks.remembering import wait_until_quiet
from benchmarks.rig import Server, interrupt_once, service, stand_in
from benchmarks.stand_in_llm import SLOWLY

_MB = 1024 * 1024
_HALF_BODIES, _MANY_HALF_BODIES, _BODY_BYTES = 30, 300, 10 * _MB
_IDLE = 2_000
_SOCKET_TURNS = 1_000
_DEAF_READERS, _MESSAGES, _MESSAGE_CHARACTERS = 30, 200, 80_000
_CANCELS = 500
_HALF_HEADERS = 50
_RECEIVED_BYTES = 64 * 1024
"""Receive buffer of a client who does not read; the machine's default would hold most of a page."""
_HELD_S = 45.0
"""Seconds that a storm's connections are held, unless the service closes them before."""
_BACK_WITHIN_S = 60.0
_MOST_MEMORY = 1.15
_MOST_NEIGHBOUR_S = 0.5
_ALONE_S = 10.0
"""Seconds in which the neighbour's turns are timed before each storm."""
_PAUSE_S = 0.1
_LOOK_S = 0.2
"""Pause between two looks whether a connection was closed; longer for many, as looking takes this process time."""
_ESTABLISHED = 1
"""A connection's state in Linux' TCP_INFO while neither side has closed it."""
_WARM_UP_TURNS = 40


@dataclass(frozen=True)
class Storm:
    """Result of one storm."""

    name: str
    highest: float
    """Resident memory, as a ratio to rest; the others, too."""
    after: float
    back_s: float
    """Seconds from the end of the storm until memory was back, or given up."""
    neighbour_s: float
    """The neighbour's slowest turn."""
    neighbour_cpu_s: float
    """The most processor time that the service used during a turn of the neighbour. On a machine with nothing else
    to do, the turn takes about as long."""
    alone_s: float
    """The neighbour's slowest turn in ten seconds right before the storm."""
    neighbour_turns: int
    left_open: int
    """Connections of the storm that the service had not closed."""
    failed: list[str]
    """Answers to the neighbour's turns that failed."""

    @property
    def held(self) -> bool:
        """Whether the aims were reached."""
        return not self.failed and self.after <= _MOST_MEMORY and self.neighbour_s <= _MOST_NEIGHBOUR_S


class Rig:
    """The service under attack."""

    def __init__(self, server: Server, conversation: str) -> None:
        """Take the service, whose process alone is weighed, and a conversation with a large page of messages."""
        self.conversation = conversation
        self._port = server.port
        self.socket_address = f"ws://127.0.0.1:{server.port}/api/v1/chat/ws"
        self._process = psutil.Process(server.pid)
        self._turns = 0
        self.rest = 0.0
        self.cpu_s = 0.0
        """The most processor time during a turn of the present neighbour."""
        self.failures: list[str] = []
        """Answers to turns that failed."""

    async def turn(self, user: str) -> float:
        """Seconds of a whole turn."""
        self._turns += 1
        begun = time.perf_counter()
        reader, writer = await self.connect()
        writer.write(self.chat(user, f"s-{self._turns % 5}", "What is new?"))
        said = await reader.read()
        writer.close()
        if b"event: done" not in said:
            self.failures.append(said[-300:].decode(errors="replace"))
        return time.perf_counter() - begun

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the service."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self._port))
        return await asyncio.open_connection(sock=connection)

    def chat(self, user: str, session: str, message: str) -> bytes:
        """A request for a turn, cancelled with its connection."""
        asked = {"user_id": user, "session_id": session, "message": message, "on_disconnect": "cancel"}
        body = json.dumps(asked).encode()
        return self.head("POST", "/api/v1/chat/stream", len(body)) + body

    def head(self, method: str, path: str, length: int = 0) -> bytes:
        """The head of a request, over a connection that is not kept."""
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
        lines += ["Content-Type: application/json", f"Content-Length: {length}"] if length else []
        return "\r\n".join([*lines, "", ""]).encode()

    def memory(self) -> float:
        """Bytes of resident memory."""
        return float(self._process.memory_info().rss)

    def _used(self) -> float:
        used = self._process.cpu_times()
        return float(used.user + used.system)

    async def settle(self) -> None:
        """Let the service rest after some turns, and weigh it."""
        for number in range(_WARM_UP_TURNS):
            await self.turn(f"warm-{number % 5}")
        await asyncio.sleep(10)
        self.rest = self.memory()

    async def storm(self, name: str, attack: "Callable[[Rig], Awaitable[int]]") -> Storm:
        """Attack while a neighbour goes on; then wait for memory."""
        watching = asyncio.create_task(self._highest())
        async with self._neighbour() as alone:
            await asyncio.sleep(_ALONE_S)
        async with self._neighbour() as turns:
            self.cpu_s = 0.0
            left_open = await attack(self)
        ended = time.monotonic()
        while self.memory() > self.rest * _MOST_MEMORY and time.monotonic() - ended < _BACK_WITHIN_S:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        back_s = time.monotonic() - ended
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        highest, after = self._most / self.rest, self.memory() / self.rest
        failed, self.failures = self.failures, []
        return Storm(
            name, highest, after, back_s, max(turns), self.cpu_s, max(alone), len(turns), left_open, failed
        )

    async def _highest(self) -> None:
        self._most = self.memory()
        while True:
            self._most = max(self._most, self.memory())
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def _neighbour(self) -> AsyncIterator[list[float]]:
        turns: list[float] = []

        async def one_after_another() -> None:
            while True:
                begun = self._used()
                turns.append(await self.turn("neighbour"))
                self.cpu_s = max(self.cpu_s, self._used() - begun)
                await asyncio.sleep(_PAUSE_S)

        going_on = asyncio.create_task(one_after_another())
        while not turns and not going_on.done():  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE_S)
        turns.clear()
        try:
            yield turns
            seen = len(turns)
            # The turn that the storm met last counts, too.
            while len(turns) == seen and not going_on.done():  # noqa: ASYNC110
                await asyncio.sleep(_PAUSE_S)
        finally:
            going_on.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await going_on


async def half_bodies(rig: Rig, count: int = _HALF_BODIES) -> int:
    """All of a body but its last byte."""
    head, piece = rig.head("POST", "/api/v1/chat", _BODY_BYTES), b" " * (_MB // 4)

    async def send(writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(head)
            for _ in range(_BODY_BYTES // len(piece) - 1):
                writer.write(piece)
                await writer.drain()

    return await _hold(rig, count, send)


async def deaf_readers(rig: Rig) -> int:
    """Ask for a large page and never read it."""
    asked = rig.head("GET", f"/api/v1/conversations/{rig.conversation}/messages?limit={_MESSAGES}")

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(asked)

    return await _hold(rig, _DEAF_READERS, send)


async def deaf_listeners(rig: Rig) -> int:
    """Ask for turns and never read their streams."""
    numbers = iter(range(_DEAF_READERS))

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        number = next(numbers)
        writer.write(rig.chat(f"deaf-{number}", f"s-{number}", f"Tell me {SLOWLY}."))

    return await _hold(rig, _DEAF_READERS, send)


async def idle(rig: Rig) -> int:
    """Connections that say nothing."""

    async def send(_: asyncio.StreamWriter) -> None:
        return

    return await _hold(rig, _IDLE, send)


async def long_socket(rig: Rig) -> int:
    """One WebSocket that takes many turns, one after the other, in conversations of 100 turns."""
    async with connect(rig.socket_address, max_size=None) as socket:
        for number in range(_SOCKET_TURNS):
            asked = {"user_id": "socket", "session_id": f"s-{number // 100}", "message": f"What is new, {number}?"}
            await socket.send(json.dumps(asked))
            async for said in socket:
                event = json.loads(said)["status"]
                if event == "error":
                    rig.failures.append(str(said)[:300])
                if event in {"done", "error"}:
                    break
    return 0


async def cancels(rig: Rig) -> int:
    """Streams that are left at their first event, all in one moment."""

    async def one(number: int) -> None:
        reader, writer = await rig.connect()
        writer.write(rig.chat(f"leaver-{number % 50}", f"s-{number}", f"Tell me {SLOWLY}."))
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"event: turn")
        writer.transport.abort()

    await asyncio.gather(*(one(number) for number in range(_CANCELS)))
    return 0


async def half_headers(rig: Rig) -> int:
    """Requests whose headers do not end."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(b"POST /api/v1/chat HTTP/1.1\r\nHost: 127.0")

    return await _hold(rig, _HALF_HEADERS, send)


async def _hold(rig: Rig, count: int, send: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> int:
    """Hold connections until the service has closed them; return how many it has not."""

    async def one() -> bool:
        _, writer = await rig.connect()
        try:
            await send(writer)
            async with asyncio.timeout(_HELD_S):
                while not _closed(writer):  # noqa: ASYNC110
                    await asyncio.sleep(max(_LOOK_S, _LOOK_S * count / 100))
        except TimeoutError:
            return False
        else:
            return True
        finally:
            writer.transport.abort()

    return (await asyncio.gather(*(one() for _ in range(count)))).count(False)


def _closed(writer: asyncio.StreamWriter) -> bool:
    """Whether the service has closed or cut the connection, also where nothing is read from it."""
    if writer.transport.is_closing():
        return True
    connection = writer.get_extra_info("socket")
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _ESTABLISHED)


def write_large_conversation(port: int) -> str:
    """Import a conversation with a large page of messages; return its id."""
    text = "word " * (_MESSAGE_CHARACTERS // 5)
    line = {"user_id": "writer", "session_id": "long", "role": "user", "created_at": "2025-01-01T00:00:00Z"}
    lines = (json.dumps({**line, "content": f"{number} {text}"}) for number in range(_MESSAGES))
    address = f"http://127.0.0.1:{port}/api/v1"
    headers = {"Content-Type": "application/x-ndjson"}
    request = urllib.request.Request(f"{address}/import", "\n".join(lines).encode(), headers)
    urllib.request.urlopen(request, timeout=120).close()
    with urllib.request.urlopen(f"{address}/conversations?user_id=writer", timeout=30) as answer:
        return str(json.load(answer)["items"][0]["id"])


async def attack(server: Server, only: str = "") -> list[Storm]:
    """Every storm with `only` in its name, one after the other."""
    conversation = write_large_conversation(server.port)
    wait_until_quiet(server)
    rig = Rig(server, conversation)
    await rig.settle()
    storms: dict[str, Callable[[Rig], Awaitable[int]]] = {
        f"{_HALF_BODIES} bodies of {_BODY_BYTES // _MB} MB that do not end": half_bodies,
        f"{_DEAF_READERS} readers that never read": deaf_readers,
        f"{_DEAF_READERS} streams that are never read": deaf_listeners,
        f"{_CANCELS} cancels": cancels,
        f"{_HALF_HEADERS} half headers": half_headers,
        f"{_MANY_HALF_BODIES} such bodies": partial(half_bodies, count=_MANY_HALF_BODIES),
        f"{_IDLE} idle connections": idle,
        f"a WebSocket of {_SOCKET_TURNS} turns": long_socket,
    }
    found = []
    for name, attack in storms.items():
        if only in name:
            found.append(await rig.storm(name, attack))
            sys.stderr.write(f"{found[-1]}\n")
    return found


def show(storms: list[Storm]) -> None:
    """Print the table."""
    table = Table(title="Storms")
    table.add_column("")
    headings = (
        "memory at most",
        "afterwards",
        "back after",
        "neighbour at worst",
        "of processor",
        "undisturbed",
        "turns",
        "failed",
        "left open",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for storm in storms:
        table.add_row(
            storm.name,
            f"{storm.highest:.2f} x rest",
            f"{storm.after:.2f} x rest",
            f"{storm.back_s:.0f} s",
            f"{storm.neighbour_s:.2f} s",
            f"{storm.neighbour_cpu_s:.2f} s",
            f"{storm.alone_s:.2f} s",
            str(storm.neighbour_turns),
            str(len(storm.failed)),
            str(storm.left_open),
        )
    console = Console(width=140)
    console.print(table)
    for storm in storms:
        for answer in storm.failed[:2]:
            console.print(f"{storm.name}: {answer}", markup=False)


def main() -> None:
    """Read the options, attack, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storms", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--only", default="", help="storms with this in their name")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    allow_files(_IDLE)
    try:
        with stand_in() as port, service(f"http://127.0.0.1:{port}/burst/v1", "responses") as server:
            storms = asyncio.run(attack(server, options.only))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    show(storms)
    if options.json:
        options.json.write_text(json.dumps([asdict(storm) for storm in storms], indent=1) + "\n")
    sys.exit(0 if all(storm.held for storm in storms) else 1)


if __name__ == "__main__":
    main()
