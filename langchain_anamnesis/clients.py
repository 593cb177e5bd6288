"""Clients of the service for programs with and without an event loop, and the owner of the memory."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary, finalize

from langgraph.runtime import Runtime, get_runtime

from anamnesis_client import Anamnesis, AsyncAnamnesis

Named = str | Callable[[Any], str]
"""A name, or a function from the graph's runtime to a name: from a `Runtime`, or in a tool a `ToolRuntime`."""


@dataclass(frozen=True)
class Whose:
    """The owner of the memory; each part is a name, or a function from the runtime to a name."""

    user: Named
    space: Named | None = None
    """Space of the user; None = none."""
    expert: Named | None = None
    """Expert who remembers; None = the default one."""

    def names(self, runtime: Any = None) -> tuple[str, dict[str, Any]]:
        """Return the user, and the space and the expert as the API takes them.

        Without a runtime, that of the running graph is used.

        Raises:
            ValueError: The function returned no user.
        """
        here = running() if runtime is None else runtime
        user = told(self.user, here)
        if not user:
            raise ValueError("user names nobody")
        given = {"space": self.space, "expert": self.expert}
        return user, {name: found for name, each in given.items() if each and (found := told(each, here))}


def told(named: Named, runtime: Any) -> str:
    """Return a name, or what a function says is the name."""
    return named if isinstance(named, str) else named(runtime)


def running() -> Any:
    """Return the runtime of the running graph; outside of a graph, a runtime without context."""
    try:
        return get_runtime()
    except RuntimeError:
        return Runtime()


@dataclass(eq=False)
class Clients:
    """One synchronous client, and an asynchronous one for each event loop, made when first used."""

    url: str
    user: str
    key: str | None = None
    timeout_s: float = 30.0
    retries: int = 5
    _of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncAnamnesis] = field(
        default_factory=WeakKeyDictionary
    )

    @cached_property
    def sync(self) -> Anamnesis:
        """Return the client for use without an event loop; it is closed when nothing refers to it any more."""
        client = Anamnesis(self.url, **self._options)
        finalize(self, client.close)
        return client

    def one(self) -> AsyncAnamnesis:
        """Return a client for one use, as a context manager, so that no ended event loop keeps connections."""
        return AsyncAnamnesis(self.url, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {"user": self.user, "key": self.key, "timeout_s": self.timeout_s, "retries": self.retries}

    @property
    def of_loop(self) -> AsyncAnamnesis:
        """Return the client of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._of_loops:
            self._of_loops[loop] = self.one()
        return self._of_loops[loop]

    def close(self) -> None:
        """Close the connections of the synchronous client."""
        if "sync" in self.__dict__:
            self.sync.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and of the synchronous client."""
        client = self._of_loops.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()
        self.close()
