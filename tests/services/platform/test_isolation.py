"""Row-level security: a transaction sees its tenant's rows and no others, whatever the statement says."""

import asyncio
import random
from contextlib import suppress
from typing import Any, LiteralString
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import tuple_row

from services.conversations.turns import Turns
from services.engines import Engines
from services.errors import ConfigurationError, DatabaseUnavailable
from services.events.webhooks import Webhooks
from services.experiments.assignment import Variant
from services.experiments.experiments import Experiments, NewExperiment
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.knowledge.bases import KnowledgeBases, NewBase
from services.knowledge.conversion import ConversionLimits, Converter
from services.knowledge.document import Chunk
from services.knowledge.documents import Documents
from services.memory.core.blocks import Owner
from services.memory.core.values import CoreValues
from services.memory.operations import OperationLog, Trigger
from services.memory.upkeep.policy import UpkeepPolicy, change_policy
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.promises.promises import NewPromise, Promises
from tests.support.knowledge import a_document
from tests.support.turns import exchange, remember

pytestmark = pytest.mark.untraced

_HOOK = "http://127.0.0.1:9"
OTHER = UUID("0190a000-0000-7000-8000-0000000000aa")
_WITH_A_TENANT: LiteralString = """
SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' WHERE c.relkind = 'r'
"""


async def _isolated(database: Database) -> dict[str, bool]:
    """The tables of tenants, and whether each is isolated, for its owner too."""
    rows = await database.fetch_without_tenant(_WITH_A_TENANT, {}, tuple_row)
    assert len(rows) > 35
    return dict(rows)


@pytest.fixture
async def two_tenants(database: Database, engines: Engines) -> Database:
    """The same user name and the same words in two tenants."""
    assert engines.owner_url
    with psycopg.connect(engines.owner_url) as owner:
        owner.execute("INSERT INTO tenants (id, name) VALUES (%s, 'other')", [OTHER])
        owner.execute("SELECT set_config('anamnesis.tenant_id', %s, true)", [str(OTHER)])
        owner.execute(
            "INSERT INTO experts (id, tenant_id, name, system_prompt) VALUES (%s, %s, 'default', 'x')",
            [uuid4(), OTHER],
        )
        owner.execute(
            "INSERT INTO api_keys (id, tenant_id, name, hash, scopes) SELECT gen_random_uuid(), id, 'a key', "
            "sha256(name::bytea), '{chat}' FROM tenants"
        )
    jobs = JobQueue(database)
    webhooks = Webhooks(database, jobs, private_origins=[_HOOK])
    documents = Documents(database, jobs, Converter(ConversionLimits(1, 1.0, 64)), most_bytes=1)
    for tenant_id in (DEFAULT_TENANT, OTHER):
        base = await KnowledgeBases(database, jobs).create(tenant_id, NewBase("handbook", "Our handbook."))
        await documents.put(tenant_id, base.id, a_document(), [(Chunk("", None, "Nine to five."), "nine five")])
        await webhooks.add(tenant_id, _HOOK, [])
        variants = [Variant(name=name, weight=1, settings={}) for name in ("a", "b")]
        await change_policy(database, tenant_id, UpkeepPolicy(fading="archive"))
        await Experiments(database).create(tenant_id, NewExperiment("trial", variants))
        async with database.tenant(tenant_id) as connection:
            await connection.execute(
                "INSERT INTO retention_rules (tenant_id, kind, days) VALUES (%s, 'jobs', 30)", [tenant_id]
            )
            await connection.execute(
                "INSERT INTO retention_runs (id, tenant_id, begun_at, report) "
                "VALUES (gen_random_uuid(), %s, now(), '{}')",
                [tenant_id],
            )
    turns = Turns(database, jobs)
    promises = Promises(database, OperationLog(database), CoreValues(database))
    for tenant_id, said in ((DEFAULT_TENANT, "ours"), (OTHER, "theirs")):
        turn = await exchange(turns, said, "answer", tenant_id=tenant_id, space="a space")
        await remember(database, turn)
        new = NewPromise(text=said, when="tomorrow", timezone="UTC")
        await promises.make(Owner.of_turn(turn), new, Trigger("user"))
    return database


async def test_a_query_without_a_where_sees_one_tenant_only(two_tenants: Database) -> None:
    isolated = await _isolated(two_tenants)
    assert all(isolated.values()), isolated
    for tenant in (DEFAULT_TENANT, OTHER):
        async with two_tenants.tenant(tenant) as connection:
            seen = {
                table: await (await connection.execute(f"SELECT DISTINCT tenant_id FROM {table}")).fetchall()
                for table in isolated
            }
        assert seen == {table: [(tenant,)] for table in isolated}


