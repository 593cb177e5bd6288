"""Turns as a client hears them: a stream that is read to its end, or for a while and then held or left."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import orjson

from tests.scenarios.outcome import Event


class Heard:
    """A stream, and what has been heard of it."""

    def __init__(self, status: int, problem: str, lines: AsyncIterator[str], stack: AsyncExitStack) -> None:
        self.status = status
        self.problem = problem
        """The body of a refusal."""
        self.events: list[Event] = []
        self._lines = lines
        self._stack = stack

    async def until(self, kind: str) -> None:
        """Hear on to the next event of this kind, or to the end."""
        number, name = 0, ""
        async for line in self._lines:
            if line.startswith("id: "):
                number = int(line.removeprefix("id: "))
            elif line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                told = orjson.loads(line.removeprefix("data: "))
                self.events.append((number, name, told["content"]))
                if name == kind:
                    return

    async def to_the_end(self) -> None:
        """Hear all of it."""
        await self.until("")
        await self.leave()

    async def leave(self) -> None:
        """Hear nothing more."""
        await self._stack.aclose()


async def hear(client: httpx.AsyncClient, method: str, path: str, **request: Any) -> Heard:
    """Open a stream."""
    stack = AsyncExitStack()
    response = await stack.enter_async_context(client.stream(method, path, **request))
    if response.status_code == httpx.codes.OK:
        return Heard(response.status_code, "", response.aiter_lines(), stack)
    problem = (await response.aread()).decode()
    await stack.aclose()
    return Heard(response.status_code, problem, _nothing(), stack)


async def _nothing() -> AsyncIterator[str]:
    empty: tuple[str, ...] = ()
    for line in empty:
        yield line
