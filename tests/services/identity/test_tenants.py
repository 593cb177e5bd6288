from uuid import UUID

import pytest
from psycopg.rows import tuple_row

from services.conversations.turns import Turns
from services.errors import Conflict, InvalidInput
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.jobs.queue import JobQueue
from services.platform.postgres import Database
from tests.support.turns import new_turn


async def test_a_new_tenant_can_be_talked_to_like_the_first(database: Database) -> None:
    tenants = Tenants(database)
    shop = await tenants.create("shop")
    turn = await Turns(database, JobQueue(database)).open(new_turn(tenant_id=shop.id))
    assert (turn.expert, turn.system_prompt) == ("default", "")
    seeded = "SELECT system_prompt FROM experts WHERE name = 'default'"
    assert await database.fetch(DEFAULT_TENANT, seeded, {}, tuple_row) == [("",)]
    assert [tenant.name for tenant in await tenants.list()] == ["default", "shop"]


async def test_a_name_is_given_once_and_never_looks_like_an_id(database: Database) -> None:
    tenants = Tenants(database)
    for wrong in ("", "two words", "x" * 129, str(UUID(int=7)), UUID(int=7).hex):
        with pytest.raises(InvalidInput, match="must be 1 to 128"):
            await tenants.create(wrong)
    with pytest.raises(Conflict, match="default already"):
        await tenants.create("default")
    assert [tenant.name for tenant in await tenants.list()] == ["default"]
