"""Errors of PostgreSQL's driver as the service's own or as advice, and transactions that are tried again."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from random import random
from typing import Any, ParamSpec, TypeVar

import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict

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


_PATIENCE_S = 5
# Servers say it in the language of their `lc_messages`.
_PASSWORD = re.compile(r"password authentication failed|no password supplied|密码|口令", re.IGNORECASE)
_NO_DATABASE = re.compile(r"database \"?[^\"\n]{1,80}\"? does not exist|数据库.{0,80}不存在", re.IGNORECASE)
_NO_ROLE = re.compile(r"role \"?[^\"\n]{1,80}\"? does not exist|角色.{0,80}不存在", re.IGNORECASE)
_NOT_ADMITTED = re.compile(r"pg_hba\.conf", re.IGNORECASE)
_NO_HOST = re.compile(r"resolve host|translate host name|name or service not known|getaddrinfo", re.IGNORECASE)
_REFUSED = re.compile(r"connection refused|no such file or directory", re.IGNORECASE)
_SLOW = re.compile(r"timeout|timed out", re.IGNORECASE)


def why_away(url: str, setting: str) -> str | None:
    """Connect once more and return why that fails; None if it works. Blocks for at most five seconds."""
    try:
        psycopg.connect(url, connect_timeout=_PATIENCE_S).close()
    except psycopg.Error as error:
        return sentence(str(error), url, setting)
    return None


def sentence(said: str, url: str, setting: str) -> str:
    """What the driver said, as what the operator can do."""
    parts: dict[str, object] = {}
    with suppress(psycopg.Error):
        parts = dict(conninfo_to_dict(url))
    user, database = parts.get("user", ""), parts.get("dbname") or parts.get("user", "")
    where = f"{parts.get('host') or 'localhost'}:{parts.get('port') or 5432}"
    for pattern, what in (
        (_NO_DATABASE, f"there is no database {database!r} at {where}; create it, or name another one"),
        (_NO_ROLE, f"there is no role {user!r} at {where}; create it, or name another one"),
        (_PASSWORD, f"{where} refuses the password of the role {user!r}"),
        (_NOT_ADMITTED, f"{where} does not admit the role {user!r} from here (pg_hba.conf)"),
        (_NO_HOST, f"the host {parts.get('host')!r} is not known"),
        (_REFUSED, f"nothing listens at {where}; is PostgreSQL running there?"),
        (_SLOW, f"{where} does not answer within {_PATIENCE_S} seconds"),
    ):
        if pattern.search(said):
            return f"{setting}: {what}{'' if what.endswith('?') else '.'}"
    return f"{setting}: {said.strip().splitlines()[-1]}"
