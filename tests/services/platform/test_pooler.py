"""The service over PgBouncer in transaction mode: every transaction may have another session of the server."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace

import pytest
from psycopg.rows import tuple_row
from pydantic import SecretStr

from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.conversations.turn import TurnRequest
from services.engines import Engines
from services.errors import ConfigurationError
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.migrate import migrate
from services.platform.postgres import Database
from services.platform.settings import Settings
from state.turn import TurnInput
from tests.graph.conftest import process_of
from tests.support.model_server import ModelServer, Reply
from tests.support.pgbouncer import PROGRAM, pgbouncer
from tests.support.turns import events_of, first_token

pytestmark = [
    pytest.mark.untraced,
    pytest.mark.process,
    pytest.mark.skipif(PROGRAM is None, reason="no pgbouncer on this machine; install the system's package"),
]

SESSIONS = 3
Process = tuple[Services, TurnRunner]


@pytest.fixture(scope="module")
def port(postgres: EmbeddedPostgres) -> Iterator[int]:
    with pgbouncer(postgres, sessions=SESSIONS) as port:
        yield port


@pytest.fixture
def pooled(engines: Engines, port: int) -> Engines:
    """The test's stores, PostgreSQL through the pooler."""
    return replace(engines, database_url=_through(engines.database_url, port), direct_url=engines.database_url)


def _through(url: str, port: int) -> str:
    return re.sub(r"@/(\w+)\?.*", rf"@127.0.0.1:{port}/\1", url)


@pytest.fixture
async def database(pooled: Engines) -> AsyncIterator[Database]:
    opened = Database(pooled.database_url, direct_url=pooled.direct_url)
    await opened.open()
    yield opened
    await opened.close()


async def test_statements_that_are_repeated_find_their_session_whichever_it_is(database: Database) -> None:
    async def ask(number: int) -> int:
        async with database.tenant(DEFAULT_TENANT) as connection:
            row = await (await connection.execute("SELECT %s::int + 0", [number])).fetchone()
        assert row
        rows = await database.fetch(DEFAULT_TENANT, "SELECT %(n)s::int + 1", {"n": number}, tuple_row)
        return int(rows[0][0] - row[0])

    for _ in range(12):  # a driver prepares what it has sent five times
        assert await asyncio.gather(*(ask(number) for number in range(20))) == [1] * 20


async def test_a_tenant_sees_nothing_of_the_tenant_whose_session_it_got(database: Database) -> None:
    other = (await Tenants(database).create("other")).id
    async with database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(
            "INSERT INTO users (id, tenant_id, external_id) VALUES (gen_random_uuid(), %s, 'u-1')",
            [DEFAULT_TENANT],
        )
    count = "SELECT count(*), current_setting('lock_timeout') FROM users"

    async def counted(number: int) -> tuple[int, str]:
        return (await database.fetch((DEFAULT_TENANT, other)[number % 2], count, {}, tuple_row))[0]

    found = await asyncio.gather(*(counted(number) for number in range(40)))
    assert found == [(1, "5s"), (0, "5s")] * 20
    async with database.pool.connection() as connection:
        unset = "SELECT current_setting('anamnesis.tenant_id', true), current_setting('lock_timeout')"
        assert await (await connection.execute(unset)).fetchone() in {("", "0"), (None, "0")}


async def test_locks_and_notifications_have_a_session_that_lasts(database: Database) -> None:
    async with aclosing(database.notifications("here")) as heard:
        assert await anext(heard) == ""
        async with database.only_one("work") as first, database.only_one("work") as second:
            assert (first, second) == (True, False)
            async with database.tenant(DEFAULT_TENANT) as connection:
                await connection.execute("SELECT pg_notify('here', 'now')")
            assert await anext(heard) == "now"
        async with database.only_one("work") as again:
            assert again


