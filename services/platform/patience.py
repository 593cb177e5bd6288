"""Time limits for what others are to answer, which work of this process does not use up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_BUSY_S = 0.005


@asynccontextmanager
async def patience(seconds: float | None) -> AsyncIterator[None]:
    """Like `asyncio.timeout`, but not counting time in which this process is busy with other turns.

    Raises:
        TimeoutError: what is within takes longer.
    """
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    async with asyncio.timeout(None) as limit:

        def wait(more: float) -> None:
            timers.append(loop.call_later(more, look, loop.time() + more))

        def look(due: float) -> None:
            late = loop.time() - due
            if late > _BUSY_S:
                wait(late)
            else:
                limit.reschedule(loop.time())

        if seconds is not None:
            wait(seconds)
        try:
            yield
        finally:
            if timers:
                timers[-1].cancel()
