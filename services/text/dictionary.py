"""jieba's dictionary of Chinese words, read from its memory-mapped file: nothing is loaded, which saves 55 MB.

The lines, `word frequency kind`, are sorted by the first character of the word, so that a binary search finds a
word. The lines that were read are remembered by the first two characters of their words.
"""

import mmap
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from math import log
from pathlib import Path
from typing import NamedTuple

TOTAL = 60_101_967
"""The sum of all frequencies."""
_LOG_TOTAL = log(TOTAL)

_FIRST = "一 ".encode()
"""First word of the sorted part. Lines before it have Latin letters or digits, which no run of Chinese has."""
_PAIR = 2
_REMEMBERED = 16_384


class Entry(NamedTuple):
    """A word, or the beginning of words."""

    frequency: int
    """Frequency of the word; 0 for a beginning that is no word itself."""
    weight: float
    """Logarithm of its probability."""


_BEGINNING = Entry(0, 0.0)
_NOTHING: Mapping[str, Entry] = {}


class Dictionary:
    """Finds words that begin with a Chinese character, and splits a run into the likeliest words as jieba does."""

    def __init__(self, path: Path) -> None:
        """Map the file."""
        with path.open("rb") as file:
            self._lines = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._begin = self._lines.find(b"\n" + _FIRST) + 1
        self._beginning_with = lru_cache(maxsize=_REMEMBERED)(self._read)
        self._with_first = lru_cache(maxsize=_REMEMBERED)(self._find_block)

    def get(self, text: str) -> int:
        """Return the frequency of a word; 0 for anything else."""
        entry = self._beginning_with(text[:_PAIR]).get(text)
        return entry.frequency if entry else 0

    def likeliest(self, run: str, found: dict[int, tuple[float, int]]) -> None:
        """Fill `found` for each place of a run: the best log probability of its rest, and the end of its first
        word."""
        end = len(run)
        found[end] = (0.0, 0)
        after = 0.0
        for at in range(end - 1, -1, -1):
            best: tuple[float, int] | None = None
            character = self._beginning_with(run[at]).get(run[at])
            if character is not None:
                if character.frequency:
                    best = character.weight + after, at
                known, stop = self._beginning_with(run[at : at + _PAIR]), at + _PAIR
                while stop <= end and (entry := known.get(run[at:stop])) is not None:
                    if entry.frequency:
                        word = entry.weight + found[stop][0], stop - 1
                        best = word if best is None or word > best else best
                    stop += 1
            found[at] = best or (after - _LOG_TOTAL, at)
            after = found[at][0]

    def _read(self, start: str) -> Mapping[str, Entry]:
        """Return the words, and beginnings of words, that begin with these one or two characters."""
        begin, end = self._with_first(start[0]) if start else (0, 0)
        if begin == end:
            return _NOTHING
        if len(start) < _PAIR:
            place = self._lines.find(f"\n{start} ".encode(), begin - 1, end)
            return {start: _entry_of(self._line_at(place + 1)) if place >= 0 else _BEGINNING}
        key = start.encode()
        place = stop = self._lines.find(b"\n" + key, begin - 1, end) + 1
        while stop and self._lines[stop : stop + len(key)] == key:
            stop = self._lines.find(b"\n", stop) + 1
        found: dict[str, Entry] = {}
        for line in self._lines[place : stop or len(self._lines)].decode().splitlines() if place else ():
            word, frequency, _ = line.split()
            for length in range(_PAIR, len(word)):
                found.setdefault(word[:length], _BEGINNING)
            found[word] = _entry(frequency)
        return found or _NOTHING

    def _find_block(self, first: str) -> tuple[int, int]:
        """Return the range of the lines whose words begin with this character."""
        key = first.encode()
        return self._line_from(key, past=False), self._line_from(key, past=True)

    def _line_from(self, key: bytes, *, past: bool) -> int:
        """Return the position of the first line that is not less than the key; with `past`, that is greater."""
        low, high = self._begin, len(self._lines)
        while low < high:
            middle = max(self._lines.rfind(b"\n", low, (low + high) // 2) + 1, low)
            beginning = self._lines[middle : middle + len(key)]
            if beginning < key or (past and beginning == key):
                low = middle + len(self._line_at(middle)) + 1
            else:
                high = middle
        return low

    def _line_at(self, place: int) -> bytes:
        end = self._lines.find(b"\n", place)
        return self._lines[place : end if end >= 0 else len(self._lines)]


def _entry_of(line: bytes) -> Entry:
    _, frequency, _ = line.decode().split()
    return _entry(frequency)


def _entry(frequency: str) -> Entry:
    return Entry(int(frequency), log(int(frequency)) - _LOG_TOTAL)


@lru_cache(maxsize=1)
def dictionary() -> Dictionary:
    """Return the dictionary in jieba's folder."""
    package = find_spec("jieba")  # importing jieba would print its warnings
    if package is None or package.origin is None:
        raise ModuleNotFoundError("jieba is not installed")
    return Dictionary(Path(package.origin).with_name("dict.txt"))
