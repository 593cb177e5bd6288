"""Time that passes for one tenant: everything that is stored of its users becomes older."""

from datetime import timedelta
from uuid import UUID

import psycopg
from psycopg import sql

from services.memory.removal.tables import TABLES

_COLUMNS = """
SELECT table_name, column_name, data_type FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = ANY(%s)
  AND data_type IN ('timestamp with time zone', 'date') AND is_generated = 'NEVER'
"""
_FAR = timedelta(days=200_000)


async def let_pass(superuser_url: str, tenant_id: UUID, time: timedelta) -> None:
    """Move every stored time of the tenant's users back by this much, and index the episodes again. Dates of
    days move by whole days."""
    async with await psycopg.AsyncConnection.connect(superuser_url) as connection:
        # Triggers that note late messages would take all of them for late.
        await connection.execute("SET session_replication_role = replica")
        rows = await (await connection.execute(_COLUMNS, [list(TABLES)])).fetchall()
        for table, column, kind in rows:
            # No two days of a user may be the same for a moment: all go far away, then back.
            steps = [-time] if kind != "date" else [_FAR, -_FAR - timedelta(days=time.days)]
            for step in steps:
                await connection.execute(_earlier(table, column, kind), [step, tenant_id])
        await connection.execute("UPDATE episodes SET indexed_at = NULL WHERE tenant_id = %s", [tenant_id])


def _earlier(table: str, column: str, kind: str) -> sql.Composed:
    sum_of_both = sql.SQL("({column} + %s)::date" if kind == "date" else "{column} + %s")
    return sql.SQL("UPDATE {table} SET {column} = {sum} WHERE tenant_id = %s").format(
        table=sql.Identifier(table),
        column=sql.Identifier(column),
        sum=sum_of_both.format(column=sql.Identifier(column)),
    )
