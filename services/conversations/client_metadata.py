"""Metadata that a client of `/v1/conversations` has attached to a conversation: texts by name."""

from collections.abc import Mapping
from uuid import UUID

from psycopg.rows import tuple_row

from services.encryption.marks import WordsJson
from services.platform.postgres import Database

_READ = "SELECT metadata FROM conversations WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s"
_REPLACE = """
UPDATE conversations SET metadata = %(metadata)s WHERE id = %(conversation_id)s AND tenant_id = %(tenant_id)s
RETURNING 1
"""


class ClientMetadata:
    """Reads and replaces metadata; callers check who may do so."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, tenant_id: UUID, conversation_id: UUID) -> dict[str, str]:
        """Return the metadata; empty if the conversation is gone."""
        values = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        rows = await self._database.fetch(tenant_id, _READ, values, tuple_row)
        return dict(rows[0][0]) if rows else {}

    async def replace(self, tenant_id: UUID, conversation_id: UUID, metadata: Mapping[str, str]) -> None:
        values = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "metadata": WordsJson(dict(metadata)),
        }
        await self._database.fetch(tenant_id, _REPLACE, values, tuple_row)
