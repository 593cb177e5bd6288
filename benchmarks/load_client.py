"""The load: sends chat turns over raw sockets and notes when their answers came, and how large.

In its own process it reads one `Load` as a JSON line from standard input, answers with one line
of samples, and so on until the input ends.
"""

import asyncio
import itertools
import json
import re
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, cast

import uvloop

from benchmarks.stream_check import what_is_wrong

_TURN_LIMIT_S = 60.0
_REFUSED = "HTTP/1.1 503 "
_WITHOUT_RECALL = re.compile(rb'"degraded": ?\[[^\]]*"recall"')


@dataclass(frozen=True)
class Load:
    """Turns to be sent. A lane's turns follow one another; `concurrency` lanes are served at a time.

    With a `rate`, that many lanes begin each second, however many are under way, and turns may be refused.
    """

    port: int
    path: str
    lanes: list[list[dict[str, str]]]
    """Request bodies."""
    concurrency: int
    first_marker: str
    """Text that appears in the stream with the first token, and not before it."""
    done_marker: str
    """Text that appears in the stream of every complete answer."""
    rate: float | None = None
    answer: str | None = None
    """Where it is given, every stream is read event by event: it must tell this and end once, as its last."""


@dataclass(frozen=True)
class Samples:
    """Samples of a run, an entry a turn, in the order in which the turns ended."""

    first_ms: list[float]
    """From the request to the first token."""
    full_ms: list[float]
    """From the request to the end of the response."""
    wire_bytes: list[int]
    """Head and body as they were received, with their chunk frames."""
    elapsed_s: float
    failures: list[str]
    """Beginnings of the responses that were not complete answers."""
    without_recall: int = 0
    """Turns that say that they were answered without recall."""
    refused: int = 0
    """Turns that were answered with 503, where a rate is given."""
    most_open: int = 0
    """Turns that had their first token and not yet their end, at the same time."""


class _Connection(asyncio.Protocol):
    """One kept-alive connection; a turn at a time."""

    def __init__(self, load: Load) -> None:
        self._first_marker = load.first_marker.encode()
        self._received: list[bytes] = []
        self._tail = b""
        self._ended: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self.first = 0.0
        """Clock reading at the first token; 0 before it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._end()

    def data_received(self, data: bytes) -> None:
        """Note the first token and the end."""
        now = time.perf_counter()
        self._received.append(data)
        if not self.first and self._first_marker in b"".join(self._received):
            self.first = now
        self._tail = (self._tail + data)[-7:]
        if self._tail == b"\r\n0\r\n\r\n" or (len(self._received) == 1 and _is_refusal(data)):
            self._end()

    @property
    def open(self) -> bool:
        return self._transport is not None

    async def turn(self, request: bytes) -> bytes:
        """Send the request; return the whole response."""
        if self._transport is None:
            return b""
        self._received, self._tail, self.first = [], b"", 0.0
        self._ended = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            async with asyncio.timeout(_TURN_LIMIT_S):
                await self._ended
        except TimeoutError:
            self._transport.abort()
        return b"".join(self._received)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)


async def run(load: Load) -> Samples:
    """Send all turns."""
    samples = Samples([], [], [], 0.0, [])
    without: list[bytes] = []
    lanes = deque([[_request(load, body) for body in lane] for lane in load.lanes])
    begun = time.perf_counter()
    spans: list[tuple[float, float]] = []
    if load.rate is None:
        await asyncio.gather(*(_worker(load, lanes, samples, spans, without) for _ in range(load.concurrency)))
    else:
        await _at_rate(load.rate, load, lanes, samples, spans, without)
    counted: dict[str, Any] = {
        "elapsed_s": time.perf_counter() - begun,
        "without_recall": len(without),
        "most_open": _most_at_once(spans),
    }
    if load.rate is not None:
        kept = [failure for failure in samples.failures if not failure.startswith(_REFUSED)]
        counted |= {"refused": len(samples.failures) - len(kept), "failures": kept}
    return Samples(**{**asdict(samples), **counted})


async def _at_rate(
    rate: float,
    load: Load,
    lanes: deque[list[bytes]],
    samples: Samples,
    spans: list[tuple[float, float]],
    without: list[bytes],
) -> None:
    """Begin a lane whenever it is due, each over a new connection."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with asyncio.TaskGroup() as group:
        for number in range(len(lanes)):
            await asyncio.sleep(begun + number / rate - loop.time())
            group.create_task(_worker(load, deque([lanes.popleft()]), samples, spans, without))


async def _worker(
    load: Load,
    lanes: deque[list[bytes]],
    samples: Samples,
    spans: list[tuple[float, float]],
    without: list[bytes],
) -> None:
    connection = await _connect(load)
    done = load.done_marker.encode()
    while lanes:
        for request in lanes.popleft():
            if not connection.open:
                connection = await _connect(load)
            begun = time.perf_counter()
            response = await connection.turn(request)
            full = time.perf_counter() - begun
            if not response.startswith(b"HTTP/1.1 200 ") or done not in response or not connection.first:
                samples.failures.append(response[:500].decode(errors="replace") or "no answer")
                continue
            if load.answer is not None and (wrong := what_is_wrong(response, load.answer)):
                samples.failures.append(wrong)
                continue
            without.extend(_WITHOUT_RECALL.findall(response)[:1])
            samples.first_ms.append(round((connection.first - begun) * 1000, 3))
            samples.full_ms.append(round(full * 1000, 3))
            samples.wire_bytes.append(len(response))
            spans.append((connection.first, begun + full))
    connection.close()


async def _connect(load: Load) -> _Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: _Connection(load), "127.0.0.1", load.port)
    return connection


def _request(load: Load, body: dict[str, str]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {load.path} HTTP/1.1\r\nHost: 127.0.0.1:{load.port}\r\nContent-Type: application/json\r\n"
        f"Accept: text/event-stream\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def _most_at_once(spans: list[tuple[float, float]]) -> int:
    changes = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    return max(itertools.accumulate((change for _, change in changes), initial=0))


def _is_refusal(data: bytes) -> bool:
    return not data.startswith(b"HTTP/1.1 200 ")


def main() -> None:
    """Answer each line of the input with a line of samples."""
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        print(json.dumps(asdict(uvloop.run(run(Load(**asked))))), flush=True)


if __name__ == "__main__":
    main()
