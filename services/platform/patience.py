"""Patience with others that are slow or away, and with long steps of this process."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from services.errors import Unavailable

Result = TypeVar("Result")

REST_S = 5.0


async def beside_the_loop(work: Callable[[], Result], *, characters: int, most: int) -> Result:
    """Do some work on text, in a thread if the text is longer than `most`, because it would block other turns.
    A thread costs a fraction of a millisecond, which short texts need not pay."""
    return await asyncio.to_thread(work) if characters > most else work()


_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 1.0


async def despite(error: type[Exception], work: Callable[[], Awaitable[Result]], *, within_s: float) -> Result:
    """Do some work, and try again while it raises `error`. The last try begins within so many seconds. Pauses
    are short, because somebody waits for the end of the outage."""
    begun, pause_s = time.monotonic(), _FIRST_PAUSE_S
    while True:
        try:
            return await work()
        except error:
            if time.monotonic() - begun + pause_s > within_s:
                raise
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))  # noqa: S311 — no secret
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


_BUSY_S = 0.005


class Patience:
    """Like `asyncio.timeout`, but time in which this process is busy with other turns does not count.

    Raises on leaving:
        TimeoutError: The block takes longer.
    """

    def __init__(self, seconds: float | None) -> None:
        """Take the seconds; None = no limit."""
        self._seconds = seconds
        self._limit = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        if self._seconds is not None:
            self._wait(self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None  # it refers to this object; together they would wait for a garbage collection
        await self._limit.__aexit__(kind, error, traceback)

    def _wait(self, more: float) -> None:
        self._timer = self._loop.call_later(more, self._look, self._loop.time() + more)

    def _look(self, due: float) -> None:
        late = self._loop.time() - due
        if late > _BUSY_S:
            self._wait(late)
        else:
            self._limit.reschedule(self._loop.time())


class CircuitBreaker:
    """Refuses every use for `rest_s` seconds after consecutive failures, then tries again."""

    def __init__(
        self,
        name: str,
        *,
        failures: int = 3,
        rest_s: float = REST_S,
        counts: Callable[[Exception], bool] = lambda _: True,
    ) -> None:
        """Take the number of consecutive failures to tolerate, and which exceptions count as failures."""
        self.name = name
        self.failing = False
        """Whether the dependency failed when it was last used."""
        self._counts = counts
        self._breakers = AsyncCircuitBreakerFactory(
            default_threshold=failures,
            default_ttl=rest_s,
            exclude=[asyncio.CancelledError, (Exception, lambda error: not counts(error))],
        )

    @asynccontextmanager
    async def use(self) -> AsyncIterator[None]:
        """Use the dependency; an exception in the block counts as its failure. Raises `Unavailable` if the
        dependency is not used for the moment."""
        breaker = await self._breakers.get_breaker(self.name)
        try:
            async with breaker:
                yield
        except OpenedState:
            raise Unavailable(f"{self.name} does not answer; it is tried again in a few seconds.") from None
        except Exception as error:
            self.failing = self._counts(error)
            raise
        self.failing = False


class Probes:
    """Questions that may hang: each caller waits for a limited time, and no question is asked twice at once.

    A question that takes longer continues, and later callers wait for its answer: cancelling a query waits for the
    same server, and each new query would take another connection.
    """

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Task[Any]] = {}

    async def ask(
        self, name: str, question: Callable[[], Coroutine[Any, Any, Result]], *, within_s: float
    ) -> Result:
        """Return the answer, or raise what the question raises. Raises `TimeoutError` if there is no answer
        within `within_s` seconds."""
        task = self._asked.get(name)
        if task is None:
            task = self._asked[name] = asyncio.create_task(question(), name=f"probe {name}")
            task.add_done_callback(lambda ended: self._forget(name, ended))
        if not (await asyncio.wait({task}, timeout=within_s))[0]:
            raise TimeoutError
        result: Result = task.result()
        return result

    async def close(self) -> None:
        """End the unanswered questions, within two seconds."""
        for task in (asked := set(self._asked.values())):
            task.cancel()
        if asked:
            await asyncio.wait(asked, timeout=2)

    def _forget(self, name: str, task: "asyncio.Task[Any]") -> None:
        del self._asked[name]
        if not task.cancelled():
            task.exception()  # its caller may be gone
