"""Bodies that do not end or are too many; headers that do not end; clients that do not read."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import orjson
import pytest
import zstandard

pytestmark = [pytest.mark.untraced, pytest.mark.settings(http_bodies_mb=100, http_bodies_caller_mb=70)]

MB = 1024 * 1024
_ESTABLISHED = 1
"""A connection's state in TCP_INFO while neither side has closed it."""
_CLOSED, _CLOSE_WAIT = 7, 8
"""Its state once the service has reset or closed it."""


@asynccontextmanager
async def connected(client: httpx.AsyncClient) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that says only what the test lets it say."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((client.base_url.host, client.base_url.port))
    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        async with asyncio.timeout(120):
            yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


def _head(length: int, path: str = "/api/v1/chat", expect: str = "") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{expect}"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def _problem(answer: bytes) -> tuple[int, dict[str, str], dict[str, object]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(status.split()[1]), headers, orjson.loads(body)


@pytest.mark.settings(http_body_timeout_s=1.0)
async def test_a_body_that_stops_is_refused_and_its_connection_closed(client: httpx.AsyncClient) -> None:
    async def stop(path: str) -> None:
        async with connected(client) as (reader, writer):
            writer.write(_head(2 * MB, path) + b'{"user_id": "u-1", ')
            status, headers, problem = _problem(await reader.read())
            assert (status, problem["code"]) == (408, "body_timeout")
            assert headers["connection"] == "close"
            assert "ANAMNESIS_HTTP_BODY_TIMEOUT_S" in str(problem["detail"])

    await asyncio.gather(stop("/api/v1/chat"), stop("/api/v1/import"))


@pytest.mark.settings(http_body_timeout_s=6.0)
async def test_bytes_under_way_are_bounded_and_given_back(client: httpx.AsyncClient) -> None:
    async with connected(client) as (first, slow), connected(client) as (second, other):
        slow.write(_head(60 * MB, expect="Expect: 100-continue\r\n"))
        await first.readuntil(b"100 Continue\r\n\r\n")  # its bytes are counted, and are waited for
        slow.write(b"{")
        other.write(_head(20 * MB))
        status, headers, problem = _problem(await second.read())
        assert (status, problem["code"], headers["retry-after"]) == (429, "too_many_bytes", "5")
        assert "ANAMNESIS_HTTP_BODIES_CALLER_MB" in str(problem["detail"])
        assert _problem(await first.read())[0] == 408
    body = {"user_id": "u-1", "session_id": "s-1", "message": "Hello.", "images": ["x" * 20 * MB]}
    answer = await client.post("/api/v1/chat", json=body)
    assert answer.status_code == 422  # it was read to its end


@pytest.mark.settings(http_header_timeout_s=0.6)
async def test_connections_that_send_half_a_header_or_nothing_are_closed(client: httpx.AsyncClient) -> None:
    async def say(what: bytes) -> None:
        async with connected(client) as (reader, writer):
            writer.write(what)
            assert (await reader.read()).endswith(b"The request's headers did not come in time")

    half, second = b"GET /healthz HTTP/1.1\r\nHost: 127.0", b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /he"
    await asyncio.gather(*map(say, (b"", half, second)))


@pytest.mark.traced
@pytest.mark.settings(http_reader_timeout_s=0.5)
async def test_a_client_that_reads_nothing_loses_its_connection(client: httpx.AsyncClient) -> None:
    line = {"user_id": "u-1", "session_id": "s-1", "role": "user", "created_at": "2025-01-01T00:00:00Z"}
    lines = b"\n".join(orjson.dumps({**line, "content": f"{number} " + "x" * 60_000}) for number in range(120))
    headers = {"Content-Type": "application/x-ndjson"}
    (await client.post("/api/v1/import", content=lines, headers=headers)).raise_for_status()
    found = (await client.get("/api/v1/conversations", params={"user_id": "u-1"})).json()["items"]
    path = f"/api/v1/conversations/{found[0]['id']}/messages?limit=200"
    async with connected(client) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        state = writer.get_extra_info("socket")
        while (found_state := state.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]) == _ESTABLISHED:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # `connected` ends the wait with an error
        assert found_state in {_CLOSED, _CLOSE_WAIT}


_CHAT = {"user_id": "u-1", "session_id": "s-1", "message": "My dog is called Bruno."}
_PACKED = {"gzip": gzip.compress, "x-gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}
_JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("coding", _PACKED)
async def test_a_compressed_body_is_read_within_the_same_limits(client: httpx.AsyncClient, coding: str) -> None:
    pack, headers = _PACKED[coding], {**_JSON, "Content-Encoding": coding}
    body = orjson.dumps({**_CHAT, "images": []})
    assert (await client.post("/api/v1/chat", content=pack(body), headers=headers)).status_code == 200
    cut = await client.post("/api/v1/chat", content=pack(body)[:-9], headers=headers)
    assert cut.status_code in {400, 422}
    other = await client.post("/api/v1/chat", content=body, headers=headers)
    assert (other.status_code, other.json()["code"]) == (400, "bad_encoding")
    bomb = await client.post("/api/v1/chat", content=pack(b" " * 200 * MB), headers=headers)
    assert (bomb.status_code, bomb.json()["code"]) == (413, "too_large")
    assert (await client.post("/api/v1/chat", json=_CHAT)).status_code == 200  # the bytes were given back


async def test_another_compression_is_refused_by_its_header(client: httpx.AsyncClient) -> None:
    for path, coding, taken in (
        ("/v1/chat/completions", "br", "gzip, zstd"),
        ("/api/v1/chat", "gzip, gzip", "gzip, zstd"),
        ("/api/v1/import", "gzip", "identity"),
    ):
        answer = await client.post(path, content=b"x", headers={**_JSON, "Content-Encoding": coding})
        assert (answer.status_code, answer.headers["Accept-Encoding"]) == (415, taken)
        assert "Content-Encoding" in answer.text
