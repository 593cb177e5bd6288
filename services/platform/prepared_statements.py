"""Prepared statements that share one round trip.

It does what the driver's pipeline of cursors does, in a third of the steps: all rows are read at the end; what is
known of a statement (its name, how its values are sent) is kept as long as the connection; and everything is sent
before the first result is awaited.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import AsyncConnection, abc, errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import fetch_many, send
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.rows import AsyncRowFactory, TupleRow, tuple_row

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

ROWS_AT_ONCE = 500
"""Rows after which other tasks get a turn, because each row of a large result becomes an object."""


class Command(NamedTuple):
    """A statement with numbered placeholders, its values, and the type of its rows."""

    text: str
    values: Sequence[Any] = ()
    row_factory: AsyncRowFactory[Any] = tuple_row


@dataclass(eq=False)
class _Statement:
    text: bytes
    formats: list[PyFormat]
    transformer: abc.Transformer
    names: dict[tuple[int, ...], bytes] = field(default_factory=dict)
    """Names by the types of the values: NULL has another type."""


@dataclass(eq=False)
class _Call:
    statement: _Statement
    values: Sequence[Any]
    types: tuple[int, ...]
    formats: list[Format]
    prepares: bool = False
    """Whether its statement is prepared first."""


@dataclass(eq=False)
class _Answered:
    """The attributes of a cursor that a row factory reads."""

    pgresult: "PGresult"
    _encoding: str = "utf-8"


class PreparedStatements:
    """The prepared statements of one connection, which one task uses at a time."""

    def __init__(self, connection: AsyncConnection[TupleRow]) -> None:
        self._connection = connection
        self._statements: dict[tuple[str, int], _Statement] = {}
        self._count = 0

    async def run(self, commands: Sequence[Command]) -> list[list[Any]]:
        """Run commands in one transaction and one round trip; return the rows of each. A cancelled caller
        leaves the connection within a pipeline. Raises `psycopg.Error` if the error of the first command that
        failed; unless the commands began their own."""
        try:
            return await self._run(commands)
        except errors.InvalidSqlStatementName:  # after a rollback the driver deallocates everything
            self._statements.clear()
            if self._connection.pgconn.transaction_status != TransactionStatus.IDLE:
                await self._run([Command("ROLLBACK")])
            return await self._run(commands)

    async def _run(self, commands: Sequence[Command]) -> list[list[Any]]:
        calls = [self._call(command) for command in commands]
        pgconn = self._connection.pgconn
        pgconn.enter_pipeline_mode()
        for call in calls:
            self._send(pgconn, call)
        pgconn.pipeline_sync()
        answers = await self._connection.wait(_answers(pgconn))
        if pgconn.status == ConnStatus.OK:
            pgconn.exit_pipeline_mode()
        results = _results(calls, answers)
        return [
            await _rows(call.statement.transformer, result, command)
            for call, result, command in zip(calls, results, commands, strict=True)
        ]

    def _call(self, command: Command) -> _Call:
        key = (command.text, len(command.values))
        if (statement := self._statements.get(key)) is None:
            formats = [PyFormat.AUTO] * len(command.values)
            statement = _Statement(command.text.encode(), formats, Transformer(self._connection))
            self._statements[key] = statement
        transformer = statement.transformer
        values = transformer.dump_sequence(command.values, statement.formats)
        return _Call(statement, values, tuple(transformer.types or ()), transformer.formats or [])

    def _send(self, pgconn: "PGconn", call: _Call) -> None:
        if (name := call.statement.names.get(call.types)) is None:
            self._count += 1
            name = call.statement.names[call.types] = b"anamnesis_%d" % self._count
            call.prepares = True
            pgconn.send_prepare(name, call.statement.text, call.types)
        pgconn.send_query_prepared(name, call.values, call.formats)


def _answers(pgconn: "PGconn") -> abc.PQGen[list["PGresult"]]:
    """Receive everything up to the point of synchronisation."""
    yield from send(pgconn)
    answers: list[PGresult] = []
    while True:
        found = yield from fetch_many(pgconn)
        if not found or found[0].status == ExecStatus.PIPELINE_SYNC:
            return answers
        answers += found


def _results(calls: Sequence[_Call], answers: Sequence["PGresult"]) -> list["PGresult"]:
    """Return the result of each call, and forget the names of statements that were not prepared after all."""
    following = iter(answers)
    results: list[PGresult] = []
    for call in calls:
        if call.prepares:
            prepared = next(following, None)
            if prepared is None or prepared.status != ExecStatus.COMMAND_OK:
                call.statement.names.pop(call.types, None)
        results += islice(following, 1)
    for answer in answers:
        if answer.status == ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(answer)
    if len(results) < len(calls):
        raise errors.OperationalError("the connection ended before it answered")
    return results


async def _rows(transformer: abc.Transformer, result: "PGresult", command: Command) -> list[Any]:
    if result.status != ExecStatus.TUPLES_OK:
        return []
    make: Any = command.row_factory(_Answered(result))  # type: ignore[arg-type]  # the factories need no more of it
    transformer.set_pgresult(result)
    rows = transformer.load_rows(0, min(ROWS_AT_ONCE, result.ntuples), make)
    while len(rows) < result.ntuples:
        await asyncio.sleep(0)
        rows += transformer.load_rows(len(rows), min(len(rows) + ROWS_AT_ONCE, result.ntuples), make)
    return rows
