"""Statements over the rows of a batch, in the caller's transaction.

They are not prepared: a plan from the beginning of an import, when the tables are small, would be the wrong one
at its end. The bounds in them are bare values where they are compared: under row-level security no other
comparison is looked up in an index.
"""

from collections.abc import Mapping
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import TupleRow

from services.platform.connections import Connection


class BatchStatements:
    """Runs statements for one tenant; each takes arrays, so that many rows are one round trip."""

    def __init__(self, connection: Connection, tenant_id: UUID) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    async def _rows(self, statement: LiteralString, values: Mapping[str, Any]) -> list[TupleRow]:
        """Rows that a statement returns; `tenant_id` is added to its values."""
        cursor = await self._connection.execute(statement, {**values, "tenant_id": self._tenant_id}, prepare=False)
        return await cursor.fetchall()

    async def _run(self, statement: LiteralString, values: Mapping[str, Any]) -> None:
        """The same for a statement without a result."""
        await self._connection.execute(statement, {**values, "tenant_id": self._tenant_id}, prepare=False)
