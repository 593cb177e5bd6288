"""Memory of the process: gives back what was freed, and keeps what stays where it is found fast.

The C library keeps freed memory below whatever is still in use above it. After many clients have each held a
megabyte for a while, that is a third of the process, and stays so.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

_PAUSE_S = 15.0
"""Between two times; where nothing was freed, one takes a fifth of a millisecond."""
_STATISTICS = Path("/proc/self/statm")
_PLACES = Path("/proc/self/maps")
_LARGE_PAGE = 2 * 1024 * 1024
_COLLAPSE = 25
"""`MADV_COLLAPSE` of Linux 6.1: put on a large page what is there, now, and leave later pages as they would be."""


@lru_cache(maxsize=1)
def _malloc_trim() -> Callable[[int], int] | None:
    """The C library's function for it; None = it has none."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return found if _STATISTICS.exists() else None


async def give_back_freed_memory() -> bool:
    """Give freed memory back, in a thread; return whether the C library can.

    What was made last and refers to itself is freed before, as requests that failed and hold what they were to
    send: an idle process collects nothing by itself.
    """
    trim = _malloc_trim()
    if trim is not None:
        gc.collect(0)
        await asyncio.to_thread(trim, 0)
    return trim is not None


async def keep_giving_back() -> None:
    """Give freed memory back from time to time, until cancelled.

    Growth does not tell when: what clients held while they attacked is freed afterwards, and nothing grows then.
    """
    while await give_back_freed_memory():  # noqa: ASYNC110 — it waits for nothing
        await asyncio.sleep(_PAUSE_S)


def use_large_pages() -> int:
    """Move the objects of the process to large pages; return how many pages, 0 where the system has none.

    A turn uses code and tables all over a hundred megabytes, and much of its time the processor looks up where a
    small page is. Not for a process that shares its memory with the one it was forked from: it would get a copy.
    """
    try:
        advise = ctypes.CDLL(None, use_errno=True).madvise
        places = _PLACES.read_text().splitlines()
    except (AttributeError, OSError):
        return 0
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    moved = 0
    for begin, end in map(_heap_at, places):
        for page in range(-(-begin // _LARGE_PAGE) * _LARGE_PAGE, end - _LARGE_PAGE + 1, _LARGE_PAGE):
            moved += advise(page, _LARGE_PAGE, _COLLAPSE) == 0
    return moved


def _heap_at(place: str) -> tuple[int, int]:
    """Return where a line of the process's map says that its own objects are; an empty place for other lines."""
    addresses, access, _, _, _, *name = place.split()
    if access != "rw-p" or name not in ([], ["[heap]"]):
        return 0, 0
    begin, end = addresses.split("-")
    return int(begin, 16), int(end, 16)


def calm_garbage_collection() -> None:
    """Exclude the half million objects of the start from collections, and collect less often.

    What is garbage among them, some nine thousand, stays: to look for it would halt the first turns for a third of
    a second. A turn makes some ten thousand short-lived objects, which reference counting frees; Python's default
    looks for cycles after every 700. The youngest generation is small, because each collection of it halts the
    process, and the older ones are collected as rarely as a hundred times as many objects allow.
    """
    gc.freeze()
    gc.set_threshold(10_000, 100, 100)
    gc.enable()
