"""Documents that a user adds to one conversation: they form a base that no other conversation searches."""

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from psycopg.rows import tuple_row
from uuid_utils.compat import uuid7

from services.errors import Conflict, NotFound
from services.knowledge.document import Ingested, StoredDocument
from services.knowledge.documents import Documents
from services.platform.postgres import Database

MOST_DOCUMENTS = 50
"""Maximum documents of one conversation."""

_FIND: LiteralString = """
SELECT b.id FROM knowledge_bases b JOIN users u ON u.id = b.user_id AND u.tenant_id = b.tenant_id
WHERE b.tenant_id = %(tenant_id)s AND u.external_id = %(user)s AND b.session_key = %(session)s
"""

_MAKE_BASE: LiteralString = """
INSERT INTO knowledge_bases (id, tenant_id, prefix, description, user_id, session_key)
SELECT %(id)s, %(tenant_id)s, %(prefix)s, '', u.id, %(session)s FROM users u
WHERE u.tenant_id = %(tenant_id)s AND u.external_id = %(user)s
ON CONFLICT (tenant_id, user_id, session_key) DO NOTHING
"""


class ConversationDocuments:
    """Adds documents to conversations, by the caller's names for the user and the session, and removes them.
    The methods raise DatabaseUnavailable if the database does not answer."""

    def __init__(self, database: Database, documents: Documents) -> None:
        self._database = database
        self._documents = documents

    async def list(self, tenant_id: UUID, user: str, session: str) -> Sequence[StoredDocument]:
        """The documents of a conversation, by name."""
        base_id = await self._base_id(tenant_id, user, session)
        if base_id is None:
            return []
        return await self._documents.page(tenant_id, base_id, after=None, limit=MOST_DOCUMENTS)

    async def add(
        self, tenant_id: UUID, user: str, session: str, source: str, data: bytes, *, content_type: str
    ) -> Ingested:
        """Add a document, also before the conversation's first message; one of the same name is replaced.

        Raises:
            NotFound: the tenant has no such user.
            Conflict: the conversation holds as many as it may, or users' words are encrypted.
            BadDocument: it cannot be read.
        """
        if self._database.vault is not None:
            raise Conflict("Documents of a conversation are not taken while users' words are encrypted.")
        if (base_id := await self._base_id(tenant_id, user, session)) is None:
            base_id = await self._make(tenant_id, user, session)
        known = await self._documents.sources(tenant_id, base_id)
        if source not in known and len(known) >= MOST_DOCUMENTS:
            raise Conflict(f"The conversation has {MOST_DOCUMENTS} documents already; remove one first.")
        return await self._documents.ingest(tenant_id, base_id, source, data, content_type=content_type)

    async def remove(self, tenant_id: UUID, user: str, session: str, document_id: UUID) -> None:
        """Remove a document. Raises `NotFound` if the conversation has no such document."""
        base_id = await self._base_id(tenant_id, user, session)
        if base_id is None:
            raise NotFound(f"There is no document {document_id}.")
        await self._documents.delete(tenant_id, base_id, document_id)

    async def _make(self, tenant_id: UUID, user: str, session: str) -> UUID:
        made = uuid7()
        values = {
            "tenant_id": tenant_id,
            "user": user,
            "session": session,
            "id": made,
            "prefix": f"chat-{made.hex}",
        }
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute(_MAKE_BASE, values)
        base_id = await self._base_id(tenant_id, user, session)
        if base_id is None:
            raise NotFound(f"There is no user {user!r}.")
        return base_id

    async def _base_id(self, tenant_id: UUID, user: str, session: str) -> UUID | None:
        values = {"tenant_id": tenant_id, "user": user, "session": session}
        found = await self._database.fetch(tenant_id, _FIND, values, tuple_row)
        return found[0][0] if found else None
