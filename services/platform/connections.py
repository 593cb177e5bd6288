"""PostgreSQL connections: a pool with time limits for round trips, sessions that last, and the driver's errors."""

import asyncio
import select
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import wraps
from random import getrandbits, random
from typing import Any, LiteralString, ParamSpec, TypeVar

import psycopg
import psycopg_pool
from psycopg import AsyncConnection, sql
from psycopg.abc import PQGen
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_dumps, set_json_loads

from services.encryption.marks import json_bytes, json_value
from services.errors import BrokenReference, DatabaseContended, DatabaseUnavailable
from services.platform.prepared_statements import PreparedStatements

Connection = AsyncConnection[TupleRow]
Returned = TypeVar("Returned")

_POOL_SIZE = 20
WAIT_FOR_CONNECTION_S = 5.0
STATEMENT_S = 15.0
"""Maximum seconds for one round trip of a turn, measured here: a hanging server ignores its own time-outs."""
_CHECK_S = 2.0
_IN_DOUBT_S = 30.0
"""Seconds after an overlong round trip in which each connection is checked before it is lent."""

LIMITS = {
    # A process that is paused during a transaction must not block the others for long.
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "5s",
    # An abandoned statement ends soon after its connection.
    "client_connection_check_interval": "2s",
}
_SET_LIMITS = "; ".join(f"SET {name} = '{limit}'" for name, limit in LIMITS.items())

_TRY_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_LOCK = "SELECT pg_advisory_lock(hashtextextended(%s, 0)) IS NOT NULL"
_UNLOCK = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
_TRY_SHARED = "SELECT pg_try_advisory_lock_shared(hashtextextended(%s, 0))"
_LOCK_SHARED = "SELECT pg_advisory_lock_shared(hashtextextended(%s, 0)) IS NOT NULL"
_UNLOCK_SHARED = "SELECT pg_advisory_unlock_shared(hashtextextended(%s, 0))"

_STILL_THERE_S = 30.0
"""Seconds between two checks of a connection that only listens."""


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_TRIES = 3
"""Maximum attempts at a transaction while others hold locks that it needs."""
_PAUSE_S = 0.1
"""Maximum seconds between the attempts."""

_TRANSIENT = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg_pool.PoolTimeout,
    psycopg_pool.PoolClosed,
)


@asynccontextmanager
async def driver_errors_made_ours() -> AsyncIterator[None]:
    """Turn the driver's temporary faults into `DatabaseUnavailable` or `DatabaseContended`. A row that refers
    to a missing row is `BrokenReference`. Programming errors stay as they are."""
    try:
        yield
    except psycopg.errors.DiskFull as error:
        raise DatabaseUnavailable("The database's disk is full; free some space, then try again.") from error
    except psycopg.errors.ForeignKeyViolation as error:
        raise BrokenReference(error.diag.constraint_name) from error
    except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable) as error:
        raise DatabaseContended from error
    except (*_TRANSIENT, TimeoutError) as error:
        raise DatabaseUnavailable from error


async def despite_contention(transaction: Callable[[], Awaitable[Result]]) -> Result:
    """Run a transaction, and run it again if others were in the way, up to three times."""
    for tries_left in reversed(range(_TRIES)):
        try:
            return await transaction()
        except DatabaseContended:
            if not tries_left:
                raise
            # Of several that collided, each comes back at another moment.
            await asyncio.sleep(random() * _PAUSE_S)  # noqa: S311 — no secret
    raise AssertionError


