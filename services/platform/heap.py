"""Gives memory that was freed back to the system.

The C library keeps freed memory below whatever is still in use above it. After many clients have each held a
megabyte for a while, that is a third of the process, and stays so.
"""

import asyncio
import ctypes
import resource
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

_LOOK_S = 10.0
_GROWN = 1.08
"""Growth since memory was given back last, from which on it is tried again: in vain if all of it is in use."""
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
    """Give freed memory back, in a thread; return whether the C library can."""
    trim = _malloc_trim()
    if trim is not None:
        await asyncio.to_thread(trim, 0)
    return trim is not None


async def keep_giving_back() -> None:
    """Give freed memory back whenever the process has grown, until cancelled."""
    least = 0
    while await give_back_freed_memory():
        least = resident_bytes()
        while resident_bytes() <= _GROWN * least:
            await asyncio.sleep(_LOOK_S)
            least = min(least, resident_bytes())
