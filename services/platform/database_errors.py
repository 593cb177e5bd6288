"""Errors of PostgreSQL's driver as the service's own, and transactions that are tried again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from random import random
from typing import Any, ParamSpec, TypeVar

import psycopg
import psycopg_pool

from services.errors import BrokenReference, DatabaseContended, DatabaseUnavailable

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_TRIES = 3
"""Attempts at a transaction while others hold locks that it needs."""

_PAUSE_S = 0.1
"""At most as long is waited between them."""

_TRANSIENT = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg_pool.PoolTimeout,
    psycopg_pool.PoolClosed,
)


@asynccontextmanager
async def driver_errors_made_ours() -> AsyncIterator[None]:
    """Turn the driver's temporary faults into `DatabaseUnavailable` or `DatabaseContended`.

    A row that refers to one that is gone is `BrokenReference`. Programming errors stay unchanged.
    """
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
    """Run a transaction, and again if others were in the way, up to three times."""
    for tries_left in reversed(range(_TRIES)):
        try:
            return await transaction()
        except DatabaseContended:
            if not tries_left:
                raise
            # Of several that met, each comes back at another moment.
            await asyncio.sleep(random() * _PAUSE_S)  # noqa: S311 — no secret
    raise AssertionError


def again_if_contended(
    method: Callable[Arguments, Awaitable[Result]],
) -> Callable[Arguments, Coroutine[Any, Any, Result]]:
    """Make a method run again if others were in the way, up to three times; it changes data in one transaction."""

    @wraps(method)
    async def repeated(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return await despite_contention(lambda: method(*args, **kwargs))

    return repeated
