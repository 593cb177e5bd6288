"""Copies of core memory from the time before a restore, which must not be believed any more."""

from typing import LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.memory.cache import CoreMemoryCache
from services.platform.postgres import Database

_OWNERS: LiteralString = """
SELECT user_id, array_agg(expert_id) FROM core_memory_generations WHERE tenant_id = %(tenant_id)s GROUP BY user_id
"""


async def forget_core_memory(database: Database, cache: CoreMemoryCache) -> None:
    """Remove what Redis has of the core memory of every user: a newer generation than the restored one, perhaps.

    Raises:
        Unavailable: Redis does not answer.
    """
    for tenant_id in await database.tenants():
        owners: list[tuple[UUID, list[UUID]]] = await database.fetch(
            tenant_id, _OWNERS, {"tenant_id": tenant_id}, tuple_row
        )
        for user_id, expert_ids in owners:
            await cache.delete(user_id, expert_ids)
