"""The servers whose tools the model may call, each with its task."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from services.errors import NotFound
from services.identity.tenants import user_id_of

if TYPE_CHECKING:
    from services.tools.mcp_accounts import Accounts
    from services.tools.mcp_connection import McpServer
    from services.tools.mcp_user_server import UserMcpServer


class McpServers:
    """All servers that the settings name."""

    def __init__(
        self,
        servers: "Sequence[McpServer | UserMcpServer]" = (),
        of_users: "Mapping[str, UserMcpServer] | None" = None,
        accounts: "Accounts | None" = None,
    ) -> None:
        """Take all of them, and those at which each user has an account, by name."""
        self.servers = servers
        self._of_users = of_users or {}
        self._accounts = accounts
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

    async def connected(self, tenant_id: UUID, user: str) -> dict[str, bool]:
        """Return the servers at which each user has an account, and whether this one has connected theirs."""
        there = await self._accounts.of_user(tenant_id, user) if self._accounts else set()
        return {name: name in there for name in self._of_users}

    async def address(self, tenant_id: UUID, user: str, name: str) -> str:
        """Return where a user agrees that their account is connected.

        Raises:
            NotFound: there is no such server, or no such user.
            Unavailable: it does not answer.
        """
        server, user_id = await self._named(tenant_id, user, name)
        return await server.address(tenant_id, user_id)

    async def disconnect(self, tenant_id: UUID, user: str, name: str) -> None:
        """Forget a user's account.

        Raises:
            NotFound: there is no such server, or no such user.
        """
        server, user_id = await self._named(tenant_id, user, name)
        await server.disconnect(tenant_id, user_id)

    async def finish(self, parameters: str) -> bool:
        """Take the query with which a browser came back, and wait until the account is there.

        False = nobody waits for it here: then the other processes are told.

        Raises:
            Unavailable: the account could not be connected; says why.
        """
        for server in self._of_users.values():
            if await server.finish(parameters):
                return True
        if self._accounts is not None:
            await self._accounts.tell_processes(parameters)
        return False

    def hear(self, parameters: str) -> None:
        """Take what a browser brought back to another process."""
        for server in self._of_users.values():
            server.take(parameters)

    def check(self, name: str) -> "UserMcpServer":
        """Return a server at which users have accounts.

        Raises:
            NotFound: there is none of the name.
        """
        if name not in self._of_users:
            raise NotFound(f"There is no server {name} at which users have accounts.")
        return self._of_users[name]

    async def _named(self, tenant_id: UUID, user: str, name: str) -> "tuple[UserMcpServer, UUID]":
        server = self.check(name)
        assert self._accounts is not None  # noqa: S101 — there is a server that has some
        return server, await user_id_of(self._accounts.database, tenant_id, user)

    async def close(self) -> None:
        """End all connections and programs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
