"""Ends a process that hangs, because supervisors of containers restart only what has ended."""

import asyncio
import faulthandler
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LOOKS = 10
"""Number of checks in the time after which a hanging process is ended."""


@asynccontextmanager
async def ended_when_it_hangs(after_s: float | None) -> AsyncIterator[None]:
    """End this process if its event loop stands still for so many seconds; None = never.

    The C library's watching thread needs no lock of the interpreter. It writes the stacks of all threads to
    standard error; the exit code is 1.
    """
    if after_s is None:
        yield
        return
    alive = asyncio.create_task(_say_that_it_lives(after_s), name="watchdog")
    try:
        yield
    finally:
        alive.cancel()
        faulthandler.cancel_dump_traceback_later()


async def _say_that_it_lives(after_s: float) -> None:
    while True:
        faulthandler.dump_traceback_later(after_s, exit=True)
        await asyncio.sleep(after_s / _LOOKS)
