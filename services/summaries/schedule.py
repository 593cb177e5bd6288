"""When a conversation's rolling summary is due, by the settings, and when it is made again."""

import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from services.errors import Conflict
from services.platform.settings import Settings

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

ARCHIVE_SOON = 0.8
"""Share of a prompt's budget from which topics are archived after the answer; at the whole of it, before."""
_RETRIES = 3


def again_if_retracted(
    method: Callable[Arguments, Awaitable[Result]],
) -> Callable[Arguments, Coroutine[Any, Any, Result]]:
    """Make a method read and summarise again if what it read was retracted meanwhile, up to three times."""

    @wraps(method)
    async def repeated(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        for _ in range(_RETRIES):
            with contextlib.suppress(Conflict):
                return await method(*args, **kwargs)
        return await method(*args, **kwargs)

    return repeated


def is_due(settings: Settings, *, covered: bool, behind: int) -> bool:
    """Whether a summary is to be renewed, with `behind` completed messages behind the covered point.

    `covered`: whether there is one already.
    """
    if not settings.memory_summaries:
        return False
    if not covered:
        return behind >= fewest_messages(settings)
    return behind - settings.memory_summary_window_size >= settings.memory_summary_update_delta


def fewest_messages(settings: Settings) -> int:
    """Completed messages from which a conversation has a summary."""
    return max(settings.memory_summary_min_messages, settings.memory_summary_window_size + 1)
