"""The directory: which shard holds each tenant, kept in the first database and cached in every process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID, uuid4

from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb

from services.errors import Conflict, DatabaseUnavailable, InvalidInput, NotFound, TenantElsewhere
from services.platform.postgres import Database
from services.shards.addresses import HOME
from services.shards.steps import Step

CHANNEL = "tenant_shards"
_RECONNECT_S = 1.0
_CACHED_AT_MOST = 100_000
_KILLED_S = 10.0

_FIND: LiteralString = """
SELECT (SELECT shard FROM tenant_shards WHERE tenant_id = %(tenant_id)s),
       EXISTS (SELECT FROM tenant_moves WHERE tenant_id = %(tenant_id)s AND step <> 'done')
"""

_SHARDS: LiteralString = """
SELECT s.name, s.mark, s.added_at, count(t.tenant_id) AS tenants
FROM shards s LEFT JOIN tenant_shards t ON t.shard = s.name GROUP BY s.name ORDER BY s.name
"""

_AT_HOME: LiteralString = """
SELECT count(*) FROM tenants t WHERE NOT EXISTS (SELECT FROM tenant_shards s WHERE s.tenant_id = t.id)
"""

_ADD: LiteralString = """
INSERT INTO shards (name, mark) VALUES (%(name)s, %(mark)s) ON CONFLICT DO NOTHING RETURNING name
"""

_MOVES: LiteralString = """
SELECT m.tenant_id, t.name AS tenant, m.source, m.target, m.step, m.report, m.begun_at, m.changed_at
FROM tenant_moves m JOIN tenants t ON t.id = m.tenant_id
WHERE %(tenant_id)s::uuid IS NULL OR m.tenant_id = %(tenant_id)s ORDER BY m.begun_at
"""

_BEGIN: LiteralString = """
INSERT INTO tenant_moves (tenant_id, source, target, step)
SELECT %(tenant_id)s, coalesce((SELECT shard FROM tenant_shards WHERE tenant_id = %(tenant_id)s), 'home'),
       %(target)s, 'draining'
ON CONFLICT DO NOTHING RETURNING source
"""

_ADVANCE: LiteralString = """
UPDATE tenant_moves SET step = %(step)s, report = coalesce(%(report)s, report), changed_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND step = %(before)s RETURNING step
"""

# One statement: the directory and the step change together.
_SWITCH: LiteralString = """
WITH moved AS (
    UPDATE tenant_moves SET step = 'switched', changed_at = clock_timestamp()
    WHERE tenant_id = %(tenant_id)s AND step = 'verified' RETURNING tenant_id, target
), gone_home AS (
    DELETE FROM tenant_shards s USING moved m WHERE s.tenant_id = m.tenant_id AND m.target = 'home'
), gone AS (
    INSERT INTO tenant_shards (tenant_id, shard) SELECT tenant_id, target FROM moved WHERE target <> 'home'
    ON CONFLICT (tenant_id) DO UPDATE SET shard = excluded.shard
)
SELECT tenant_id FROM moved
"""

_END: LiteralString = "DELETE FROM tenant_moves WHERE tenant_id = %(tenant_id)s"

_ANNOUNCE: LiteralString = f"SELECT pg_notify('{CHANNEL}', %(tenant_id)s::text)"


@dataclass(frozen=True)
class Shard:
    """A registered shard."""

    name: str
    mark: UUID
    """What its database is known by, whatever its address."""
    added_at: datetime
    tenants: int


@dataclass(frozen=True)
class Move:
    """A tenant's last move, as far as it has come; it is forgotten when the old copy is removed."""

    tenant_id: UUID
    tenant: str
    source: str
    target: str
    step: Step
    report: dict[str, Any] | None
    begun_at: datetime
    changed_at: datetime


