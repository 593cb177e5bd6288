"""Compressed request bodies: accepted codings, and decompression within the limit of a body."""

import asyncio
import gzip
import io
import zlib
from collections.abc import Callable

import zstandard
from starlette.datastructures import Headers
from starlette.types import Scope

TAKEN = ("gzip", "zstd")
_PIECE = 1024 * 1024
"""Bytes after which other work of the event loop gets a turn: some milliseconds."""
_MOST_WINDOW = 8 * 1024 * 1024
"""Maximum window of a Zstandard frame in bytes, as RFC 8878 recommends."""


def coding_of(scope: Scope) -> str:
    """Return the coding that the header of a body names; empty = it is not compressed."""
    given = ",".join(Headers(scope=scope).getlist("content-encoding")).strip().lower()
    return {"identity": "", "x-gzip": "gzip"}.get(given, given)


async def decompressed(body: bytes, coding: str, grown: Callable[[int], None]) -> bytes:
    """Return the decompressed body.

    Args:
        body: The body as it was sent.
        coding: One of `TAKEN`.
        grown: Called with the number of bytes so far, after each piece; an exception that it raises ends the
            reading.

    Raises:
        ValueError: The body is not compressed in this way, or its end is missing.
    """
    found = bytearray()
    try:
        with _reader(body, coding) as reader:
            while piece := reader.read(_PIECE):
                found += piece
                grown(len(found))
                await asyncio.sleep(0)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise ValueError(str(error)) from error
    return bytes(found)


def _reader(body: bytes, coding: str) -> gzip.GzipFile | zstandard.ZstdDecompressionReader:
    source = io.BytesIO(body)
    if coding == "gzip":
        return gzip.GzipFile(fileobj=source)
    frames = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW)
    return frames.stream_reader(source, read_across_frames=True)
