"""Limits of HTTP connections: for headers that do not end, and for clients that do not read.

Uvicorn limits only the time between two requests of a connection. A client that sends half a header would stay
forever, and memory would hold headers of any length and responses that nobody reads.
"""

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from services.platform.settings import Settings

log = structlog.get_logger(__name__)

_RESET = struct.pack("ii", 1, 0)
"""Socket option: linger for 0 seconds, which resets the connection."""
_TIMED_OUT = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 42\r\nConnection: close\r\n\r\nThe request's headers did not come in time"
)
_LINGER_S = 1.0
_MOST_HEADER_BYTES = 64 * 1024
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 46\r\nConnection: close\r\n\r\nThe request's headers are larger than 64 KiB.\n"
)


def uvicorn_options(settings: Settings) -> dict[str, Any]:
    """Return arguments for `uvicorn.Config`: the limits of connections, and no access log."""

    class Bounded(BoundedHttp):
        header_timeout_s = settings.http_header_timeout_s
        reader_timeout_s = settings.http_reader_timeout_s

    most_bytes = settings.http_socket_message_mb * 1024 * 1024
    return {"http": Bounded, "ws_max_size": most_bytes, "log_config": None, "access_log": False}


class Server(uvicorn.Server):
    """Uvicorn without its signal handlers: on a signal the turns end first, then their streams."""

    def refuse_new_connections(self) -> None:
        """Stop listening; open connections are still served."""
        for listener in self.servers:
            listener.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class BoundedHttp(HttpToolsProtocol):
    """Uvicorn's protocol with limits; Uvicorn calls these methods."""

    header_timeout_s: float
    reader_timeout_s: float

    _header_timer: asyncio.TimerHandle | None = None
    _reader_timer: asyncio.TimerHandle | None = None
    _in_headers = False
    _refused = False
    _header_bytes = 0
    """Bytes received of the current headers while they have not ended."""
    _parsed_bytes = 0
    _unread = 0
    """Bytes that the client had not read at the last check."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first header."""
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        """Count bytes of unfinished headers; after a refusal nothing more is read."""
        if self._refused:
            return
        expected = self._in_headers
        super().data_received(data)
        if expected and self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > _MOST_HEADER_BYTES:
                self._close_with(_TOO_LARGE)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. Raises `ValueError` if the headers are too large; the parser then refuses the request."""
        self._parsed_bytes += len(name) + len(value)
        if self._parsed_bytes > _MOST_HEADER_BYTES:
            raise ValueError("headers too large")
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        """Answer that the headers are wrong."""
        if self._parsed_bytes > _MOST_HEADER_BYTES:
            self._close_with(_TOO_LARGE)
        else:
            super().send_400_response(msg)

    def on_message_begin(self) -> None:
        """Wait for the headers of a request."""
        super().on_message_begin()
        self._expect_headers()

    def on_headers_complete(self) -> None:
        """Stop waiting for headers."""
        _cancel(self._header_timer)
        self._in_headers = False
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Start watching a client that does not read."""
        super().pause_writing()
        if self._reader_timer is None:
            self._unread = self.transport.get_write_buffer_size()
            self._reader_timer = self.loop.call_later(self.reader_timeout_s, self._look_at_reader)

    def resume_writing(self) -> None:
        """Stop watching: the client has read."""
        _cancel(self._reader_timer)
        self._reader_timer = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        _cancel(self._header_timer)
        _cancel(self._reader_timer)
        self._reader_timer = None
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        self._in_headers, self._header_bytes, self._parsed_bytes = True, 0, 0
        _cancel(self._header_timer)
        self._header_timer = self.loop.call_later(self.header_timeout_s, self._give_up_headers)

    def _give_up_headers(self) -> None:
        self._header_timer = None
        self._close_with(_TIMED_OUT)

    def _close_with(self, answer: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        _cancel(self._header_timer)
        self.transport.write(answer)
        # If it were closed at once while the client still sends, the connection would be reset and the answer
        # lost.
        self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)

    def _look_at_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        if left < self._unread:  # it reads, although slowly
            self._unread = left
            self._reader_timer = self.loop.call_later(self.reader_timeout_s, self._look_at_reader)
            return
        self._reader_timer = None
        log.info("slow reader cut off", unread_bytes=left)
        if (connection := self.transport.get_extra_info("socket")) is not None:
            # The connection is reset; otherwise the kernel would keep the buffered data for a client that never
            # reads.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
