"""PostgreSQL: the pool, transactions that see only one tenant, and the conversion of driver errors."""

import asyncio
import copy
import select
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar
from uuid import UUID

import psycopg
import psycopg_pool
from psycopg import AsyncConnection, AsyncCursor, AsyncRawCursor, sql
from psycopg.abc import PQGen
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus
from psycopg.rows import AsyncRowFactory, TupleRow, tuple_row
from psycopg.types.json import set_json_dumps, set_json_loads

from services.encryption.state import check_encryption
from services.errors import DatabaseContended, DatabaseUnavailable, TenantElsewhere
from services.json_text import json_bytes, json_value
from services.platform.database_checks import (
    DATABASE_URL_IS_POOLED,
    DIRECT_URL_IS_POOLED,
    check_direct,
    check_role,
    check_schema,
    check_sharding,
)
from services.platform.shared_reads import Query, SharedReads, positional

if TYPE_CHECKING:
    from services.encryption.data_key import DataKey
    from services.encryption.vault import LookUp, Vault

Connection = AsyncConnection[TupleRow]
Returned = TypeVar("Returned")
Row = TypeVar("Row")
One = TypeVar("One")
Other = TypeVar("Other")
Result = TypeVar("Result")

_POOL_SIZE = 20
_WAIT_FOR_CONNECTION_S = 5.0
_STATEMENT_S = 15.0
"""Seconds for one round trip of a turn, on the client's side: a hanging server ignores its own time-outs."""
UNHURRIED_S = 600.0
"""Seconds for one round trip that may move a lot of data."""
_ROWS_AT_ONCE = 500
_CHECK_S = 2.0
_IN_DOUBT_S = 30.0
"""After a round trip that took too long, a connection is asked before it is lent."""

_TRIES = 3
"""Attempts at a transaction while others hold locks that it needs."""

_TRANSIENT = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg_pool.PoolTimeout,
    psycopg_pool.PoolClosed,
)

_LIMITS = {
    # A process that is paused during a transaction must not block the others for long.
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "5s",
    # An abandoned statement ends soon after its connection.
    "client_connection_check_interval": "2s",
}
_SET_LIMITS = "; ".join(f"SET {name} = '{limit}'" for name, limit in _LIMITS.items())
_SET_LIMITS_LOCALLY = "".join(f", set_config('{name}', '{limit}', true)" for name, limit in _LIMITS.items())

# Row-level security reads the setting; `true` makes it end with the transaction.
_SET_TENANT = "SELECT set_config('anamnesis.tenant_id', %s, true)"
_ENTER_TENANT = "SELECT enter_tenant(%s)"
_CLOSED = "AN001"
"""Error code of `enter_tenant` for a tenant that the database does not serve."""

_TENANTS = "SELECT id FROM tenants ORDER BY id"
_SERVED_OF = """
SELECT id FROM unnest(%(ids)s::uuid[]) AS id
WHERE NOT EXISTS (SELECT FROM closed_tenants c WHERE c.tenant_id = id) ORDER BY id
"""
_SERVED_TENANTS = """
SELECT id FROM tenants t WHERE NOT EXISTS (SELECT FROM closed_tenants c WHERE c.tenant_id = t.id) ORDER BY id
"""
_AND_LOCK = ", pg_advisory_xact_lock(hashtextextended(%s, 0))"

# Statements that belong together see the same state.
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ"

_TRY_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_LOOK_AGAIN_S = 0.1

_STILL_THERE_S = 30.0
"""Pause between two checks of a connection that only listens."""


