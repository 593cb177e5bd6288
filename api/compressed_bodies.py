"""Compressed request bodies: which are taken, and how they are read without growing beyond a body's limit."""

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
"""Bytes after which the event loop goes on: some milliseconds."""
_MOST_WINDOW = 8 * 1024 * 1024
"""Bytes that a frame of Zstandard may look back, as RFC 8878 recommends."""


def coding_of(scope: Scope) -> str:
    """Return how a body is compressed, as its header says; empty = it is not."""
    given = ",".join(Headers(scope=scope).getlist("content-encoding")).strip().lower()
    return {"identity": "", "x-gzip": "gzip"}.get(given, given)


async def decompressed(body: bytes, coding: str, grown: Callable[[int], None]) -> bytes:
    """Return what a body holds.

    Args:
        body: as it came.
        coding: one of `TAKEN`.
        grown: is told the bytes so far, after each piece; what it raises ends the reading.

    Raises:
        ValueError: it is not compressed in this way, or its end is missing.
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
