"""After a restore: copies of core memory that are outdated, and users whose words nobody can open."""

from typing import TYPE_CHECKING, LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.encryption.data_key import UNREADABLE
from services.platform.postgres import Database

if TYPE_CHECKING:
    from services.memory.cache import CoreMemoryCache  # which imports Redis

_OWNERS: LiteralString = """
SELECT user_id, array_agg(expert_id) FROM core_memory_generations WHERE tenant_id = %(tenant_id)s GROUP BY user_id
"""


async def forget_core_memory(database: Database, cache: "CoreMemoryCache") -> None:
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


# One message of each user tells: a key is renewed for all that was sealed with it.
_SAID: LiteralString = """
SELECT DISTINCT ON (u.external_id) u.external_id, m.content
FROM users u JOIN conversations c ON c.user_id = u.id JOIN messages m ON m.conversation_id = c.id
WHERE u.tenant_id = %(tenant_id)s AND m.content <> '' ORDER BY u.external_id, m.created_at DESC
"""


async def users_without_their_words(database: Database) -> list[str]:
    """Return the names of the users of all tenants whose messages cannot be opened; none without encryption."""
    lost: list[str] = []
    for tenant_id in await database.tenants() if database.vault is not None else ():
        said = await database.fetch(tenant_id, _SAID, {"tenant_id": tenant_id}, tuple_row)
        lost += [user for user, content in said if content == UNREADABLE]
    return lost
