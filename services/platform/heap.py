"""Memory of the process: returns freed memory to the system, and moves lasting objects where access is fast.

The C library keeps freed memory that lies below memory still in use. After many clients have each held a megabyte
for a while, that is a third of the process, and it stays so.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

_PAUSE_S = 15.0
"""Seconds between two runs; a run that frees nothing takes a fifth of a millisecond."""
_STATISTICS = Path("/proc/self/statm")
_PLACES = Path("/proc/self/maps")
_LARGE_PAGE = 2 * 1024 * 1024
_COLLAPSE = 25
"""`MADV_COLLAPSE` of Linux 6.1: moves present pages to large pages now, and leaves later pages as usual."""


@lru_cache(maxsize=1)
def _malloc_trim() -> Callable[[int], int] | None:
    """Return the C library's function that returns freed memory; None = it has none."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return found if _STATISTICS.exists() else None


async def give_back_freed_memory() -> bool:
    """Return freed memory to the system, in a thread; return whether the C library can do so.

    The youngest objects in reference cycles are freed first, such as failed requests that hold their bodies: an
    idle process does not collect them by itself.
    """
    trim = _malloc_trim()
    if trim is not None:
        gc.collect(0)
        await asyncio.to_thread(trim, 0)
    return trim is not None


async def keep_giving_back() -> None:
    """Return freed memory from time to time, until cancelled. Growth would be no signal: what attacking clients
    held is freed afterwards, when nothing grows."""
    while await give_back_freed_memory():  # noqa: ASYNC110 — it waits for nothing
        await asyncio.sleep(_PAUSE_S)


def use_large_pages() -> int:
    """Move the objects of the process to large pages; return the number of pages, 0 if the system has none.

    A turn uses code and tables in more than a hundred megabytes, and the processor spends much of its time looking
    up where small pages are. Not for a process that shares memory with its parent: it would get a copy.
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
    """Return the bounds of the process's own objects in a line of its memory map; empty for other lines."""
    addresses, access, _, _, _, *name = place.split()
    if access != "rw-p" or name not in ([], ["[heap]"]):
        return 0, 0
    begin, end = addresses.split("-")
    return int(begin, 16), int(end, 16)


def calm_garbage_collection() -> None:
    """Exclude the half million objects of the start from garbage collection, and collect less often.

    What is garbage among them, some nine thousand, stays: to look for it would halt the first turns for a third of
    a second.
    A turn makes some ten thousand short-lived objects, which reference counting frees, while Python's default
    looks for cycles after every 700. The youngest generation stays small because each collection of it halts the
    process; the older ones are collected as rarely as with a hundred times as many objects.
    """
    gc.freeze()
    gc.set_threshold(10_000, 100, 100)
    gc.enable()