async def test_without_a_tenant_there_are_no_rows(two_tenants: Database) -> None:
    async with two_tenants.pool.connection() as connection:
        for table in await _isolated(two_tenants):
            rows = await (await connection.execute(f"SELECT * FROM {table}")).fetchall()
            assert rows == [], table


async def test_the_tenant_ends_with_its_transaction(two_tenants: Database) -> None:
    async with two_tenants.pool.connection() as one:
        await one.execute(f"BEGIN; SELECT set_config('anamnesis.tenant_id', '{OTHER}', true); COMMIT")
        assert await (await one.execute("SELECT * FROM users")).fetchall() == []


_SEEN: LiteralString = "SELECT DISTINCT tenant_id FROM users"


async def _seen(database: Database, tenant_id: UUID, way: int) -> Any:
    """What a tenant's transaction sees, by each of the ways to open one."""
    if way == 0:
        return await database.fetch(tenant_id, _SEEN, {}, tuple_row)
    if way == 1:
        return await database.fetch(tenant_id, _SEEN, {}, tuple_row, lock="a name")
    if way == 2:
        return (await database.fetch_each(tenant_id, *[Query(_SEEN, {}, tuple_row)] * 2))[1]
    if way == 3:
        return await database.read(tenant_id, Query(_SEEN, {}, tuple_row))

    async def rows(connection: Connection, found: list[Any]) -> list[Any]:
        return found

    return await database.transact_after(tenant_id, Query(_SEEN, {}, tuple_row), rows)


async def _fail(database: Database, tenant_id: UUID, way: int) -> None:
    """Leave a transaction in one of the ways in which it is not committed."""
    if way == 0:
        await database.fetch(tenant_id, "SELECT 1 / 0", {}, tuple_row)
    elif way == 1:
        async with database.tenant(tenant_id) as connection:
            await connection.execute("SELECT 1 / 0")
    elif way == 2:
        async with database.tenant(tenant_id):
            raise LookupError
    elif way == 3:
        async with database.tenant(tenant_id) as connection:
            with suppress(psycopg.Error):
                await connection.execute("SELECT 1 / 0")
        raise LookupError  # the block above ended well, and its COMMIT rolled back
    else:
        async with asyncio.timeout(0.02), database.tenant(tenant_id) as connection:
            await connection.execute("SELECT pg_sleep(1)")


@pytest.mark.parametrize("seed", range(2))
async def test_no_transaction_sees_another_tenant_whatever_became_of_the_one_before(
    two_tenants: Database, seed: int
) -> None:
    draw = random.Random(seed)

    async def some() -> None:
        for _ in range(30):
            tenant_id = draw.choice((DEFAULT_TENANT, OTHER))
            action = draw.randrange(10)
            if action < 5:
                assert await _seen(two_tenants, tenant_id, action) == [(tenant_id,)]
            elif action < 8:
                with pytest.raises((psycopg.Error, LookupError, TimeoutError, DatabaseUnavailable)):
                    await _fail(two_tenants, tenant_id, draw.randrange(5))
            elif action == 8:
                assert await two_tenants.fetch_without_tenant(_SEEN, {}, tuple_row) == []
            else:
                async with two_tenants.pool.connection() as connection:
                    assert await (await connection.execute(_SEEN)).fetchall() == []

    await asyncio.gather(*(some() for _ in range(3)))


async def test_nothing_can_be_changed_or_added_in_another_tenant(two_tenants: Database) -> None:
    async with two_tenants.tenant(DEFAULT_TENANT) as connection:
        changed = await connection.execute("UPDATE messages SET content = 'x' WHERE tenant_id = %s", [OTHER])
        assert changed.rowcount == 0
        deleted = await connection.execute("DELETE FROM users WHERE tenant_id = %s", [OTHER])
        assert deleted.rowcount == 0

    async def intrude() -> None:
        async with two_tenants.tenant(DEFAULT_TENANT) as connection:
            await connection.execute(
                "INSERT INTO users (id, tenant_id, external_id) VALUES (%s, %s, 'intruder')", [uuid4(), OTHER]
            )

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await intrude()


@pytest.mark.parametrize("role", ["postgres", "anamnesis_owner"])
async def test_the_service_refuses_a_role_that_sees_past_it(engines: Engines, role: str) -> None:
    database = Database(engines.database_url.replace("//anamnesis@", f"//{role}@"))
    try:
        with pytest.raises(ConfigurationError, match=f"connects as {role}"):
            await database.open()
    finally:
        await database.close()
