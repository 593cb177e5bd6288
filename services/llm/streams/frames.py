"""Splits a response's bytes into the data of its server-sent events."""

_LONGEST_EVENT = 8 * 1024 * 1024
"""Bytes; the last event of the Responses API repeats the request and the whole answer."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventData:
    """Collects the `data` of each event, however the network cut the bytes.

    Works on bytes, so that a character split by the network is complete before it is decoded. Event names, ids and
    comments are ignored; both APIs name the kind in the data. A body that is a JSON document instead is one event.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._lines: list[bytes] = []
        self._bytes = 0
        """Of the event that is not yet complete."""
        self._document: list[bytes] | None = None
        self._begun = False
        self._after_return = False
        """Whether a line ended with the last byte, a carriage return: a line feed after it ends no other."""

    def feed(self, received: bytes) -> list[bytes]:
        """Return the data of every event that is complete with these bytes.

        Raises:
            ValueError: an event is longer than any that the APIs send.
        """
        self._bytes += len(received)
        if not self._begun:
            received = received.removeprefix(_BYTE_ORDER_MARK)
            self._begun = bool(received.strip())
            if received.lstrip().startswith(b"{"):
                self._document = []
        if self._document is not None:
            self._document.append(received)
            if self._bytes > _LONGEST_EVENT:
                raise ValueError("The endpoint's answer is too long.")
            return []
        received = self._with_line_feeds(received)
        if b"\n" not in received:
            self._rest.append(received)
            if self._bytes > _LONGEST_EVENT:
                raise ValueError("An event of the stream is too long.")
            return []
        *lines, rest = b"".join([*self._rest, received]).split(b"\n")
        self._rest = [rest]
        events: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                if len(self._lines) == 1 and _is_whole(self._lines[0]):  # no blank line between events
                    events.append(self._lines.pop())
                self._lines.append(line[5:].removeprefix(b" "))
            elif not line and self._lines:
                events.append(b"\n".join(self._lines))
                self._lines = []
        if events:
            self._bytes = len(rest)
        if self._bytes > _LONGEST_EVENT:
            raise ValueError("An event of the stream is too long.")
        return events

    def _with_line_feeds(self, received: bytes) -> bytes:
        """End lines with line feeds alone; a sender may end them with carriage returns, or with both."""
        if not received:
            return received
        if self._after_return:
            received = received.removeprefix(b"\n")
        self._after_return = received.endswith(b"\r")
        return received.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in received else received

    def end(self) -> list[bytes]:
        """Return the data of an event that the end of the stream left without its blank line."""
        if self._document is not None:
            return [b"".join(self._document)]
        return self.feed(b"\n\n")


def _is_whole(line: bytes) -> bool:
    return line == b"[DONE]" or (line.startswith(b"{") and line.endswith(b"}"))
