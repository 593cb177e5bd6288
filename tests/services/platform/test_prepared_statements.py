"""Prepared statements that share a round trip: their rows, their errors, and connections that go on after both."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from services.engines import Engines
from services.platform.prepared_statements import ROWS_AT_ONCE, Command, PreparedStatements

_BEFORE = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'anamnesis%'"


@pytest.fixture
async def connection(engines: Engines) -> AsyncIterator[psycopg.AsyncConnection]:
    async with await psycopg.AsyncConnection.connect(engines.database_url, autocommit=True) as connection:
        yield connection


async def test_each_statement_gets_its_own_rows_and_is_prepared_once(connection: psycopg.AsyncConnection) -> None:
    statements = PreparedStatements(connection)
    many = Command("SELECT generate_series(1, $1::integer)", [ROWS_AT_ONCE * 2 + 1])
    for value in ("one", None, "two"):
        found = await statements.run(
            [Command("SELECT $1 AS said", [value], dict_row), many, many._replace(values=[2])]
        )
        assert found[0] == [{"said": value}]
        assert [len(found[1]), found[1][-1]] == [ROWS_AT_ONCE * 2 + 1, (ROWS_AT_ONCE * 2 + 1,)]
        assert found[2] == [(1,), (2,)]
    [[prepared], nothing] = await statements.run([Command(_BEFORE), Command("SET LOCAL search_path TO public")])
    assert (prepared[0], nothing) == (3, [])


async def test_what_fails_undoes_all_of_its_round_trip_and_leaves_the_connection_usable(
    connection: psycopg.AsyncConnection,
) -> None:
    statements = PreparedStatements(connection)
    await statements.run([Command("CREATE TEMP TABLE noted (number integer)")])
    note = Command("INSERT INTO noted VALUES ($1)", [1])
    for wrong in (Command("SELECT 1 / $1::integer", [0]), Command("SELECT FROM nowhere")):
        with pytest.raises(psycopg.errors.Error) as raised:
            await statements.run([note, wrong, note])
        assert isinstance(raised.value, psycopg.errors.DivisionByZero | psycopg.errors.UndefinedTable)
        assert connection.pgconn.transaction_status == TransactionStatus.IDLE
    assert await statements.run([Command(_BEFORE)]) == [[(4,)]]
    with pytest.raises(psycopg.DataError, match="NUL"):
        await statements.run([note, Command("SELECT $1", ["a\0b"])])
    assert await statements.run([Command("SELECT * FROM noted")]) == [[]]


async def test_statements_that_the_driver_deallocated_are_prepared_again(
    connection: psycopg.AsyncConnection,
) -> None:
    statements = PreparedStatements(connection)
    reads = [Command("BEGIN ISOLATION LEVEL REPEATABLE READ"), Command("SELECT 1"), Command("COMMIT")]
    for commands in ([Command("SELECT 1")], reads, reads):
        await statements.run(commands)
        await connection.execute("DEALLOCATE ALL")
        assert [(1,)] in await statements.run(commands)
        assert connection.pgconn.transaction_status == TransactionStatus.IDLE


async def test_a_connection_that_ends_fails_its_round_trip(connection: psycopg.AsyncConnection) -> None:
    with pytest.raises(psycopg.OperationalError):
        await PreparedStatements(connection).run(
            [Command("SELECT 1"), Command("SELECT pg_terminate_backend(pg_backend_pid())"), Command("SELECT 1")]
        )
    assert connection.closed
