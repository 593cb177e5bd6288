"""PostgreSQL: transactions that see only one tenant, and statements that share a round trip."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, LiteralString, TypeVar
from uuid import UUID

from psycopg import AsyncCursor, AsyncRawCursor, sql
from psycopg.pq import ExecStatus
from psycopg.rows import AsyncRowFactory, TupleRow, tuple_row

from services.encryption.data_key import DataKey
from services.encryption.state import check_encryption
from services.encryption.vault import LookUp, Vault
from services.errors import DatabaseUnavailable
from services.platform.connections import (
    LIMITS,
    STATEMENT_S,
    WAIT_FOR_CONNECTION_S,
    Connection,
    Connections,
    despite_contention,
    driver_errors_made_ours,
)
from services.platform.database_checks import (
    DATABASE_URL_IS_POOLED,
    DIRECT_URL_IS_POOLED,
    check_direct,
    check_role,
    check_schema,
)
from services.platform.database_errors import why_away
from services.platform.migrate import check_version
from services.platform.prepared_statements import ROWS_AT_ONCE, Command
from services.platform.shared_reads import Query, SharedReads, positional

Row = TypeVar("Row")
One = TypeVar("One")
Other = TypeVar("Other")
Result = TypeVar("Result")

UNHURRIED_S = 600.0
"""Maximum seconds for one round trip that may move much data."""
_SET_LIMITS_LOCALLY = "".join(f", set_config('{name}', '{limit}', true)" for name, limit in LIMITS.items())

# Row-level security reads the setting; `true` makes it end with the transaction.
_SET_TENANT = "SELECT set_config('anamnesis.tenant_id', %(tenant_id)s, true)"
_TENANTS = "SELECT id FROM tenants ORDER BY id"
# One plan for all values, made once for a connection: planning takes longer than running the statements of a turn.
_GENERIC = ", set_config('plan_cache_mode', 'force_generic_plan', true)"
_AND_LOCK = ", pg_advisory_xact_lock(hashtextextended(%(lock)s, 0))"

# Statements that belong together see the same state.
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ"


class Database(Connections):
    """The service's connections, with a role that owns nothing and bypasses nothing. Every method raises
    `DatabaseUnavailable` if the database does not answer, or breaks the connection."""

    def __init__(
        self,
        url: str,
        *,
        direct_url: str | None = None,
        statement_s: float = STATEMENT_S,
        vault: Vault | None = None,
    ) -> None:
        """Take the addresses.

        Args:
            url: Address for the pool. With `direct_url` it may lead through a pooler that gives each transaction
                another session (PgBouncer's transaction mode): nothing is then left in a session.
            direct_url: Address of the same database past the pooler, for what needs a session: notifications, and
                locks that outlast a transaction. None = `url` is direct.
            statement_s: Maximum seconds for one round trip.
            vault: Seals and opens users' words; None = they are stored as they are.
        """
        super().__init__(url, direct_url=direct_url, statement_s=statement_s, adapt=vault.adapt if vault else None)
        self._url = url
        self.vault = vault
        self._set_tenant: LiteralString = _SET_TENANT + (_SET_LIMITS_LOCALLY if self._pooled else "")
        self._under_way: set[asyncio.Task[Any]] = set()
        self._shared_reads = SharedReads(self._run_generic)

    async def open(self) -> None:
        """Connect. Raises `ConfigurationError` if the role bypasses row-level security, the schema is not this
        version's, or a connection that has to be direct leads through a pooler, and `DatabaseUnavailable` if
        nothing answers."""
        try:
            async with driver_errors_made_ours():
                await self.pool.open(wait=True, timeout=WAIT_FOR_CONNECTION_S)
        except DatabaseUnavailable as error:
            if reason := await asyncio.to_thread(why_away, self._url, "ANAMNESIS_DATABASE_URL"):
                raise DatabaseUnavailable(reason) from error
            raise
        async with driver_errors_made_ours():
            async with self.pool.connection() as connection:
                if not self._pooled:
                    await check_direct(connection, DATABASE_URL_IS_POOLED)
                check_version(connection)
                await check_role(connection)
                await check_schema(connection)
                await check_encryption(connection, self.vault)
            if self._pooled:
                async with self._direct_connection() as connection:
                    await check_direct(connection, DIRECT_URL_IS_POOLED)

    async def close(self) -> None:
        """Close every connection."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=2)
        await self._shared_reads.settled(within_s=2)
        await self.pool.close(timeout=2)
        if self.vault is not None:
            self.vault.close()

    @asynccontextmanager
    async def tenant(self, tenant_id: UUID, *, statement_s: float | None = None) -> AsyncIterator[Connection]:
        """Open a transaction in which only the tenant's rows exist; commit at the end. A round trip may take
        `statement_s` seconds; None = as long as that of a turn."""
        async with self._connection(statement_s) as connection:
            await connection.execute(_begin_for(self._set_tenant, tenant_id), prepare=False)
            yield connection
            await connection.execute("COMMIT")

    async def transact(
        self, tenant_id: UUID, work: Callable[[Connection], Awaitable[Result]], *, statement_s: float | None = None
    ) -> Result:
        """Run work in such a transaction and commit it; start over after a deadlock or a long wait for a lock.
        The work runs up to three times, so it must change nothing but the database. Raises `DatabaseContended`
        if other transactions were in the way each time; nothing was changed."""

        async def transaction() -> Result:
            async with self.tenant(tenant_id, statement_s=statement_s) as connection:
                return await work(connection)

        return await despite_contention(transaction)

    async def transact_after(
        self, tenant_id: UUID, first: Query[Row], work: Callable[[Connection, list[Row]], Awaitable[Result]]
    ) -> Result:
        """Run `work` as `transact` does, with the rows of a first statement, which begins the transaction.
        Raises `DatabaseContended` if other transactions were in the way each time; nothing was changed."""
        values = await self._sealed(tenant_id, first.values)

        async def transaction() -> Result:
            async with self._connection() as connection:
                cursor = AsyncRawCursor(connection, row_factory=first.row_factory)
                async with self._at_once(connection):
                    await connection.execute("BEGIN")
                    await connection.execute(self._set_tenant, {"tenant_id": str(tenant_id)})
                    await cursor.execute(*positional(first.statement, values))
                done = await work(connection, await _all_rows(cursor))
                await connection.execute("COMMIT")
                return done

        return await despite_contention(transaction)

    async def fetch(
        self,
        tenant_id: UUID,
        statement: LiteralString,
        values: Mapping[str, Any],
        row_factory: AsyncRowFactory[Row],
        *,
        lock: str | None = None,
        generic: bool = False,
    ) -> list[Row]:
        """Run one statement in such a transaction and return its rows, in one round trip.

        With `lock`, only one transaction at a time runs under that name; the statement sees what earlier ones have
        committed. A `generic` statement has one plan for all values, so it must find its rows by indexes whatever
        the values are.
        """

        query = Query(statement, values, row_factory)

        async def fetched() -> list[list[Any]]:
            return await self._run_each(tenant_id, (query,), False, generic=generic, lock=lock)

        return (await despite_contention(lambda: self._to_its_end(fetched())))[0]

    async def read(self, tenant_id: UUID, query: Query[Row]) -> list[Row]:
        """Run a statement that only reads, in one round trip with other reads of this moment.

        It is for statements of similar, short duration, because each waits for all of them. They are `generic`, as
        in `fetch`.
        """
        return (await self._read_together(tenant_id, (query,), of_one_moment=False))[0]

    async def read_each(
        self, tenant_id: UUID, one: Query[One], other: Query[Other], *, of_one_moment: bool = True
    ) -> tuple[list[One], list[Other]]:
        """Run two statements as `read` does, and return the rows of each. They see the same state; without
        `of_one_moment` the second may see a newer one."""
        found = await self._read_together(tenant_id, (one, other), of_one_moment=of_one_moment)
        return found[0], found[1]

    async def fetch_each(
        self, tenant_id: UUID, one: Query[One], other: Query[Other], *, of_one_moment: bool = True
    ) -> tuple[list[One], list[Other]]:
        """Run two longer statements in a round trip of their own; each is planned anew."""
        found = await self._to_its_end(self._run_each(tenant_id, (one, other), of_one_moment))
        return found[0], found[1]

    async def _read_together(
        self, tenant_id: UUID, queries: Sequence[Query[Any]], *, of_one_moment: bool
    ) -> list[list[Any]]:
        if self._pooled:  # nothing shares a round trip, so separate connections are faster
            return await self._to_its_end(self._run_generic(tenant_id, queries, of_one_moment))
        return await self._shared_reads.rows(tenant_id, queries, of_one_moment=of_one_moment)

    async def _run_generic(
        self, tenant_id: UUID, queries: Sequence[Query[Any]], of_one_moment: bool
    ) -> list[list[Any]]:
        return await self._run_each(tenant_id, queries, of_one_moment, generic=True)

    async def _run_each(
        self,
        tenant_id: UUID,
        queries: Sequence[Query[Any]],
        of_one_moment: bool,
        *,
        generic: bool = False,
        lock: str | None = None,
    ) -> list[list[Any]]:
        """Run statements in one transaction and one round trip, and return the rows of each."""
        sealed = [await self._sealed(tenant_id, query.values) for query in queries]
        settings = self._set_tenant + (_GENERIC if generic else "") + (_AND_LOCK if lock is not None else "")
        set_for = {"tenant_id": str(tenant_id), "lock": lock}
        # Everything between two synchronisation points of a pipeline is implicitly one transaction.
        begin = _BEGIN_READING if of_one_moment else "BEGIN" if self._pooled else None
        commands = [
            Command(*positional(settings, set_for)),
            *(
                Command(*positional(query.statement, values), query.row_factory)
                for query, values in zip(queries, sealed, strict=True)
            ),
        ]
        if begin:
            commands = [Command(begin), *commands, Command("COMMIT")]
        first = 2 if begin else 1
        async with self._connection() as connection:
            if generic and not self._pooled:
                found = await connection.prepared.run(commands)
            else:
                found = await self._run_once(connection, commands)
        return found[first : first + len(queries)]

    async def _run_once(self, connection: Connection, commands: Sequence[Command]) -> list[list[Any]]:
        """Run commands that are not worth preparing, because they run once."""
        cursors = [AsyncRawCursor(connection, row_factory=command.row_factory) for command in commands]
        async with self._at_once(connection):
            for cursor, command in zip(cursors, commands, strict=True):
                await cursor.execute(command.text, command.values)
        return [await _all_rows(cursor) for cursor in cursors]

    async def user_key(self, tenant_id: UUID, **named: UUID | str) -> DataKey | None:
        """Return the key of the user whom `user_id`, `conversation_id` or `turn_id` names; None = no
        encryption. Raises `Unavailable` if the keys cannot be read or written."""
        if self.vault is None:
            return None
        return await self.vault.key({"tenant_id": tenant_id, **named}, self._look_up(tenant_id))

    async def _sealed(self, tenant_id: UUID, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.vault is None:
            return values
        if self.pool.closed:
            raise DatabaseUnavailable
        return await self.vault.seal({"tenant_id": tenant_id, **values}, self._look_up(tenant_id))

    def _look_up(self, tenant_id: UUID) -> LookUp:
        async def look_up(statement: LiteralString, values: Mapping[str, Any]) -> TupleRow | None:
            rows = await self.fetch(tenant_id, statement, values, tuple_row)
            return rows[0] if rows else None

        return look_up

    async def _to_its_end(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work in a task that is never cancelled; a cancelled caller returns at once. An interrupted query
        would cost its connection, and a new one is expensive."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may be gone, and nobody else retrieves it

    async def fetch_without_tenant(
        self, statement: LiteralString, values: Mapping[str, Any], row_factory: AsyncRowFactory[Row]
    ) -> list[Row]:
        """Run a statement without a tenant: it sees tables without tenants, and results of the owner's
        functions."""
        async with self._connection() as connection, connection.cursor(row_factory=row_factory) as cursor:
            await cursor.execute(statement, values)
            return await _all_rows(cursor)

    async def tenants(self) -> list[UUID]:
        """Return the ids of all tenants."""
        rows = await self.fetch_without_tenant(_TENANTS, {}, tuple_row)
        return [row[0] for row in rows]


async def _all_rows(cursor: AsyncCursor[Row]) -> list[Row]:
    """Return the rows of a statement; other tasks run between parts, because each row becomes an object."""
    if cursor.pgresult is None or cursor.pgresult.status != ExecStatus.TUPLES_OK:
        return []
    rows = await cursor.fetchmany(ROWS_AT_ONCE)
    while len(rows) < cursor.rowcount:
        await asyncio.sleep(0)
        rows += await cursor.fetchmany(ROWS_AT_ONCE)
    return rows


@lru_cache(maxsize=10_000)
def _begin_for(set_tenant: LiteralString, tenant_id: UUID) -> bytes:
    """Return BEGIN and the tenant setting as one text: without parameters it may hold two statements."""
    return b"BEGIN; " + sql.SQL(set_tenant.replace("%(tenant_id)s", "{}")).format(
        sql.Literal(str(tenant_id))
    ).as_bytes(None)
