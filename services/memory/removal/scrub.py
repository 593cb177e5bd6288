"""Making erased bytes unreadable: PostgreSQL leaves a deleted row's bytes in its page until they are needed.

A plain VACUUM gives the space back and does not overwrite it, neither in a table nor in an index. VACUUM FULL
rewrites both with the living rows only, and drops the old files.
"""

import asyncio

import psycopg
from psycopg import sql

from services.errors import DatabaseUnavailable
from services.memory.removal.tables import TABLES


async def scrub(owner_url: str) -> None:
    """Rewrite the tables of users. Each is locked meanwhile.

    Raises:
        DatabaseUnavailable: nothing answers at the address.
    """
    await asyncio.to_thread(_scrub, owner_url)


def _scrub(owner_url: str) -> None:
    try:
        with psycopg.connect(owner_url, autocommit=True, connect_timeout=10) as connection:
            for table in TABLES:
                connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable("The tables cannot be rewritten; try again.") from error
