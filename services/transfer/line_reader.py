"""A stream of bytes, cut into lines."""

from collections.abc import AsyncIterable, AsyncIterator

LONGEST_LINE = 72 * 1024 * 1024
"""Bytes. A message may carry images of 70 MiB, and the line some text beside them."""

_BOM = b"\xef\xbb\xbf"


async def numbered_lines(
    chunks: AsyncIterable[bytes], *, longest: int = LONGEST_LINE
) -> AsyncIterator[tuple[int, bytes | None]]:
    """Yield each line with its number, from 1, without its end; None for one that is over `longest` bytes.

    No more than a line and a chunk is ever held.
    """
    number, size = 1, 0
    pieces: list[bytes] = []
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield number, _line(number, pieces, piece, size, longest)
            number, size, pieces = number + 1, 0, []
        size += len(rest)
        if size > longest:
            pieces.clear()
        elif rest:
            pieces.append(rest)
    if size:
        yield number, _line(number, pieces, b"", size, longest)


def _line(number: int, pieces: list[bytes], last: bytes, size: int, longest: int) -> bytes | None:
    if size + len(last) > longest:
        return None
    line = b"".join((*pieces, last))
    return line.removeprefix(_BOM) if number == 1 else line
