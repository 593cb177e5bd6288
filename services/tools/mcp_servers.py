"""The servers whose tools the model may call, each with its task."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from services.errors import InvalidInput, NotFound, Unavailable
from services.identity.tenants import user_id_of

if TYPE_CHECKING:
    from services.tools.mcp_accounts import Accounts
    from services.tools.mcp_connection import McpServer
    from services.tools.mcp_linking import Link, Outcome
    from services.tools.mcp_user_server import UserMcpServer

_ELSEWHERE_S, _LOOK_AGAIN_S = 10.0, 0.25
"""Seconds to wait for another process to connect an account, and seconds between checks whether it has."""

log = structlog.get_logger(__name__)


class McpServers:
    """All servers that the settings name."""

    def __init__(
        self,
        servers: "Sequence[McpServer | UserMcpServer]" = (),
        of_users: "Mapping[str, UserMcpServer] | None" = None,
        accounts: "Accounts | None" = None,
    ) -> None:
        """Take all servers, and by name those at which each user has an account."""
        self.servers = servers
        self._of_users = of_users or {}
        self._accounts = accounts
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to connect, in the background."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(each.run(), name=f"tools of {each.name}") for each in self.servers]

    async def settled(self, within: timedelta) -> None:
        """Wait until each server was tried once, or `within` seconds have passed."""
        waits = [asyncio.create_task(each.listed.wait()) for each in self.servers]
        if waits:
            _, pending = await asyncio.wait(waits, timeout=within.total_seconds())
            for each in pending:
                each.cancel()

    async def connected(self, tenant_id: UUID, user: str) -> dict[str, bool]:
        """Return the servers at which each user has an account, and whether this one has connected theirs."""
        there = await self._accounts.of_user(tenant_id, user) if self._accounts else set()
        return {name: name in there for name in self._of_users}

    async def link(self, tenant_id: UUID, user: str, name: str) -> "Link":
        """Return where a user agrees that their account is connected. Raises `NotFound` if there is no such
        server, or no such user, and `Unavailable` if it does not answer."""
        server, user_id = await self._named(tenant_id, user, name)
        return await server.link(tenant_id, user_id, user)

    async def disconnect(self, tenant_id: UUID, user: str, name: str) -> None:
        """Forget a user's account. Raises `NotFound` if there is no such server, or no such user."""
        server, user_id = await self._named(tenant_id, user, name)
        await server.disconnect(tenant_id, user_id)

    async def take(self, query: str, proofs: Sequence[str]) -> "tuple[Outcome, str]":
        """Take what a browser returned; return the outcome, and the code to show if the user has to enter it.
        Raises `Unavailable`, which says why, if the account could not be connected."""
        from services.tools.mcp_linking import Outcome, Returned, Told, new_code  # noqa: PLC0415

        returned = Returned(query=query, proofs=list(proofs), code=new_code())
        for server in self._of_users.values():
            if outcome := await server.take(returned):
                return outcome, returned.code
        if self._accounts is not None:
            await self._accounts.tell_processes(Told(returned=returned).model_dump_json(exclude_none=True))
        return Outcome("elsewhere"), returned.code

    async def enter(self, tenant_id: UUID, user: str, name: str, code: str) -> bool:
        """Take the code that a user enters; return whether their account is connected.

        Raises:
            NotFound: there is no such server, or no such user.
            InvalidInput: it is not the code that their browser was shown.
            Unavailable: the account could not be connected; says why.
        """
        from services.tools.mcp_linking import Entered, Told  # noqa: PLC0415

        server, user_id = await self._named(tenant_id, user, name)
        if await server.enter(tenant_id, user_id, code):
            return True
        assert self._accounts is not None  # noqa: S101 — there is a server that has some
        entered = Entered(tenant_id=str(tenant_id), user_id=str(user_id), server=name, code=code)
        await self._accounts.tell_processes(Told(entered=entered).model_dump_json(exclude_none=True))
        end = asyncio.get_running_loop().time() + _ELSEWHERE_S
        while asyncio.get_running_loop().time() < end:
            if (await self.connected(tenant_id, user))[name]:
                return True
            await asyncio.sleep(_LOOK_AGAIN_S)
        return False

    async def hear(self, told: str) -> None:
        """Take what was returned to another process; does nothing if no link of this process waits for it."""
        from services.tools.mcp_linking import Told  # noqa: PLC0415

        what = Told.model_validate_json(told)
        try:
            for server in self._of_users.values():
                if what.returned:
                    await server.take(what.returned)
                elif what.entered and what.entered.server == server.name:
                    entered = what.entered
                    await server.enter(UUID(entered.tenant_id), UUID(entered.user_id), entered.code)
        except (InvalidInput, Unavailable) as error:
            log.info("an account was not connected for another process", reason=str(error))

    def check(self, name: str) -> "UserMcpServer":
        """Return a server at which users have accounts. Raises `NotFound` if there is none of the name."""
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
