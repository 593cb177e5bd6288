"""Passages of a text: cut at paragraphs and lines first, then at sentences, clauses and words.

A passage is the unit of meaning of a long text: it is indexed, embedded and shown by itself.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

from langchain_text_splitters import RecursiveCharacterTextSplitter

from services.text.caches import text_cache
from services.text.language import Span

_SEPARATORS = [
    "\n\n", "\n", "。", "！", "？", ". ", "! ", "? ", "；", "; ", "，", "、", ", ", " ",
]  # fmt: skip
_BLOCK_CHARACTERS = 50_000
_KNOWN_PIECES = 1_024

_LEAST, _USUAL, _LONGEST = 150, 600, 800
"""Minimum and usual size of a passage, and the largest text that stays one passage. Sizes count characters, a
Chinese one as three: usual are some hundred English words or two hundred Chinese characters, as an encoder
reads."""
_LONG = 400
"""Minimum size of a text that is more than a few sentences."""
_OF_CHINESE = 3
_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_ENDS_IN_HEADING = re.compile(r"\n[ \t]*(?:#{1,6} [^\n]+|\*\*[^\n*]+\*\*:?)\s*\Z")
MOST_PASSAGES = 999
"""Maximum number of passages of a text; no message reaches it."""


def cut(text: str, *, most: int, overlap: int, length: Callable[[str], int]) -> Iterator[str]:
    """Yield the pieces of a text in order, without the white space around them.

    Args:
        most: Maximum length of a piece.
        overlap: Length of the end of a piece that is repeated at the beginning of the next.
        length: Measures a text.
    """
    splitter = RecursiveCharacterTextSplitter(
        separators=_SEPARATORS,
        keep_separator="end",
        chunk_size=most,
        chunk_overlap=overlap,
        length_function=lru_cache(_KNOWN_PIECES)(length),  # it asks three times for each piece
    )
    for block in filter(str.strip, _blocks(text)):
        for piece in splitter.split_text(block):
            yield from _windows(piece, most, overlap, length)


def is_long(text: str) -> bool:
    """Return whether a text is more than a few sentences."""
    return len(text) * _OF_CHINESE > _LONG and _size(text) > _LONG


def passages_of(text: str) -> tuple[Span, ...]:
    """Return the passages of a text, in order; a short text is one passage. They leave out only the white space
    between them."""
    if len(text) * _OF_CHINESE <= _LONGEST or _size(text) <= _LONGEST:
        return (Span(0, len(text)),)
    return _remembered_passages(text)


def passage(text: str, number: int) -> str:
    """Return the passage with a number from 0; marks show whether the text goes on before or after it. If the
    text was changed and has no such number any more, its last passage is returned."""
    every = passages_of(text)
    if len(every) == 1:
        return text
    number = min(number, len(every) - 1)
    found = every[number]
    return f"{'…' * (number > 0)}{text[found.start : found.end]}{'…' * (number + 1 < len(every))}"


def _cut_into_passages(text: str) -> tuple[Span, ...]:
    begins: list[int] = []
    at = 0
    for piece in cut(text, most=_USUAL, overlap=0, length=_size):
        at = text.index(piece, at)
        is_short = _size(piece) < _LEAST  # it belongs to what precedes it
        if not begins or not is_short or _size(text[begins[-1] : at + len(piece)]) > _LONGEST:
            begins.append(at)
        at += len(piece)
    for place, (begin, end) in enumerate(pairwise(begins), start=1):
        # A heading belongs to the text below it.
        if heading := _ENDS_IN_HEADING.search(text, begin, end):
            begins[place] = heading.start() + 1
    begins = begins[:MOST_PASSAGES]
    ends = [begin + len(text[begin:end].rstrip()) for begin, end in pairwise([*begins, len(text)])]
    return tuple(map(Span, begins, ends))


_remembered_passages = text_cache(64)(_cut_into_passages)


def _size(text: str) -> int:
    if text.isascii():  # the splitter measures every piece, which may be one character
        return len(text)
    return len(text) + (_OF_CHINESE - 1) * len(_CHINESE.findall(text))


def _windows(piece: str, most: int, overlap: int, length: Callable[[str], int]) -> Iterator[str]:
    """Cut a piece that has no separator into windows; the splitter would cut it character by character."""
    while length(piece) > most:
        longest = most if length(piece[:most]) > most else len(piece)
        end = bisect_right(range(longest), most, lo=1, key=lambda stop: length(piece[:stop])) - 1
        again = bisect_right(range(end), overlap, key=lambda back: length(piece[end - back : end])) - 1
        yield piece[: max(end, 1)]
        piece = piece[max(end - again, 1) :]
    yield piece


def _blocks(text: str) -> Iterator[str]:
    """Cut a very long text into blocks first: the splitter holds many copies of the text in memory."""
    at = 0
    while len(text) - at > _BLOCK_CHARACTERS:
        half, whole = at + _BLOCK_CHARACTERS // 2, at + _BLOCK_CHARACTERS
        ends = (text.rfind(mark, half, whole) + len(mark) for mark in _SEPARATORS if mark in text[half:whole])
        end = next(ends, whole)
        yield text[at:end]
        at = end
    yield text[at:]
