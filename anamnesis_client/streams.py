"""A turn's stream, over as many connections as it takes. Nothing is sent here: both clients pass lines in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anamnesis_client.calls import Call
from anamnesis_client.errors import ClientError, ServiceError, TurnFailed
from anamnesis_client.models import Event

EVENT_STREAM = "text/event-stream"
_FIRST_S, _LONGEST_S = 0.2, 5.0
_BUSY = frozenset({429, 503})
"""Statuses with which the service has done nothing, and says when to try again."""


@dataclass
class Tries:
    """Counts consecutive failures; a success in between starts over."""

    most: int
    """Maximum number of consecutive failures."""
    failures: int = field(default=0, init=False)

    def pause_s(self, failure: ClientError) -> float | None:
        """Return the seconds before the next try; None = give up, as after a refusal that will not change."""
        asked_s = 0.0
        if isinstance(failure, ServiceError):
            if failure.status not in _BUSY or failure.retry_after_s is None:
                return None
            asked_s = failure.retry_after_s
        self.failures += 1
        if self.failures > self.most:
            return None
        own_s: float = min(_LONGEST_S, _FIRST_S * 2 ** (self.failures - 1))
        return max(asked_s, own_s)

    def succeeded(self) -> None:
        """Reset the count of failures."""
        self.failures = 0


class Lines:
    """Splits bytes into lines at line feeds only: JSON may hold every other mark that ends a line."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> list[str]:
        """Take more bytes; return the lines that are now complete."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line.decode().removesuffix("\r") for line in whole]


class Parts:
    """Splits an import into requests; a request ends with the line that makes it large enough."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._size = 0
        self._rest = b""
        self.lines = 0
        """Lines of all requests so far."""

    def begin(self) -> bytes:
        """Begin a request; return what the previous request had no room for."""
        rest, self._rest, self._size = self._rest, b"", 0
        return self._passed(rest)

    def take(self, piece: str | bytes) -> bytes:
        """Take a line, or bytes that may be cut anywhere; return the part that belongs to this request."""
        data = piece if isinstance(piece, bytes) else piece.rstrip("\n").encode() + b"\n"
        if self._size + len(data) >= self._most and (end := data.rfind(b"\n") + 1):
            data, self._rest = data[:end], data[end:]
            self._size = self._most
        return self._passed(data)

    @property
    def full(self) -> bool:
        """Return whether the request has enough and ends with a line."""
        return self._size >= self._most

    def _passed(self, data: bytes) -> bytes:
        self._size += len(data)
        self.lines += data.count(b"\n")
        return data


@dataclass
class TurnStream:
    """The position in a stream: what to ask for next, what has arrived, and whether it has ended."""

    body: Mapping[str, Any] | None
    """Body of the request for a new message; None = the turn is already known."""
    key: str = ""
    """Idempotency key of the message: sent twice with it, the message is one turn."""
    turn_id: str | None = None
    last: int = 0
    """Number of the last event that arrived."""
    ended: bool = False
    _data: list[str] = field(default_factory=list)
    _number: int = 0

    def request(self) -> Call[Any]:
        """Return the request for the next connection; a new connection begins a new frame."""
        self._data = []
        headers = {"Accept": EVENT_STREAM}
        if self.turn_id is None:
            headers["Idempotency-Key"] = self.key
            return Call("POST", "/api/v1/chat/stream", json=self.body, headers=headers)
        if self.last:
            headers["Last-Event-ID"] = str(self.last)
        return Call("GET", f"/api/v1/turns/{self.turn_id}/stream", headers=headers)

    def take(self, line: str) -> Event | None:
        """Take a line; return the event that it completes, unless that event arrived before.

        Raises:
            TurnFailed: The event says that the turn failed.
        """
        if line.startswith("id:"):
            self._number = int(line[3:])
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        elif not line and self._data:
            found = json.loads("\n".join(self._data))
            self._data = []
            return self._event(Event(self._number, found["status"], found["content"]))
        return None

    def _event(self, event: Event) -> Event | None:
        if event.id <= self.last:
            return None
        self.last = event.id
        if event.status == "turn":
            self.turn_id = event.content["turn_id"]
        elif event.status == "done":
            self.ended = True
        elif event.status == "error":
            self.ended = True
            raise TurnFailed(event.content)
        return event
