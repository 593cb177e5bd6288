"""Add, list and remove documents of knowledge bases, and those that a user gives in one conversation."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import LiteralString, Self
from uuid import UUID

from psycopg.rows import tuple_row
from uuid_utils.compat import uuid7

from services.errors import Conflict, InvalidInput, NotFound
from services.jobs.queue import JobQueue
from services.knowledge.chunking import HEADING_SEPARATOR, chunks_of, title_of
from services.knowledge.conversion import ConversionLimits, Converter
from services.knowledge.document import BadDocument, Chunk, Converted, Ingested, StoredDocument
from services.knowledge.document_store import DocumentStore
from services.knowledge.encodings import MEDIA_TYPES, kind_of
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.search.collection import terms_that_fit
from services.text.tokenizer import terms

MAX_SOURCE_CHARACTERS = 500


class Documents(DocumentStore):
    """Adds documents to knowledge bases and removes them."""

    def __init__(self, database: Database, jobs: JobQueue, converter: Converter, *, most_bytes: int) -> None:
        """Take the size limit of a document."""
        super().__init__(database, jobs)
        self._converter = converter
        self.most_bytes = most_bytes

    @classmethod
    def of(cls, settings: Settings, database: Database, jobs: JobQueue) -> Self:
        """From the settings."""
        most_bytes = settings.knowledge_max_document_mb * 1024 * 1024
        converter = Converter(ConversionLimits.of(settings))
        return cls(database, jobs, converter, most_bytes=most_bytes)

    async def ingest(
        self, tenant_id: UUID, base_id: UUID, source: str, data: bytes, *, content_type: str = ""
    ) -> Ingested:
        """Add a document; one with the same bytes stays as it is.

        Args:
            source: the document's name; another one of this name is replaced.
            content_type: as in HTTP; without it, the name's ending says what it is.

        Raises:
            InvalidInput: the name is none.
            BadDocument: it cannot be read; says why, and what was there before stays.
            NotFound: there is no such base.
        """
        _check_source(source)
        if len(data) > self.most_bytes:
            raise BadDocument(f"has {len(data):,} bytes; at most {self.most_bytes:,} are accepted")
        kind = kind_of(source, content_type, data)
        media_type = MEDIA_TYPES[kind]
        checksum = hashlib.sha256(data).hexdigest()
        before = await self.of_source(tenant_id, base_id, source)
        if before and (before.checksum, before.media_type) == (checksum, media_type):
            return Ingested("unchanged", before)
        converted = await self._converter.convert(kind, data)
        title, chunks = await asyncio.to_thread(_with_terms, converted, source)
        if not chunks:
            raise BadDocument("holds no text")
        document = {
            "source": source,
            "title": title,
            "media_type": media_type,
            "checksum": checksum,
            "byte_size": len(data),
        }
        await self.put(tenant_id, base_id, document, chunks)
        stored = await self.of_source(tenant_id, base_id, source)
        if stored is None:
            raise NotFound("The document was removed at this moment.")
        return Ingested("replaced" if before else "created", stored)


def text_to_index(title: str, heading: str, text: str) -> str:
    """Text that is embedded and split into terms: a chunk with its headings."""
    above = heading if heading.startswith(title) else HEADING_SEPARATOR.join(filter(None, (title, heading)))
    return f"{above}\n{text}"


def _with_terms(converted: Converted, source: str) -> tuple[str, list[tuple[Chunk, str]]]:
    title = title_of(converted, source)
    return title, [
        (chunk, terms_that_fit(terms(text_to_index(title, chunk.heading, chunk.text))))
        for chunk in chunks_of(converted)
    ]


def _check_source(source: str) -> None:
    if not source.strip() or len(source) > MAX_SOURCE_CHARACTERS:
        raise InvalidInput("source", f"is not 1 to {MAX_SOURCE_CHARACTERS} characters")
    if any(not character.isprintable() for character in source):
        raise InvalidInput("source", "holds a character that cannot be shown")


MOST_DOCUMENTS = 50
"""Of one conversation."""

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

    The methods raise DatabaseUnavailable if the database does not answer.
    """

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
        """Remove a document.

        Raises:
            NotFound: the conversation has no such document.
        """
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
