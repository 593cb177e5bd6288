import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.rows import tuple_row

from services.engines import Engines
from services.errors import DatabaseContended, DatabaseUnavailable
from services.identity.tenants import DEFAULT_TENANT
from services.platform.connections import LIMITS, Connection
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from tests.support.jobs import until

pytestmark = [pytest.mark.process, pytest.mark.untraced]


HELD: LiteralString = "SELECT 1 FROM pg_advisory_xact_lock(7)"
"""A statement that waits while a test holds its lock."""
_WAITING = """
SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@asynccontextmanager
async def _held(engines: Engines) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
    """Hold the lock; yield whether a statement waits for it."""
    async with await psycopg.AsyncConnection.connect(engines.database_url, autocommit=True) as holder:
        await holder.execute("SELECT pg_advisory_lock(7)")

        async def is_wanted() -> bool:
            return await (await holder.execute(_WAITING)).fetchone() is not None

        yield is_wanted
        await holder.execute("SELECT pg_advisory_unlock(7)")


async def _has_ended(engines: Engines, pid: int) -> bool:
    async with await psycopg.AsyncConnection.connect(engines.database_url, autocommit=True) as other:
        found = await other.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid])
        return await found.fetchone() is None


async def _users(database: Database) -> int:
    async with database.tenant(DEFAULT_TENANT) as connection:
        row = await (await connection.execute("SELECT count(*) FROM users")).fetchone()
    assert row
    return int(row[0])


@pytest.mark.traced
async def test_reads_of_one_moment_share_a_transaction_and_one_that_fails_fails_alone(database: Database) -> None:
    moment: LiteralString = "SELECT %(name)s::text, now(), '100%%'"
    fails: LiteralString = "SELECT 1 / %(zero)s::integer"

    def read(name: str) -> Any:
        return database.read(DEFAULT_TENANT, Query(moment, {"name": name}, tuple_row))

    one, other = await asyncio.gather(read("one"), read("other"))
    assert (one[0][0], one[0][2], other[0][0]) == ("one", "100%", "other")
    assert one[0][1] == other[0][1]
    wrong = database.read(DEFAULT_TENANT, Query(fails, {"zero": 0}, tuple_row))
    found: Any = await asyncio.gather(read("one"), wrong, read("other"), return_exceptions=True)
    assert (found[0][0][0], found[2][0][0]) == ("one", "other")
    assert isinstance(found[1], psycopg.errors.DivisionByZero)


@pytest.mark.traced
async def test_a_cancellation_that_comes_together_with_a_connection_is_not_lost(database: Database) -> None:
    async def use() -> None:
        async with database.tenant(DEFAULT_TENANT):
            await asyncio.Event().wait()

    lent = [await database.pool.getconn() for _ in range(database.pool.max_size)]
    for steps in range(40):
        waiting = asyncio.create_task(use())
        while not database.pool.get_stats().get("requests_waiting"):  # noqa: ASYNC110
            await asyncio.sleep(0)
        await database.pool.putconn(lent.pop())
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting}, timeout=60)
        assert waiting.cancelled(), f"cancelled {steps} steps after another had given its connection back"
        lent.append(await database.pool.getconn())
    for connection in lent:
        await database.pool.putconn(connection)


async def test_who_comes_alone_gets_the_connection_used_last(database: Database) -> None:
    async def process() -> int:
        async with database.tenant(DEFAULT_TENANT) as connection:
            return connection.info.backend_pid

    together = await asyncio.gather(*(process() for _ in range(4)))
    assert len(set(together)) > 1
    assert len({await process() for _ in range(6)}) == 1


async def test_connections_that_the_server_closed_are_replaced(
    database: Database, postgres: EmbeddedPostgres
) -> None:
    assert await _users(database) == 0
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
        # The second argument waits for the end: an ending that comes while a query runs is that query's error.
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'anamnesis'"
        )
    assert await _users(database) == 0


async def test_under_a_lock_a_statement_sees_what_those_before_it_have_done(database: Database) -> None:
    insert = (
        "INSERT INTO tenants (id, name) SELECT gen_random_uuid(), 'tenant ' || count(*) FROM tenants RETURNING id"
    )
    await asyncio.gather(*(database.fetch(DEFAULT_TENANT, insert, {}, tuple_row, lock="x") for _ in range(15)))
    assert len(await database.tenants()) == 16


async def test_a_transaction_that_hangs_is_ended_and_holds_up_nobody_for_long(
    database: Database, engines: Engines
) -> None:
    inserted, may_end = asyncio.Event(), asyncio.Event()

    async def insert() -> None:
        async with database.tenant(DEFAULT_TENANT) as connection:
            for name in ("lock_timeout", "idle_in_transaction_session_timeout"):
                [limit] = await (await connection.execute(f"SHOW {name}")).fetchone() or [""]
                assert limit == LIMITS[name]
            await connection.execute("SET LOCAL lock_timeout = '100ms'")
            await connection.execute(
                "INSERT INTO users (id, tenant_id, external_id) VALUES (gen_random_uuid(), %s, 'u-1')",
                [DEFAULT_TENANT],
            )
            inserted.set()
            await may_end.wait()
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = '100ms'")
            await until(lambda: _has_ended(engines, connection.info.backend_pid))

    hanging = asyncio.create_task(insert())
    await inserted.wait()
    with pytest.raises(DatabaseUnavailable):
        await insert()
    may_end.set()
    with pytest.raises(DatabaseUnavailable):
        await hanging
    assert await _users(database) == 0


async def test_of_two_transactions_in_a_deadlock_both_are_done(database: Database) -> None:
    insert = "INSERT INTO users (id, tenant_id, external_id, locale) VALUES (gen_random_uuid(), %s, %s, '')"
    async with database.tenant(DEFAULT_TENANT) as connection:
        for name in ("first", "second"):
            await connection.execute(insert, [DEFAULT_TENANT, name])
    both_began = asyncio.Barrier(2)
    attempts: list[str] = []

    async def mark_both(mark: str, first: str, second: str) -> str:
        async def work(connection: Connection) -> str:
            update = "UPDATE users SET locale = locale || %s WHERE external_id = %s"
            attempts.append(mark)
            await connection.execute(update, [mark, first])
            if len(attempts) <= 2:
                await both_began.wait()
            await connection.execute(update, [mark, second])
            return mark

        return await database.transact(DEFAULT_TENANT, work)

    done = await asyncio.gather(mark_both("a", "first", "second"), mark_both("b", "second", "first"))
    assert list(done) == ["a", "b"]
    assert len(attempts) > 2, "one of them was undone"
    marked = await database.fetch(DEFAULT_TENANT, "SELECT locale FROM users", {}, tuple_row)
    assert [sorted(marks) for (marks,) in marked] == [["a", "b"], ["a", "b"]]


@pytest.mark.traced
async def test_a_transaction_that_others_keep_from_its_locks_is_given_up_in_the_end(database: Database) -> None:
    attempts = 0

    async def wait_for_a_lock(connection: Connection) -> None:
        nonlocal attempts
        attempts += 1
        await connection.execute("SET LOCAL lock_timeout = '50ms'")
        await connection.execute("LOCK TABLE users IN ROW EXCLUSIVE MODE")

    async with database.tenant(DEFAULT_TENANT) as holder:
        await holder.execute("LOCK TABLE users IN SHARE MODE")
        with pytest.raises(DatabaseContended):
            await database.transact(DEFAULT_TENANT, wait_for_a_lock)
    assert attempts == 3


async def test_a_caller_who_is_cancelled_costs_no_connection(database: Database, engines: Engines) -> None:
    async def is_idle() -> bool:
        stats = database.pool.get_stats()
        return stats["pool_available"] == stats["pool_size"]

    await until(is_idle)
    before = database.pool.get_stats()
    for _ in range(10):
        async with _held(engines) as is_wanted:
            asking = asyncio.create_task(database.fetch(DEFAULT_TENANT, HELD, {}, tuple_row))
            await until(is_wanted)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        await until(is_idle)
    after = database.pool.get_stats()
    for figure in ("pool_size", "connections_num", "connections_lost"):
        assert after.get(figure, 0) == before.get(figure, 0)


async def test_a_transaction_whose_server_hangs_is_given_up_at_once(engines: Engines) -> None:
    database = Database(engines.database_url, statement_s=1)
    await database.open()
    begun = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        async with database.tenant(DEFAULT_TENANT) as connection:
            await connection.execute("SELECT pg_sleep(60)")
    assert time.monotonic() - begun < 30  # it does not wait for the server to cancel what it does
    async with database.tenant(DEFAULT_TENANT, statement_s=60) as connection:
        await connection.execute("SELECT pg_sleep(1.1)")
    await database.close()