class _LimitedConnection(AsyncConnection[TupleRow]):
    """A connection whose round trips have a limit while it is lent."""

    round_trip_s: float | None = None

    async def wait(
        self,
        gen: PQGen[Returned],
        interval: float = 0.1,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Returned:
        # Not `asyncio.timeout`: a query that is cancelled asks the server to end it, and waits for that.
        return await super().wait(gen, interval, self.round_trip_s if timeout is None else timeout)


class Database:
    """The service's connections, as a role that owns nothing and bypasses nothing."""

    def __init__(
        self,
        url: str,
        *,
        direct_url: str | None = None,
        statement_s: float = _STATEMENT_S,
        vault: "Vault | None" = None,
        sharded: bool = False,
    ) -> None:
        """Take the addresses.

        Args:
            url: of the pool. With `direct_url` it may lead through a pooler that gives each transaction another
                session (PgBouncer's transaction mode): nothing is then left in a session.
            direct_url: address of the same database past the pooler, for what needs a session: notifications
                and locks that outlast a transaction. None = `url` is direct.
            statement_s: seconds for one round trip.
            vault: seals and opens users' words; None = they are stored as they are.
            sharded: whether tenants may be in another database; then each transaction of a tenant first looks
                whether this one serves it, and raises TenantElsewhere if not.
        """
        self.vault = vault
        self._sharded = sharded
        self._pooled = direct_url is not None
        self._direct_url = direct_url or url
        self._set_tenant = self._entering(_ENTER_TENANT if sharded else _SET_TENANT)
        self._statement_s = statement_s
        self._under_way: set[asyncio.Task[Any]] = set()
        self._shared_reads = SharedReads(self._run_each)
        self._in_doubt_until = 0.0
        self.pool: psycopg_pool.AsyncConnectionPool[_LimitedConnection] = psycopg_pool.AsyncConnectionPool(
            url,
            connection_class=_LimitedConnection,
            min_size=2,
            max_size=_POOL_SIZE,
            timeout=_WAIT_FOR_CONNECTION_S,
            # The pool doubles its pauses between tries; after it gives up, the next request starts with short
            # ones.
            reconnect_timeout=_WAIT_FOR_CONNECTION_S,
            open=False,
            configure=self._configure,
            check=self._check,
            kwargs={"connect_timeout": 5} | ({"prepare_threshold": None} if self._pooled else {}),
        )

    def _entering(self, statement: LiteralString) -> LiteralString:
        return statement + (_SET_LIMITS_LOCALLY if self._pooled else "")

    def for_every_tenant(self) -> "Database":
        """Return the same database for what every tenant has in it, wherever its data are: its API keys."""
        if not self._sharded:
            return self
        same = copy.copy(self)
        same._sharded = False
        same._set_tenant = self._entering(_SET_TENANT)
        same._shared_reads = SharedReads(same._run_each)
        return same

    async def open(self) -> None:
        """Connect.

        Raises:
            ConfigurationError: the role bypasses row-level security, the schema is not this version's, or a
                connection that has to be direct leads through a pooler.
            DatabaseUnavailable: nothing answers.
        """
        async with driver_errors_made_ours():
            await self.pool.open(wait=True, timeout=_WAIT_FOR_CONNECTION_S)
            async with self.pool.connection() as connection:
                if not self._pooled:
                    await check_direct(connection, DATABASE_URL_IS_POOLED)
                await check_role(connection)
                await check_schema(connection)
                await check_sharding(connection, sharded=self._sharded)
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
        """Open a transaction in which only the tenant's rows exist; commit at the end.

        Args:
            tenant_id: whose rows.
            statement_s: seconds for each round trip; None = as long as a turn's may take.

        Raises:
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """
        async with self._connection(statement_s) as connection:
            await connection.execute(_begin_for(self._set_tenant, tenant_id), prepare=False)
            yield connection
            await connection.execute("COMMIT")

    async def transact(
        self,
        tenant_id: UUID,
        work: Callable[[Connection], Awaitable[Result]],
        *,
        statement_s: float | None = None,
    ) -> Result:
        """Do work in such a transaction and commit it; start over when it met a deadlock or a long lock.

        Args:
            tenant_id: whose rows.
            work: runs up to three times, so it changes nothing but the database.
            statement_s: seconds for each round trip; None = as long as a turn's may take.

        Raises:
            DatabaseContended: other transactions were in the way each time; nothing was changed.
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """

        async def transaction() -> Result:
            async with self.tenant(tenant_id, statement_s=statement_s) as connection:
                return await work(connection)

        return await _despite_contention(transaction)

    async def transact_after(
        self,
        tenant_id: UUID,
        first: Query[Row],
        work: Callable[[Connection, list[Row]], Awaitable[Result]],
    ) -> Result:
        """Do the same after a first statement, whose rows `work` is given; it begins in one round trip.

        Raises:
            DatabaseContended: other transactions were in the way each time; nothing was changed.
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """
        values = await self._sealed(tenant_id, first.values)

        async def transaction() -> Result:
            async with self._connection() as connection:
                cursor = AsyncRawCursor(connection, row_factory=first.row_factory)
                async with self._at_once(connection):
                    await connection.execute("BEGIN")
                    await connection.execute(self._set_tenant, [str(tenant_id)])
                    await cursor.execute(*positional(first.statement, values))
                done = await work(connection, await _all_rows(cursor))
                await connection.execute("COMMIT")
                return done

        return await _despite_contention(transaction)

    async def fetch(
        self,
        tenant_id: UUID,
        statement: LiteralString,
        values: Mapping[str, Any],
        row_factory: AsyncRowFactory[Row],
        *,
        lock: str | None = None,
    ) -> list[Row]:
        """Run one statement in such a transaction and return its rows, in one round trip.

        With `lock`, only one transaction at a time runs under that name; the statement sees what earlier ones have
        committed.

        Raises:
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """

        values = await self._sealed(tenant_id, values)

        async def fetched() -> list[Row]:
            async with self._connection() as connection:
                cursor = AsyncRawCursor(connection, row_factory=row_factory)
                async with self._transaction_at_once(connection):
                    if lock is None:
                        await connection.execute(self._set_tenant, [str(tenant_id)])
                    else:
                        await connection.execute(self._set_tenant + _AND_LOCK, [str(tenant_id), lock])
                    await cursor.execute(*positional(statement, values))
                return await _all_rows(cursor)

        return await self._to_its_end(fetched())

    async def fetch_each(
        self, tenant_id: UUID, one: Query[One], other: Query[Other], *, of_one_moment: bool = True
    ) -> tuple[list[One], list[Other]]:
        """Run two statements in such a transaction, in one round trip.

        Unless they need not be `of_one_moment`, the second sees the same state as the first.

        Raises:
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """

        found = await self._to_its_end(self._run_each(tenant_id, (one, other), of_one_moment))
        return found[0], found[1]

    async def read(self, tenant_id: UUID, query: Query[Row]) -> list[Row]:
        """Run a statement that only reads, with what else is read at this moment: all share one round trip.

        It is for statements of about the same, short duration, since each waits for all of them.

        Raises:
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """
        return (await self._read_together(tenant_id, (query,), of_one_moment=False))[0]

    async def read_each(
        self, tenant_id: UUID, one: Query[One], other: Query[Other]
    ) -> tuple[list[One], list[Other]]:
        """Do the same for two that see the same state.

        Raises:
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """
        found = await self._read_together(tenant_id, (one, other), of_one_moment=True)
        return found[0], found[1]

    async def _read_together(
        self, tenant_id: UUID, queries: Sequence[Query[Any]], *, of_one_moment: bool
    ) -> list[list[Any]]:
        if self._pooled:  # nothing shares a round trip, so that separate connections are faster
            return await self._to_its_end(self._run_each(tenant_id, queries, of_one_moment))
        return await self._shared_reads.rows(tenant_id, queries, of_one_moment=of_one_moment)

    async def _run_each(
        self, tenant_id: UUID, queries: Sequence[Query[Any]], of_one_moment: bool
    ) -> list[list[Any]]:
        """Run statements in one transaction and one round trip, and return the rows of each."""
        sealed = [await self._sealed(tenant_id, query.values) for query in queries]
        async with self._connection() as connection:
            cursors = [AsyncRawCursor(connection, row_factory=query.row_factory) for query in queries]
            async with self._transaction_at_once(connection, begin=_BEGIN_READING if of_one_moment else None):
                await connection.execute(self._set_tenant, [str(tenant_id)])
                for cursor, query, values in zip(cursors, queries, sealed, strict=True):
                    await cursor.execute(*positional(query.statement, values))
            return [await _all_rows(cursor) for cursor in cursors]

    def _at_once(self, connection: Connection) -> AbstractAsyncContextManager[Any]:
        """Send statements in one round trip; through a pooler one by one.

        PgBouncer before 1.21 now and then leaves a pipeline without its answer.
        """
        return nullcontext() if self._pooled else connection.pipeline()

    @asynccontextmanager
    async def _transaction_at_once(
        self, connection: Connection, *, begin: LiteralString | None = None
    ) -> AsyncIterator[None]:
        """The same for statements that are to be one transaction, which `begin` may begin in a particular way."""
        # Everything between two synchronisation points of a pipeline is implicitly one transaction.
        begin = begin or ("BEGIN" if self._pooled else None)
        async with self._at_once(connection):
            if begin:
                await connection.execute(begin)
            yield
            if begin:
                await connection.execute("COMMIT")

    async def user_key(self, tenant_id: UUID, **named: UUID | str) -> "DataKey | None":
        """Return the key of the user whom `user_id`, `conversation_id` or `turn_id` names; None = no encryption.

        Raises:
            DatabaseUnavailable: the database does not answer.
            Unavailable: the keys cannot be read or written.
        """
        if self.vault is None:
            return None
        return await self.vault.key({"tenant_id": tenant_id, **named}, self._look_up(tenant_id))

    async def _sealed(self, tenant_id: UUID, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.vault is None:
            return values
        if self.pool.closed:
            raise DatabaseUnavailable
        return await self.vault.seal({"tenant_id": tenant_id, **values}, self._look_up(tenant_id))

    def _look_up(self, tenant_id: UUID) -> "LookUp":
        async def look_up(statement: LiteralString, values: Mapping[str, Any]) -> TupleRow | None:
            rows = await self.fetch(tenant_id, statement, values, tuple_row)
            return rows[0] if rows else None

        return look_up

    async def _to_its_end(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run it in a task that is never cancelled; a cancelled caller returns at once.

        An interrupted query would cost its connection, and a new one is expensive.
        """
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may be gone, and nobody else retrieves it

    @asynccontextmanager
    async def only_one(self, name: str, *, wait: bool = False) -> AsyncIterator[bool]:
        """Hold a lock by name across all processes; yield whether it was obtained.

        The lock is lost if the database connection breaks: the work under it must tolerate a second holder.

        Args:
            name: of the work.
            wait: wait for the current holder.

        Raises:
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """
        async with self._session() as connection:
            while True:
                row: Any = await (await connection.execute(_TRY_LOCK, [name])).fetchone()
                if row[0] or not wait:
                    break
                await asyncio.sleep(_LOOK_AGAIN_S)
            try:
                yield row[0]
            finally:
                if row[0]:
                    await connection.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])

    async def notifications(self, channel: str) -> AsyncGenerator[str, None]:
        """Yield notifications on a channel, over a separate connection; first an empty text once it listens.

        Raises:
            DatabaseUnavailable: the connection cannot be made, or broke.
        """
        async with driver_errors_made_ours(), self._direct_connection() as connection:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            yield ""
            while True:
                async for notification in connection.notifies(timeout=_STILL_THERE_S):
                    yield notification.payload
                async with asyncio.timeout(_CHECK_S):
                    await connection.execute("SELECT 1")

    async def fetch_without_tenant(
        self, statement: LiteralString, values: Mapping[str, Any], row_factory: AsyncRowFactory[Row]
    ) -> list[Row]:
        """Run one statement without a tenant: it sees tables without tenants, and results of the owner's
        functions.

        Raises:
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """
        async with self._connection() as connection, connection.cursor(row_factory=row_factory) as cursor:
            await cursor.execute(statement, values)
            return await _all_rows(cursor)

    async def tenants(self) -> list[UUID]:
        """Return the ids of all tenants that this database serves."""
        rows = await self.fetch_without_tenant(_SERVED_TENANTS if self._sharded else _TENANTS, {}, tuple_row)
        return [row[0] for row in rows]

    async def served(self, tenant_ids: Sequence[UUID]) -> list[UUID]:
        """Return those of the tenants that this database serves; an old copy of the others may still be there."""
        if not self._sharded or not tenant_ids:
            return list(tenant_ids)
        rows = await self.fetch_without_tenant(_SERVED_OF, {"ids": list(tenant_ids)}, tuple_row)
        return [row[0] for row in rows]

    async def ping(self) -> float:
        """Return the milliseconds that a trivial query takes.

        Raises:
            DatabaseUnavailable: nothing answers.
        """
        begun = time.perf_counter()
        async with (
            driver_errors_made_ours(),
            asyncio.timeout(3),
            self.pool.connection(timeout=2) as connection,
        ):
            await connection.execute("SELECT 1")
        return (time.perf_counter() - begun) * 1000

    async def _check(self, connection: _LimitedConnection) -> None:
        """Look whether the server has closed a connection since its last use; ask it only in doubt."""
        idle = select.poll()
        idle.register(connection.fileno(), select.POLLIN)
        # An idle connection has nothing to read but its end, or a notice.
        if time.monotonic() < self._in_doubt_until or idle.poll(0):
            connection.round_trip_s = _CHECK_S
            await connection.execute("SELECT 1")
        connection.round_trip_s = self._statement_s

    async def _configure(self, connection: Connection) -> None:
        # Transactions are begun by `tenant`, together with the tenant, in one round trip. Set here and not by an
        # argument of the pool: the queue's listener makes its own connection from the same arguments.
        await connection.set_autocommit(True)
        set_json_dumps(json_bytes, connection)
        set_json_loads(json_value, connection)
        if not self._pooled:
            await connection.execute(_SET_LIMITS)
        if self.vault is not None:
            self.vault.adapt(connection)

    @asynccontextmanager
    async def _direct_connection(self) -> AsyncIterator[Connection]:
        """Connect past the pooler, outside the pool."""
        async with await AsyncConnection.connect(
            self._direct_url, autocommit=True, connect_timeout=5
        ) as connection:
            yield connection

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Connection]:
        """Lend a connection whose session stays the same between transactions."""
        if not self._pooled:
            async with self._connection() as connection:
                yield connection
            return
        async with driver_errors_made_ours(), self._direct_connection() as connection:
            yield connection

    @asynccontextmanager
    async def _connection(self, round_trip_s: float | None = None) -> AsyncIterator[Connection]:
        """Lend a connection. It comes back with no transaction open, or it is given up."""
        async with driver_errors_made_ours():
            connection = await self.pool.getconn()
            if round_trip_s is not None:
                connection.round_trip_s = round_trip_s
            try:
                yield connection
            except BaseException as error:
                if isinstance(error, psycopg.errors._WaitTimeout):
                    self._in_doubt_until = time.monotonic() + _IN_DOUBT_S
                # A task that is cancelled in mid-query leaves the connection busy, or in the midst of a pipeline.
                status = connection.pgconn.transaction_status
                if connection.pgconn.pipeline_status != PipelineStatus.OFF:
                    await connection.close()
                elif status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                    await connection.rollback()
                elif status != TransactionStatus.IDLE:
                    await connection.close()
                raise
            finally:
                await self.pool.putconn(connection)


async def _despite_contention(transaction: Callable[[], Awaitable[Result]]) -> Result:
    """Run a transaction, and again if others were in the way, up to three times."""
    for tries_left in reversed(range(_TRIES)):
        try:
            return await transaction()
        except DatabaseContended:
            if not tries_left:
                raise
    raise AssertionError


async def _all_rows(cursor: AsyncCursor[Row]) -> list[Row]:
    """What a statement returned; others run between parts of it, as each row is made into an object."""
    if cursor.pgresult is None or cursor.pgresult.status != ExecStatus.TUPLES_OK:
        return []
    rows = await cursor.fetchmany(_ROWS_AT_ONCE)
    while len(rows) < cursor.rowcount:
        await asyncio.sleep(0)
        rows += await cursor.fetchmany(_ROWS_AT_ONCE)
    return rows


@lru_cache(maxsize=10_000)
def _begin_for(set_tenant: LiteralString, tenant_id: UUID) -> bytes:
    """Return BEGIN and the tenant setting as one text: without parameters it may hold two statements."""
    return b"BEGIN; " + sql.SQL(set_tenant.replace("%s", "{}")).format(sql.Literal(str(tenant_id))).as_bytes(None)


@asynccontextmanager
async def driver_errors_made_ours() -> AsyncIterator[None]:
    """Turn the driver's temporary faults into `DatabaseUnavailable` or `DatabaseContended`.

    Programming errors stay unchanged.
    """
    try:
        yield
    except psycopg.errors.DiskFull as error:
        raise DatabaseUnavailable("The database's disk is full; free some space, then try again.") from error
    except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable) as error:
        raise DatabaseContended from error
    except (*_TRANSIENT, TimeoutError) as error:
        raise DatabaseUnavailable from error
    except psycopg.DatabaseError as error:
        if error.sqlstate == _CLOSED:
            raise TenantElsewhere from error
        raise
