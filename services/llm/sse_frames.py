"""Splits a response's bytes into the data of its server-sent events."""

_LONGEST_EVENT = 8 * 1024 * 1024
"""Bytes; the last event of the Responses API repeats the request and the whole answer."""


class EventData:
    """Collects the `data` of each event, however the network cut the bytes.

    Works on bytes, so that a character split by the network is complete before it is decoded. Event names, ids and
    comments are ignored; both APIs name the kind in the data.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._lines: list[bytes] = []
        self._bytes = 0
        """Of the event that is not yet complete."""

    def feed(self, received: bytes) -> list[bytes]:
        """Return the data of every event that is complete with these bytes.

        Raises:
            ValueError: an event is longer than any that the APIs send.
        """
        self._bytes += len(received)
        if b"\n" not in received:
            self._rest.append(received)
            if self._bytes > _LONGEST_EVENT:
                raise ValueError("An event of the stream is too long.")
            return []
        *lines, rest = b"".join([*self._rest, received]).split(b"\n")
        self._rest = [rest]
        events: list[bytes] = []
        for line in lines:
            text = line.removesuffix(b"\r")
            if text.startswith(b"data:"):
                self._lines.append(text[5:].removeprefix(b" "))
            elif not text and self._lines:
                events.append(b"\n".join(self._lines))
                self._lines = []
        if events:
            self._bytes = len(rest)
        if self._bytes > _LONGEST_EVENT:
            raise ValueError("An event of the stream is too long.")
        return events

    def end(self) -> list[bytes]:
        """Return the data of an event that the end of the stream left without its blank line."""
        return self.feed(b"\n\n")
