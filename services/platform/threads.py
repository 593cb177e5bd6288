"""Long steps in a thread, short ones at once."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def beside_the_loop(work: Callable[[], Result], *, characters: int, most: int) -> Result:
    """Do some work on text: in a thread if it is longer than `most`, as it would hold up everybody else.

    A thread costs a fraction of a millisecond, which short texts need not pay.
    """
    return await asyncio.to_thread(work) if characters > most else work()
