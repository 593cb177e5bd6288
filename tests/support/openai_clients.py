"""What tests of `/v1` look at, and what clients send."""

from typing import Any

from psycopg.rows import tuple_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT

_CONTENTS = """
SELECT role, content FROM messages WHERE tenant_id = %(tenant_id)s AND branch_id IS NULL
ORDER BY conversation_id, created_at, id
"""


async def contents(services: Services) -> list[tuple[str, str]]:
    """Role and text of every message that is stored and on no branch that was put aside."""
    rows: list[Any] = await services.database.fetch(
        DEFAULT_TENANT, _CONTENTS, {"tenant_id": DEFAULT_TENANT}, tuple_row
    )
    return [(row[0], row[1]) for row in rows]
