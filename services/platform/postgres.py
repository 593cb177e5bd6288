"""PostgreSQL: the pool, a transaction that sees one tenant only, and driver errors made ours."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any
from uuid import UUID

import psycopg
import psycopg_pool
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from services.errors import ConfigurationError, DatabaseUnavailable

Connection = AsyncConnection[TupleRow]

_POOL_SIZE = 20
_WAIT_FOR_CONNECTION_S = 10.0
_BEGIN_TRIES = 3

_TRANSIENT = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg_pool.PoolTimeout,
    psycopg_pool.PoolClosed,
)

# Row-level security reads the setting; `true` makes it end with the transaction.
_BEGIN = sql.SQL("BEGIN; SELECT set_config('anamnesis.tenant_id', {tenant}, true)")


@lru_cache(maxsize=10_000)
def _begin_for(tenant_id: UUID) -> bytes:
    return _BEGIN.format(tenant=sql.Literal(str(tenant_id))).as_bytes(None)


_ROLE_CHECK = """
SELECT r.rolname, r.rolsuper OR r.rolbypassrls,
       EXISTS (SELECT 1 FROM pg_class c WHERE c.relname = 'messages' AND pg_has_role(r.oid, c.relowner, 'USAGE'))
FROM pg_roles r WHERE r.rolname = current_user
"""


class Database:
    """The service's connections. It connects as a role that owns nothing and bypasses nothing."""

    def __init__(self, url: str) -> None:
        self.pool: psycopg_pool.AsyncConnectionPool[Connection] = psycopg_pool.AsyncConnectionPool(
            url,
            connection_class=AsyncConnection[TupleRow],
            min_size=2,
            max_size=_POOL_SIZE,
            timeout=_WAIT_FOR_CONNECTION_S,
            open=False,
            configure=_begin_by_hand,
            kwargs={"connect_timeout": 5},
        )

    async def open(self) -> None:
        """Connect.

        Raises:
            ConfigurationError: the role could see past row-level security, or the tables are missing.
            DatabaseUnavailable: nothing answers.
        """
        async with driver_errors_made_ours():
            await self.pool.open(wait=True, timeout=_WAIT_FOR_CONNECTION_S)
            async with self.pool.connection() as connection:
                await _check_role(connection)

    async def close(self) -> None:
        """Close every connection."""
        await self.pool.close(timeout=2)

    @asynccontextmanager
    async def tenant(self, tenant_id: UUID) -> AsyncIterator[Connection]:
        """Open a transaction in which only the tenant's rows exist; commit at the end.

        Raises:
            DatabaseUnavailable: the database does not answer, or broke the connection.
        """
        async with driver_errors_made_ours():
            connection = await self._begin(tenant_id)
            try:
                yield connection
                await connection.execute("COMMIT")
            except BaseException:
                # A task that is cancelled in mid-query leaves the connection busy: then it is given up.
                if connection.pgconn.transaction_status in (
                    psycopg.pq.TransactionStatus.INTRANS,
                    psycopg.pq.TransactionStatus.INERROR,
                ):
                    await connection.rollback()
                else:
                    await connection.close()
                raise
            finally:
                await self.pool.putconn(connection)

    async def tenants(self) -> list[UUID]:
        """Ids of all tenants."""
        async with driver_errors_made_ours(), self.pool.connection() as connection:
            rows = await (await connection.execute("SELECT id FROM tenants ORDER BY id")).fetchall()
        return [row[0] for row in rows]

    async def ping(self) -> float:
        """Milliseconds that a trivial query takes.

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

    async def _begin(self, tenant_id: UUID) -> Connection:
        """Take a connection that works: the server may have closed some of the pool's since their last use."""
        begin = _begin_for(tenant_id)
        for attempt in range(1, _BEGIN_TRIES + 1):
            connection = await self.pool.getconn()
            try:
                await connection.execute(begin, prepare=False)
            except _TRANSIENT:
                await self.pool.putconn(connection)
                if attempt == _BEGIN_TRIES:
                    raise
            except BaseException:
                await connection.close()
                await self.pool.putconn(connection)
                raise
            else:
                return connection
        raise AssertionError("unreachable")


@asynccontextmanager
async def driver_errors_made_ours() -> AsyncIterator[None]:
    """Turn the driver's passing faults into `DatabaseUnavailable`; leave our own mistakes as they are."""
    try:
        yield
    except (*_TRANSIENT, TimeoutError) as error:
        raise DatabaseUnavailable from error


async def _begin_by_hand(connection: Connection) -> None:
    # Transactions are begun by `tenant`, together with the tenant, in one round trip. Set here and not by an
    # argument of the pool: the queue's listener makes its own connection from the same arguments.
    await connection.set_autocommit(True)


async def _check_role(connection: Connection) -> None:
    row: Any = await (await connection.execute(_ROLE_CHECK)).fetchone()
    role, bypasses, owns = row
    if bypasses or owns:
        why = "bypasses row-level security" if bypasses else "owns the tables"
        raise ConfigurationError(
            f"ANAMNESIS_DATABASE_URL connects as {role}, which {why}. Give the service a role of its own "
            f"(CREATE ROLE anamnesis LOGIN PASSWORD '…') and the owner in ANAMNESIS_MIGRATION_DATABASE_URL, "
            f"then run: anamnesis migrate"
        )