def again_if_contended(
    method: Callable[Arguments, Awaitable[Result]],
) -> Callable[Arguments, Coroutine[Any, Any, Result]]:
    """Make a method run again, up to three times, if others were in the way; it changes data in one
    transaction."""

    @wraps(method)
    async def repeated(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return await despite_contention(lambda: method(*args, **kwargs))

    return repeated


class _LimitedConnection(AsyncConnection[TupleRow]):
    """A connection whose round trips have a limit while it is lent. The driver would wake ten times a second to
    look for signals, which reach the event loop anyway."""

    round_trip_s: float | None = None
    prepared: PreparedStatements
    through_pooler = False

    async def wait(
        self,
        gen: PQGen[Returned],
        interval: float = _STILL_THERE_S,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Returned:
        # Not `asyncio.timeout`: a cancelled query asks the server to end it, and waits for the answer.
        return await super().wait(gen, interval, self.round_trip_s if timeout is None else timeout)

    async def _try_cancel(self, *, timeout: float = 5.0) -> None:  # noqa: ASYNC109
        # PgBouncer 1.18 to 1.20 may crash when a query is cancelled. The connection is closed instead, which ends
        # the query too.
        if self.through_pooler:
            self.pgconn.finish()
        else:
            await super()._try_cancel(timeout=timeout)


async def _locked(connection: Connection, statement: LiteralString, name: str) -> bool:
    """Take a lock by a statement; waiting is repeated at each time limit of the server."""
    while True:
        try:
            row: Any = await (await connection.execute(statement, [name])).fetchone()
        except psycopg.errors.LockNotAvailable:
            continue
        return bool(row[0])


class Connections:
    """Lends connections, each for one transaction or as a session."""

    def __init__(
        self,
        url: str,
        *,
        direct_url: str | None = None,
        statement_s: float = STATEMENT_S,
        adapt: Callable[[Connection], None] | None = None,
    ) -> None:
        """Take the addresses, as `Database` describes them, and the function that prepares each new connection."""
        self._pooled = direct_url is not None
        self._direct_url = direct_url or url
        self._statement_s = statement_s
        self._adapt = adapt
        self.process = getrandbits(62)
        """Number of this process, which holds a lock on it while it listens: so others see that it lives."""
        self._in_doubt_until = 0.0
        self.pool: psycopg_pool.AsyncConnectionPool[_LimitedConnection] = psycopg_pool.AsyncConnectionPool(
            url,
            connection_class=_LimitedConnection,
            min_size=2,
            max_size=_POOL_SIZE,
            timeout=WAIT_FOR_CONNECTION_S,
            # The pool doubles its pauses between tries, beginning with a second; after it gives up, the next
            # request begins with short ones again.
            reconnect_timeout=2,
            open=False,
            configure=self._configure,
            check=self._check,
            kwargs={"connect_timeout": 5} | ({"prepare_threshold": None} if self._pooled else {}),
        )

    @asynccontextmanager
    async def only_one(self, name: str, *, wait: bool = False, part_of: str | None = None) -> AsyncIterator[bool]:
        """Hold a lock by name across all processes; yield whether it was obtained.

        The lock is lost if the database connection breaks, so the work must tolerate a second holder.

        Args:
            name: Name of the work.
            wait: Whether to wait for the current holder.
            part_of: Name of the whole work; its holder and the holders of its parts wait for each other.
        """
        async with self._session() as connection:
            try:
                alone = part_of is None or await _locked(
                    connection, _LOCK_SHARED if wait else _TRY_SHARED, part_of
                )
                whole = alone and part_of is not None
                alone = alone and await _locked(connection, _LOCK if wait else _TRY_LOCK, name)
            except BaseException:  # the lock may already be held, and would stay so with the session
                await connection.close()
                raise
            try:
                yield alone
            finally:
                if alone:
                    await connection.execute(_UNLOCK, [name])
                if whole:
                    await connection.execute(_UNLOCK_SHARED, [part_of])

    async def notifications(self, channel: str) -> AsyncGenerator[str, None]:
        """Yield notifications on a channel, over a separate connection; first an empty text once it listens.

        While it listens, it holds the lock on the process's number. The lock is shared, because the server may not
        yet know that an earlier connection is gone.
        """
        async with driver_errors_made_ours(), self._direct_connection() as connection:
            await connection.execute("SELECT pg_advisory_lock_shared(%s)", [self.process])
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            yield ""
            while True:
                async for notification in connection.notifies(timeout=_STILL_THERE_S):
                    yield notification.payload
                async with asyncio.timeout(_CHECK_S):
                    await connection.execute("SELECT 1")

    async def ping(self) -> float:
        """Return the milliseconds that a trivial query takes."""
        begun = time.perf_counter()
        async with driver_errors_made_ours(), asyncio.timeout(3), self.pool.connection(timeout=2) as connection:
            await connection.execute("SELECT 1")
        return (time.perf_counter() - begun) * 1000

    def _at_once(self, connection: Connection) -> AbstractAsyncContextManager[Any]:
        """Send statements in one round trip, or one by one through a pooler. PgBouncer before 1.21 sometimes
        leaves a pipeline unanswered."""
        return nullcontext() if self._pooled else connection.pipeline()

    async def _check(self, connection: _LimitedConnection) -> None:
        """Check whether the server has closed a connection since its last use; ask the server only in doubt."""
        idle = select.poll()
        idle.register(connection.fileno(), select.POLLIN)
        # The only data that an idle connection can receive are its end, or a notice.
        if time.monotonic() < self._in_doubt_until or idle.poll(0):
            connection.round_trip_s = _CHECK_S
            await connection.execute("SELECT 1")
        connection.round_trip_s = self._statement_s

    async def _configure(self, connection: _LimitedConnection) -> None:
        # `tenant` begins transactions, together with the tenant, in one round trip. Set here and not as an
        # argument of the pool, because the queue's listener makes its own connection from the same arguments.
        await connection.set_autocommit(True)
        connection.through_pooler = self._pooled
        set_json_dumps(json_bytes, connection)
        set_json_loads(json_value, connection)
        if not self._pooled:
            await connection.execute(_SET_LIMITS)
        if self._adapt is not None:
            self._adapt(connection)
        connection.prepared = PreparedStatements(connection)

    @asynccontextmanager
    async def _direct_connection(self) -> AsyncIterator[Connection]:
        """Connect directly, past the pooler and outside the pool."""
        async with await _LimitedConnection.connect(
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

    async def _lent(self) -> _LimitedConnection:
        """Take a connection out of the pool.

        Before Python 3.12 `asyncio.wait_for`, with which the pool waits, loses a cancellation that arrives
        together with the connection: nobody would then wait for what this task continues with.
        """
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        # The connection that was used last, because its server process has its plans and its data in the
        # processor's cache. The pool itself lends the one unused for longest, so that single turns would go
        # through all of them.
        self.pool._pool.rotate()
        connection = await self.pool.getconn()
        if task and task.cancelling() > before:
            await self.pool.putconn(connection)
            raise asyncio.CancelledError
        return connection

    @asynccontextmanager
    async def _connection(self, round_trip_s: float | None = None) -> AsyncIterator[_LimitedConnection]:
        """Lend a connection. It returns with no transaction open, or it is given up."""
        async with driver_errors_made_ours():
            connection = await self._lent()
            if round_trip_s is not None:
                connection.round_trip_s = round_trip_s
            try:
                yield connection
            except BaseException as error:
                if isinstance(error, psycopg.errors._WaitTimeout):
                    self._in_doubt_until = time.monotonic() + _IN_DOUBT_S
                # A task that is cancelled during a query leaves the connection busy, or within a pipeline.
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
