"""The servers whose tools the model may call, each with its task."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.tools.mcp_connection import McpServer


class McpServers:
    """All servers that the settings name."""

    def __init__(self, servers: "Sequence[McpServer]" = ()) -> None:
        self.servers = servers
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to connect, in the background."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(each.run(), name=f"tools of {each.name}") for each in self.servers]

    async def settled(self, within: timedelta) -> None:
        """Wait until each server was tried once, or the time is over."""
        waits = [asyncio.create_task(each.listed.wait()) for each in self.servers]
        if waits:
            _, pending = await asyncio.wait(waits, timeout=within.total_seconds())
            for each in pending:
                each.cancel()

    async def close(self) -> None:
        """End all connections and programs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
