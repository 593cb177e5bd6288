"""The shards that a process works on: the services over each, opened when the directory names it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Self, TypeVar
from uuid import UUID

import structlog
from psycopg.rows import tuple_row

from services.bootstrap import Services, open_services
from services.engines import migrate_if_owner, open_engines
from services.errors import AnamnesisError, ConfigurationError, TenantElsewhere, Unavailable
from services.platform.settings import Settings
from services.shards.addresses import HOME, settings_of_shard
from services.shards.directory import Directory, Shard
from services.usage.meter import UsageMeter

log = structlog.get_logger(__name__)

Used = TypeVar("Used")

_OPEN_AGAIN_S = 5.0
_MARK = "SELECT mark FROM shard_mark"


@dataclass(frozen=True)
class OpenShard(Generic[Used]):
    """A shard that this process works on."""

    services: Services
    used: Used
    """What the process made of its services."""


class OpenShards(Generic[Used]):
    """Finds the services of a tenant. One shard that does not answer leaves the others as they are."""

    def __init__(
        self, home: Services, used: Used, use: Callable[[Services], AbstractAsyncContextManager[Used]]
    ) -> None:
        """Take what the process has over the first database.

        Args:
            home: the services.
            used: what is made of them.
            use: makes the same of the services over another shard.
        """
        self._home = home
        self._use = use
        self.directory = Directory(home.database)
        self.opened: dict[str, OpenShard[Used]] = {HOME: OpenShard(home, used)}
        self.missing: dict[str, str] = {}
        """Shards that could not be opened, and why."""
        self._changed = asyncio.Event()
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Open every shard of the directory, and go on with those that do not answer or are added later."""
        self.directory.on_change(self._notice)
        self._home.usage.meter_of = self._meter_of
        async with self._stack:
            await self._open_missing()
            tasks = [
                asyncio.create_task(self.directory.watch(), name="directory of shards"),
                asyncio.create_task(self._go_on(), name="opening of shards"),
            ]
            try:
                yield self
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    async def of(self, tenant_id: UUID) -> OpenShard[Used]:
        """Return the shard that serves a tenant.

        Raises:
            TenantElsewhere: the tenant is being moved.
            Unavailable: the shard does not answer, or this process does not know its address.
            DatabaseUnavailable: the first database does not answer.
        """
        name = await self.directory.shard_of(tenant_id)
        if (found := self.opened.get(name)) is None:
            why = self.missing.get(name, "it is not open yet")
            raise Unavailable(f"The database of this tenant cannot be used: {why}")
        return found

    async def require(self, tenant_id: UUID, shard: OpenShard[Used]) -> None:
        """See that a shard still serves a tenant; raises as `of` if not."""
        if await self.of(tenant_id) is not shard:
            raise TenantElsewhere

    async def _meter_of(self, tenant_id: UUID) -> UsageMeter:
        return (await self.of(tenant_id)).services.usage.meter

    def _notice(self, tenant_id: UUID | None) -> None:
        if tenant_id is None:
            self._changed.set()

    async def _go_on(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_OPEN_AGAIN_S if self.missing else None):
                    await self._changed.wait()
            self._changed.clear()
            await self._open_missing()

    async def _open_missing(self) -> None:
        try:
            registered = await self.directory.shards()
        except AnamnesisError as error:
            log.warning("shards cannot be looked up", reason=error.message)
            return
        self.missing = {}
        for shard in registered:
            if shard.name in self.opened:
                continue
            try:
                settings = settings_of_shard(self._home.settings, shard.name)
                services = await self._stack.enter_async_context(open_shard(self._home, settings, shard))
                used = await self._stack.enter_async_context(self._use(services))
                self.opened[shard.name] = OpenShard(services, used)
                services.usage.meter_of = self._meter_of
            except AnamnesisError as error:
                self.missing[shard.name] = error.message
                log.warning("shard not open", shard=shard.name, reason=error.message)


@asynccontextmanager
async def open_shard(home: Services, settings: Settings, shard: Shard) -> AsyncIterator[Services]:
    """Open the services over a shard.

    Raises:
        ConfigurationError: the address leads to another database than the one that was added.
        DatabaseUnavailable: the database does not answer.
    """
    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        async with open_services(settings, engines, home) as services:
            marks = await services.database.fetch_without_tenant(_MARK, {}, tuple_row)
            if marks != [(shard.mark,)]:
                raise ConfigurationError(
                    f"the address of {shard.name} leads to another database than the one added"
                )
            yield services