async def test_a_statement_that_nobody_waits_for_ends_with_its_connection(database: Database) -> None:
    async def sleep() -> None:
        async with database.tenant(DEFAULT_TENANT) as connection:
            await connection.execute("SELECT pg_sleep(90)")

    asleep = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(90)'"
    async with database._direct_connection() as looking, asyncio.timeout(60):

        async def running() -> int:
            row = await (await looking.execute(asleep)).fetchone()
            return int(row[0]) if row else 0

        for _ in range(3):
            sleeping = [asyncio.create_task(sleep()) for _ in range(SESSIONS)]
            while await running() < SESSIONS:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            for each in sleeping:
                each.cancel()
            await asyncio.wait(sleeping, timeout=2)
            assert all(each.cancelled() for each in sleeping)
            while await running():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await database.tenants()


async def test_a_pooler_without_the_direct_address_is_refused(pooled: Engines) -> None:
    for direct_url, name in ((None, "ANAMNESIS_DATABASE_URL"), (pooled.database_url, "ANAMNESIS_DIRECT_DATABASE")):
        database = Database(pooled.database_url, direct_url=direct_url)
        with pytest.raises(ConfigurationError, match=f"^{name}.* leads through a connection pooler"):
            await database.open()
        await database.close()


def test_the_schema_is_not_migrated_through_a_pooler(engines: Engines, port: int) -> None:
    with pytest.raises(ConfigurationError, match="ANAMNESIS_MIGRATION_DATABASE_URL leads through"):
        migrate(_through(engines.owner_url or "", port), "anamnesis")


@pytest.fixture
async def processes(settings: Settings, pooled: Engines, redis_server: str) -> AsyncIterator[list[Process]]:
    """Two processes with a worker each, over three sessions in all."""
    shared = settings.model_copy(update={"redis_url": SecretStr(redis_server)})
    async with process_of(shared, pooled) as one, process_of(shared, pooled) as two:
        for services, _ in (one, two):
            services.jobs.start_worker()
        yield [one, two]


async def test_turns_events_signals_and_jobs_work_through_it(
    processes: list[Process], model_server: ModelServer
) -> None:
    model_server.default = Reply(["Yes ", "indeed."])
    (services, here), (_, there) = processes
    model_server.script(Reply(["It ", "is ", "late"], gap_s=30), Reply(["Next."]))
    endless = await here.start(
        TurnRequest(DEFAULT_TENANT, TurnInput(user_id="u-1", session_id="x", message="one"))
    )
    await first_token(here, endless)
    asked = TurnInput(user_id="u-1", session_id="x", message="two")
    follower = await there.start(TurnRequest(DEFAULT_TENANT, asked, on_conflict="interrupt"))
    assert (await events_of(here, follower))[-1].content["answer"] == "Next."

    async def talk(number: int) -> str:
        runner = (here, there)[number % 2]
        given = TurnInput(
            user_id=f"u-{number % 6}", session_id=f"s-{number}", message=f"I like tea number {number}."
        )
        turn = await runner.start(TurnRequest(DEFAULT_TENANT, given))
        return str((await events_of((there, here)[number % 2], turn))[-1].content["answer"])

    assert await asyncio.gather(*(talk(number) for number in range(24))) == ["Yes indeed."] * 24
    await _all_done(services)


async def _all_done(services: Services) -> None:
    """Wait until every job that may run has succeeded; one that failed and was replaced meanwhile does not."""
    statement = (
        "SELECT status::text, count(*) FROM procrastinate_jobs WHERE task_name <> ALL(%(periodic)s) GROUP BY 1"
    )
    periodic = [task.name for task in services.jobs.app.tasks.values() if task.queueing_lock]
    async with asyncio.timeout(60):
        while True:
            counted: dict[str, int] = dict(
                await services.database.fetch_without_tenant(statement, {"periodic": periodic}, tuple_row)
            )
            if set(counted) in ({"succeeded"}, {"succeeded", "aborted"}):
                break
            assert "failed" not in counted, counted
            await asyncio.sleep(0.1)