class Directory:
    """Finds, changes and announces the places of tenants."""

    def __init__(self, home: Database) -> None:
        """Take the first database."""
        self._home = home
        self._places: dict[UUID, tuple[str, bool]] = {}
        self._listening = False
        self._news = 0
        """Changes heard of: what was read before one is not kept after it."""
        self._changes: list[Callable[[UUID | None], None]] = []

    async def shard_of(self, tenant_id: UUID) -> str:
        """Return the shard that serves a tenant.

        Raises:
            TenantElsewhere: the tenant is being moved.
            DatabaseUnavailable: the first database does not answer.
        """
        name, is_moving = await self._place(tenant_id)
        if is_moving:
            raise TenantElsewhere
        return name

    async def holder_of(self, tenant_id: UUID) -> str:
        """Return the shard that holds a tenant's current data, also while it is being moved.

        Raises:
            DatabaseUnavailable: the first database does not answer.
        """
        return (await self._place(tenant_id))[0]

    async def _place(self, tenant_id: UUID) -> tuple[str, bool]:
        if (known := self._places.get(tenant_id)) is not None:
            return known
        news = self._news
        ((shard, is_moving),) = await self._home.fetch_without_tenant(_FIND, {"tenant_id": tenant_id}, tuple_row)
        place = (shard or HOME, is_moving)
        if self._listening and news == self._news:
            if len(self._places) >= _CACHED_AT_MOST:
                self._places.clear()
            self._places[tenant_id] = place
        return place

    async def watch(self) -> None:
        """Learn of changes without end. While they cannot be heard of, nothing is cached."""
        while True:
            with contextlib.suppress(DatabaseUnavailable):
                async with aclosing(self._home.notifications(CHANNEL)) as notifications:
                    async for payload in notifications:
                        self._listening = True
                        self._learn(UUID(payload) if payload else None)
            self._listening = False
            self._learn(None)
            await asyncio.sleep(_RECONNECT_S)

    def on_change(self, call: Callable[[UUID | None], None]) -> None:
        """Call with each tenant whose place changes; with None when any may have changed."""
        self._changes.append(call)

    def _learn(self, tenant_id: UUID | None) -> None:
        self._news += 1
        if tenant_id is None:
            self._places.clear()
        else:
            self._places.pop(tenant_id, None)
        for call in self._changes:
            call(tenant_id)

    async def shards(self) -> list[Shard]:
        """Return the registered shards, by name."""
        return await self._home.fetch_without_tenant(_SHARDS, {}, class_row(Shard))

    async def tenants_at_home(self) -> int:
        """Return the number of tenants in the first database."""
        ((count,),) = await self._home.fetch_without_tenant(_AT_HOME, {}, tuple_row)
        return int(count)

    async def add(self, name: str, mark: UUID | None) -> UUID:
        """Register a shard; return the mark that its database must have.

        Args:
            name: of the shard.
            mark: that its database has already; None = a new one is made.

        Raises:
            Conflict: there is a shard of this name or with this mark.
        """
        values = {"name": name, "mark": mark or uuid4()}
        if not await self._home.fetch_without_tenant(_ADD, values, tuple_row):
            raise Conflict(f"There is a shard {name} already, or its database is another shard's.")
        await self._announce(None)
        return values["mark"]  # type: ignore[return-value]

    async def moves(self, tenant_id: UUID | None = None) -> list[Move]:
        """Return the moves that are under way or whose old copies are kept."""
        return await self._home.fetch_without_tenant(_MOVES, {"tenant_id": tenant_id}, class_row(Move))

    async def move_of(self, tenant_id: UUID) -> Move | None:
        """Return a tenant's move; None if there is none."""
        found = await self.moves(tenant_id)
        return found[0] if found else None

    async def begin_move(self, tenant_id: UUID, target: str) -> None:
        """Note that a tenant is to be moved: its requests are refused from now on.

        Raises:
            InvalidInput: the tenant is there, or there is no such shard.
            Conflict: it is being moved already, or the old copy of its last move is still kept.
        """
        if target != HOME and target not in {shard.name for shard in await self.shards()}:
            raise InvalidInput("to", f"there is no shard {target}; see: anamnesis shard list")
        if await self.holder_of(tenant_id) == target:
            raise InvalidInput("to", f"the tenant is in {target}")
        if not await self._home.fetch_without_tenant(
            _BEGIN, {"tenant_id": tenant_id, "target": target}, tuple_row
        ):
            raise Conflict("The tenant has a move already; see: anamnesis shard status")
        await self._announce(tenant_id)

    async def advance(
        self, tenant_id: UUID, before: Step, step: Step, report: dict[str, Any] | None = None
    ) -> None:
        """Note that a move has come further.

        Raises:
            NotFound: it is not at the step `before` any more: it was undone or finished elsewhere.
        """
        values = {
            "tenant_id": tenant_id,
            "before": before,
            "step": step,
            "report": Jsonb(report) if report else None,
        }
        statement = _SWITCH if step == "switched" else _ADVANCE
        if not await self._home.fetch_without_tenant(statement, values, tuple_row):
            raise NotFound("The move is not there any more, or another command has taken it further.")
        await self._announce(tenant_id)

    async def end_move(self, tenant_id: UUID) -> None:
        """Forget a move that was undone, or whose old copy is removed."""
        async with self._home.for_every_tenant().tenant(tenant_id) as connection:
            await connection.execute(_END, {"tenant_id": tenant_id})
        await self._announce(tenant_id)

    @asynccontextmanager
    async def alone(self, tenant_id: UUID) -> AsyncIterator[None]:
        """Be the only command that moves this tenant.

        Raises:
            Conflict: another one does.
        """
        async with AsyncExitStack() as stack:
            try:
                # The database notices within seconds that a command was killed, and frees its lock.
                async with asyncio.timeout(_KILLED_S):
                    await stack.enter_async_context(self._home.only_one(f"move of {tenant_id}", wait=True))
            except TimeoutError:
                raise Conflict("Another command is moving this tenant.") from None
            yield

    async def _announce(self, tenant_id: UUID | None) -> None:
        self._learn(tenant_id)
        values = {"tenant_id": str(tenant_id) if tenant_id else ""}
        await self._home.fetch_without_tenant(_ANNOUNCE, values, tuple_row)
