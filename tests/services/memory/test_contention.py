"""Changes of memory that meet another transaction in a deadlock are made all the same."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import LiteralString
from uuid import UUID

import pytest
from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import EmbeddedPostgres
from tests.support.jobs import until, waits_for_a_lock
from tests.support.retracting import SECRET, WHOLE, forget
from tests.support.turns import exchange, owner_of

pytestmark = [pytest.mark.process, pytest.mark.untraced]

_REMEMBERED = "SELECT count(*) FROM remembered_messages WHERE content LIKE %(what)s"


Deadlock = Callable[[LiteralString, Callable[[], Awaitable[object]]], Awaitable[None]]


@pytest.fixture
def in_a_deadlock(services: Services, postgres: EmbeddedPostgres, database_name: str) -> Deadlock:
    """Make a change while another transaction has what it waits for, and waits for the user whom it has."""
    database = services.database

    async def meet(locked: LiteralString, change: Callable[[], Awaitable[object]]) -> None:
        async with await AsyncConnection.connect(postgres.url("postgres", database_name)) as other:
            # Whoever looks for a deadlock first gives way: here always the change, however slow the machine is.
            await other.execute("SET deadlock_timeout = '60s'")
            await other.execute(locked)
            changing = asyncio.ensure_future(change())
            await until(lambda: waits_for_a_lock(database))
            await other.execute("SELECT id FROM users FOR UPDATE")
            await other.execute("UPDATE users SET locale = 'xx'")
        await asyncio.wait_for(changing, 60)
        assert await database.fetch(DEFAULT_TENANT, "SELECT locale FROM users", {}, tuple_row) == [("xx",)]

    return meet


async def test_what_is_forgotten_and_brought_back_despite_a_deadlock(
    services: Services, in_a_deadlock: Deadlock
) -> None:
    owner = owner_of(await exchange(services.turns, WHOLE, "Noted."))
    operations: list[str | None] = []

    async def remembered() -> int:
        values = {"what": f"%{SECRET}%"}
        return int((await services.database.fetch(DEFAULT_TENANT, _REMEMBERED, values, tuple_row))[0][0])

    async def forgotten() -> None:
        operations.append((await forget(services, owner))["operation_id"])

    async def undone() -> None:
        await services.memory.undo.undo(DEFAULT_TENANT, "u-1", UUID(operations[0]))

    assert await remembered() == 1
    await in_a_deadlock("SELECT id FROM conversations FOR UPDATE", forgotten)
    assert await remembered() == 0
    await in_a_deadlock("SELECT id FROM memory_operations FOR UPDATE", undone)
    assert await remembered() == 1
