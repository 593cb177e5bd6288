"""Gives memory that was freed back to the system.

The C library keeps freed memory below whatever is still in use above it. After many clients have each held a
megabyte for a while, that is a third of the process, and stays so.
"""

import asyncio
import ctypes
import gc
import resource
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

_PAUSE_S = 15.0
"""Between two times; where nothing was freed, one takes a fifth of a millisecond."""
_STATISTICS = Path("/proc/self/statm")


@lru_cache(maxsize=1)
def _malloc_trim() -> Callable[[int], int] | None:
    """The C library's function for it; None = it has none."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return found if _STATISTICS.exists() else None


def resident_bytes() -> int:
    """Return the bytes of memory that the process holds; only on Linux."""
    return int(_STATISTICS.read_text().split()[1]) * resource.getpagesize()


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


def calm_garbage_collection() -> None:
    """Exclude the half million objects of the start from collections, and collect less often.

    A turn makes some ten thousand short-lived objects, which reference counting frees; Python's default
    looks for cycles after every 700. The youngest generation is small, because each collection of it halts the
    process, and the older ones are collected as rarely as a hundred times as many objects allow.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 100, 100)
    gc.enable()
