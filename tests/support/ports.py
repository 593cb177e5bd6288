"""Ports for servers of tests that begin to listen later, or never."""

import itertools
import socket
import time
from collections.abc import Iterator

_FIRST, _LAST, _EACH = 12_000, 32_000, 500
"""First and last port, and ports of each process. They lie below those that the system gives to connections and
to servers without a fixed port: the system could give one away before the test's server listens, or while the
test needs that nothing does."""
_reservations: list[socket.socket] = []


def free_port() -> int:
    """Return a port of the loopback on which nothing listens, and which no other process of tests takes."""
    while True:
        port = next(_mine)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:  # something listens, or has just ended
                continue
        return port


def _ports() -> Iterator[int]:
    """Yield the ports that belong to this process until it ends; a datagram socket on the first reserves them."""
    for first in range(_FIRST, _LAST, _EACH):
        reservation = socket.socket(type=socket.SOCK_DGRAM)
        try:
            reservation.bind(("127.0.0.1", first))
        except OSError:
            reservation.close()
            continue
        _reservations.append(reservation)
        yield from itertools.cycle(range(first, first + _EACH))
    raise OSError("too many processes of tests run on this machine")


_mine = _ports()


def wait_for_port(port: int, seconds: float = 60) -> None:
    """Wait until something listens."""
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return
