"""An event loop whose time passes only as its tests say, so that other processes cannot make anything late."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

Arguments = ParamSpec("Arguments")


class _Passing(selectors.DefaultSelector):
    """A selector that adds the time for which the loop would have waited."""

    loop: "ClockedLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self.loop.let_pass(timeout)
        return super().select(timeout if timeout is None else 0)


class ClockedLoop(asyncio.SelectorEventLoop):
    """A loop that waits for its timers in no time; only `let_pass` makes its steps take time."""

    def __init__(self) -> None:
        self._now = 0.0
        passing = _Passing()
        passing.loop = self
        super().__init__(passing)

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self._now

    def let_pass(self, seconds: float) -> None:
        """Let time pass, as a step of the loop that takes as long would."""
        self._now += seconds


def work(seconds: float) -> None:
    """Keep the running loop busy for this long."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ClockedLoop)
    loop.let_pass(seconds)


def clocked(test: Callable[Arguments, Coroutine[Any, Any, None]]) -> Callable[Arguments, None]:
    """Run a test in a loop of this kind."""

    @wraps(test)
    def run(*arguments: Arguments.args, **fixtures: Arguments.kwargs) -> None:
        with asyncio.Runner(loop_factory=ClockedLoop) as runner:
            runner.run(test(*arguments, **fixtures))

    return run
