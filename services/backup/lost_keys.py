"""Users of a restored database whose words nobody can open: their keys were renewed after the backup was made."""

from typing import LiteralString

from psycopg.rows import tuple_row

from services.encryption.data_key import UNREADABLE
from services.platform.postgres import Database

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
