"""Rules from the settings for when a conversation's rolling summary is due, and when it is made again."""

import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from services.errors import Conflict
from services.platform.settings import Settings

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

ARCHIVE_SOON = 0.8
"""Share of the prompt's budget from which topics are archived after an answer; at its whole, before it."""
_RETRIES = 3


def again_if_retracted(
    method: Callable[Arguments, Awaitable[Result]],
) -> Callable[Arguments, Coroutine[Any, Any, Result]]:
    """Make a method read and summarise again, up to three times, if what it read was retracted meanwhile."""

    @wraps(method)
    async def repeated(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        for _ in range(_RETRIES):
            with contextlib.suppress(Conflict):
                return await method(*args, **kwargs)
        return await method(*args, **kwargs)

    return repeated


_LONG = 0.3
"""Share of the prompt's budget from which half as many messages are summarised: they take its room."""


def is_due(settings: Settings, *, covered: bool, behind: int, tokens: int) -> bool:
    """Return whether a summary is to be renewed.

    Args:
        covered: Whether there is a summary already.
        behind: Number of completed messages after the covered point.
        tokens: Estimated tokens of these messages.
    """
    if not settings.memory_summaries:
        return False
    window, share = settings.memory_summary_window_size, 1
    if tokens >= _LONG * settings.context_budget_tokens:
        share = 2
    if not covered:
        return behind >= max(fewest_messages(settings) // share, window + 1)
    return behind - window >= max(settings.memory_summary_update_delta // share, 1)


def fewest_messages(settings: Settings) -> int:
    """Return the number of completed messages from which a conversation has a summary."""
    return max(settings.memory_summary_min_messages, settings.memory_summary_window_size + 1)
