"""When a conversation's rolling summary is due, and when it is made again."""

import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
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


@dataclass(frozen=True)
class SummarySchedule:
    """The numbers of the rolling summary, in messages."""

    on: bool = True
    min_messages: int = 10
    """Completed messages from which a conversation has a summary."""
    update_delta: int = 5
    """Further messages that can be covered before it is renewed."""
    window_size: int = 6
    """Newest messages, which are never covered."""
    full_after: int = 10
    """Increments after which it is rewritten from the whole transcript, so that errors do not accumulate."""

    def is_due(self, *, covered: bool, behind: int) -> bool:
        """Whether there is work, with `behind` completed messages behind the covered point.

        `covered`: whether there is a summary already.
        """
        if not self.on:
            return False
        if not covered:
            return behind >= max(self.min_messages, self.window_size + 1)
        return behind - self.window_size >= self.update_delta


def summary_schedule(settings: Settings) -> SummarySchedule:
    """The schedule from the settings."""
    return SummarySchedule(
        on=settings.memory_summaries,
        min_messages=settings.memory_summary_min_messages,
        update_delta=settings.memory_summary_update_delta,
        window_size=settings.memory_summary_window_size,
        full_after=settings.memory_summary_full_after,
    )
