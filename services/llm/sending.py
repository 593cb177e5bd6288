"""Sends requests to an endpoint's models, and splits the responses into the data of their events."""

import asyncio
import ssl
from collections.abc import AsyncIterable, Mapping
from time import monotonic
from typing import Any

import aiohttp
import anyio
import httpx2
import openai

_UNREACHABLE = (httpx2.RequestError, ssl.SSLError, anyio.EndOfStream)

_AT_ONCE_S = 1.0
"""Seconds within which a connection shows that it was closed."""
_LONGEST_EVENT = 8 * 1024 * 1024
"""Maximum bytes of one event; the last event of the Responses API repeats the request and the whole answer."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _was_closed(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, aiohttp.ClientConnectionResetError | aiohttp.ServerDisconnectedError):
            return True
        error = error.__cause__
    return False


class Sender:
    """Posts bodies that are JSON already, with the address and the headers of the SDK's client, made once.

    The SDK's own methods validate every message of the prompt against its types, which at 60 turns takes more time
    than the rest of a turn. They also build the address and the headers again for every request.
    """

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        """Take the client whose address, key and headers are used."""
        self._client = client
        self._first: dict[str, httpx2.Request] = {}
        self._answered = False
        """Whether the previous request was answered, so that its connection may still be open."""

    async def post(
        self,
        path: str,
        content: bytes | AsyncIterable[bytes],
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        timeout: float | openai.Timeout | None = None,  # noqa: ASYNC109 — the connection's, between two bytes
    ) -> httpx2.Response:
        """Send a body, and return the response, which is to be read and closed. Raises `openai.APIStatusError`
        if the endpoint refuses the request, and `openai.APIConnectionError` if it cannot be reached, or does
        not answer in time."""
        first = self._first.get(path)
        if first is None:  # in a thread: the headers name the operating system, which is read from disk
            first = self._first[path] = await asyncio.to_thread(self._made, path)
        connections: httpx2.AsyncClient = self._client._client
        sent = first.headers
        if headers:
            sent = sent.copy()
            sent.update(headers)
        limits = self._client.timeout if timeout is None else timeout
        request = httpx2.Request(
            "POST",
            first.url.copy_merge_params(query) if query else first.url,
            headers=sent,
            cookies=connections.cookies,
            content=content,
            extensions={"timeout": httpx2.Timeout(limits).as_dict()},
        )
        try:
            response = await self._sent(connections, request, again=isinstance(content, bytes))
        except httpx2.TimeoutException as error:
            raise openai.APITimeoutError(request=request) from error
        except _UNREACHABLE as error:
            raise openai.APIConnectionError(request=request) from error
        if not response.is_success:
            await response.aread()
            raise self._client._make_status_error_from_response(response)
        return response

    async def _sent(
        self, connections: httpx2.AsyncClient, request: httpx2.Request, *, again: bool
    ) -> httpx2.Response:
        """Send a request, and send it once more if the endpoint had closed the connection after the previous one.
        llama.cpp's servers promise to keep a connection and close it when a stream has ended."""
        again, self._answered = again and self._answered, False
        begun = monotonic()
        try:
            response = await connections.send(request, stream=True)
        except httpx2.TransportError as error:
            if not again or monotonic() - begun > _AT_ONCE_S or not _was_closed(error):
                raise
            response = await connections.send(request, stream=True)
        self._answered = True
        return response

    def _made(self, path: str) -> httpx2.Request:
        """Make a request without a body."""
        client = self._client
        headers = {**client.auth_headers, **client.default_headers}
        given = {name: value for name, value in headers.items() if isinstance(value, str)}
        url = client.base_url.copy_with(raw_path=client.base_url.raw_path + path.lstrip("/").encode())
        made: httpx2.Request = client._client.build_request("POST", url, headers=given)
        del made.headers["Content-Length"]
        return made


class EventData:
    """Collects the `data` of each event, however the network cut the bytes.

    Works on bytes, so that a character split by the network is complete before it is decoded. Event names, ids and
    comments are ignored; both APIs name the kind in the data. A body that is a JSON document instead is one event.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._lines: list[bytes] = []
        self._bytes = 0
        """Bytes of the event that is not yet complete."""
        self._document: list[bytes] | None = None
        self._begun = False
        self._after_return = False
        """Whether the last byte was a carriage return that ended a line, so that a line feed right after it does
        not end another."""

    def feed(self, received: bytes) -> list[bytes]:
        """Return the data of every event that is complete with these bytes. Raises `ValueError` if an event is
        longer than any that the APIs send."""
        self._bytes += len(received)
        if self._bytes > _LONGEST_EVENT:
            raise ValueError("An event of the stream is too long.")
        if not self._begun:
            received = received.removeprefix(_BYTE_ORDER_MARK)
            self._begun = bool(received.strip())
            if received.lstrip().startswith(b"{"):
                self._document = []
        if self._document is not None:
            self._document.append(received)
            return []
        received = self._with_line_feeds(received)
        if b"\n" not in received:
            self._rest.append(received)
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
        return events

    def _with_line_feeds(self, received: bytes) -> bytes:
        """Replace carriage returns, alone or with line feeds, by line feeds."""
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
