"""An import meets what someone else removes at the same moment."""

import asyncio
from typing import LiteralString

import pytest
from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.jobs import until, waits_for_a_lock
from tests.support.transfer import message
from tests.support.visits import import_lines

pytestmark = pytest.mark.process

REMOVALS: dict[str, tuple[LiteralString, ...]] = {
    "user": ("DELETE FROM conversations", "DELETE FROM spaces", "DELETE FROM users"),
    "space": ("DELETE FROM conversations", "DELETE FROM spaces"),
    "conversation": ("DELETE FROM conversations",),
}


@pytest.mark.parametrize("removed", REMOVALS)
async def test_what_was_removed_meanwhile_is_created_again(services: Services, removed: str) -> None:
    database = services.database
    await import_lines(services, message(1, space="work"))
    async with database.tenant(DEFAULT_TENANT) as other:
        await other.execute("SELECT FROM conversations FOR UPDATE")
        await other.execute("SELECT FROM spaces FOR UPDATE")
        await other.execute("SELECT FROM users FOR UPDATE")
        importing = asyncio.ensure_future(import_lines(services, message(3, space="work")))
        await until(lambda: waits_for_a_lock(database))
        for statement in REMOVALS[removed]:
            await other.execute(statement)
    report = await asyncio.wait_for(importing, 60)
    assert report.imported == 1
    stored = await database.fetch(DEFAULT_TENANT, "SELECT count(*) FROM messages", {}, tuple_row)
    assert stored == [(1,)]
