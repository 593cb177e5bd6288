"""Splits a response's bytes into the data of its server-sent events."""


class EventData:
    """Collects the `data` of each event, however the network cut the bytes.

    Works on bytes, so that a character split by the network is complete before it is decoded. Event names, ids and
    comments are ignored; both APIs name the kind in the data.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[bytes] = []

    def feed(self, received: bytes) -> list[bytes]:
        """Return the data of every event that is complete with these bytes."""
        *lines, self._rest = (self._rest + received).split(b"\n")
        events: list[bytes] = []
        for line in lines:
            text = line.removesuffix(b"\r")
            if text.startswith(b"data:"):
                self._lines.append(text[5:].removeprefix(b" "))
            elif not text and self._lines:
                events.append(b"\n".join(self._lines))
                self._lines = []
        return events

    def end(self) -> list[bytes]:
        """Return the data of an event that the end of the stream left without its blank line."""
        return self.feed(b"\n\n")
