"""Documents of knowledge bases and their chunks: adding, listing and removing them."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any, LiteralString, Self
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import InvalidInput, NotFound
from services.jobs.queue import JobQueue
from services.knowledge.bases import only
from services.knowledge.chunking import HEADING_SEPARATOR, chunks_of, title_of
from services.knowledge.conversion import ConversionLimits, Converter
from services.knowledge.document import BadDocument, Chunk, Converted, Ingested, StoredDocument
from services.knowledge.encodings import MEDIA_TYPES, kind_of
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import Database
from services.platform.settings import Settings
from services.search.collection import terms_that_fit
from services.search.vector_index import FORGET_PASSAGES
from services.text.tokenizer import terms

MAX_SOURCE_CHARACTERS = 500
_CHUNKS_AT_ONCE = 500

_BASE = """
SELECT id FROM knowledge_bases WHERE tenant_id = %(tenant_id)s AND prefix = %(prefix)s AND user_id IS NULL
"""

_DOCUMENTS: LiteralString = """
SELECT d.id, d.source, d.title, d.media_type, encode(d.checksum, 'hex') AS checksum, d.byte_size, d.chunk_count,
       d.ingested_at, d.left_out,
       (SELECT count(*) FROM kb_chunks c WHERE c.tenant_id = %(tenant_id)s AND c.document_id = d.id
        AND c.indexed_at IS NULL) AS waiting
FROM kb_documents d
WHERE d.tenant_id = %(tenant_id)s AND d.base_id = %(base_id)s
"""

_PAGE = f"""{_DOCUMENTS}
AND (%(after)s::text IS NULL OR d.source > %(after)s)
ORDER BY d.source LIMIT %(limit)s
"""

_OF_SOURCE = f"{_DOCUMENTS} AND d.source = %(source)s"

_SOURCES = "SELECT source FROM kb_documents WHERE tenant_id = %(tenant_id)s AND base_id = %(base_id)s"

# It waits for a removal of the base, after which the base is gone; changes of its documents wait for each other.
_LOCK_BASE = """
SELECT FROM knowledge_bases WHERE tenant_id = %(tenant_id)s AND id = %(base_id)s FOR NO KEY UPDATE
"""

_PUT = """
INSERT INTO kb_documents (id, tenant_id, base_id, source, title, media_type, checksum, byte_size, chunk_count,
                          left_out)
VALUES (%(id)s, %(tenant_id)s, %(base_id)s, %(source)s, %(title)s, %(media_type)s, decode(%(checksum)s, 'hex'),
        %(byte_size)s, %(chunk_count)s, %(left_out)s)
ON CONFLICT (base_id, source, tenant_id) DO UPDATE SET
    title = EXCLUDED.title, media_type = EXCLUDED.media_type, checksum = EXCLUDED.checksum,
    byte_size = EXCLUDED.byte_size, chunk_count = EXCLUDED.chunk_count, version = kb_documents.version + 1,
    left_out = EXCLUDED.left_out, ingested_at = clock_timestamp()
RETURNING id, version
"""

_REMOVE_CHUNKS = "DELETE FROM kb_chunks WHERE tenant_id = %(tenant_id)s AND document_id = %(document_id)s"

_ADD_CHUNKS = """
INSERT INTO kb_chunks (id, tenant_id, base_id, document_id, version, position, heading, page, text, terms)
SELECT c.id, %(tenant_id)s, %(base_id)s, %(document_id)s, %(version)s, c.position, c.heading, c.page, c.text,
       c.terms
FROM unnest(%(ids)s::uuid[], %(positions)s::int[], %(headings)s::text[], %(pages)s::int[], %(texts)s::text[],
            %(terms)s::text[]) AS c(id, position, heading, page, text, terms)
"""

_DELETE = """
DELETE FROM kb_documents
WHERE tenant_id = %(tenant_id)s AND base_id = %(base_id)s AND id = %(document_id)s
"""


class Documents:
    """Adds documents to knowledge bases and removes them, with the jobs of the index in the same transaction."""

    def __init__(self, database: Database, jobs: JobQueue, converter: Converter, *, most_bytes: int) -> None:
        """Take the size limit of a document."""
        self._database = database
        self._jobs = jobs
        self._converter = converter
        self.most_bytes = most_bytes

    @classmethod
    def of(cls, settings: Settings, database: Database, jobs: JobQueue) -> Self:
        """Return the service with the limits of the settings."""
        most_bytes = settings.knowledge_max_document_mb * 1024 * 1024
        converter = Converter(ConversionLimits.of(settings))
        return cls(database, jobs, converter, most_bytes=most_bytes)

    async def ingest(
        self, tenant_id: UUID, base_id: UUID, source: str, data: bytes, *, content_type: str = ""
    ) -> Ingested:
        """Add a document; one with the same bytes stays if it already says what its text leaves out.

        Args:
            source: Name of the document; one with the same name is replaced.
            content_type: Content type as in HTTP; if empty, the ending of the name counts.

        Raises:
            InvalidInput: The name is not valid.
            BadDocument: It cannot be read; what was there before stays.
            NotFound: There is no such base.
        """
        _check_source(source)
        if len(data) > self.most_bytes:
            raise BadDocument(f"has {len(data):,} bytes; at most {self.most_bytes:,} are accepted")
        kind = kind_of(source, content_type, data)
        media_type = MEDIA_TYPES[kind]
        checksum = hashlib.sha256(data).hexdigest()
        before = await self.of_source(tenant_id, base_id, source)
        same = before and (before.checksum, before.media_type) == (checksum, media_type)
        if before and same and before.left_out is not None:
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
            "left_out": list(converted.left_out),
        }
        await self.put(tenant_id, base_id, document, chunks)
        stored = await self.of_source(tenant_id, base_id, source)
        if stored is None:
            raise NotFound("The document was removed at this moment.")
        return Ingested("replaced" if before else "created", stored)

    async def base_id(self, tenant_id: UUID, prefix: str) -> UUID:
        """Return the id of a base. Raises `NotFound` if the tenant has none of this prefix."""
        values = {"tenant_id": tenant_id, "prefix": prefix}
        row = only(prefix, await self._database.fetch(tenant_id, _BASE, values, tuple_row))
        base_id: UUID = row[0]
        return base_id

    async def page(
        self, tenant_id: UUID, base_id: UUID, *, after: str | None, limit: int
    ) -> Sequence[StoredDocument]:
        """Return documents by source, after the source `after`."""
        values = {"tenant_id": tenant_id, "base_id": base_id, "after": after, "limit": limit}
        return await self._database.fetch(tenant_id, _PAGE, values, class_row(StoredDocument))

    async def of_source(self, tenant_id: UUID, base_id: UUID, source: str) -> StoredDocument | None:
        """Return the document of this name."""
        values = {"tenant_id": tenant_id, "base_id": base_id, "source": source}
        found = await self._database.fetch(tenant_id, _OF_SOURCE, values, class_row(StoredDocument))
        return found[0] if found else None

    async def sources(self, tenant_id: UUID, base_id: UUID) -> set[str]:
        """Return the names of all documents."""
        values = {"tenant_id": tenant_id, "base_id": base_id}
        return {row[0] for row in await self._database.fetch(tenant_id, _SOURCES, values, tuple_row)}

    @again_if_contended
    async def put(
        self, tenant_id: UUID, base_id: UUID, document: dict[str, Any], chunks: Sequence[tuple[Chunk, str]]
    ) -> None:
        """Store a document with its chunks and their terms, in place of the one of the same source. A search
        sees either the old chunks or the new ones. Raises `NotFound` if the base was removed meanwhile."""
        values = {"tenant_id": tenant_id, "base_id": base_id, "id": uuid7(), "chunk_count": len(chunks)}
        async with self._database.tenant(tenant_id) as connection:
            only(base_id, await (await connection.execute(_LOCK_BASE, values)).fetchall())
            row = await (await connection.execute(_PUT, {**values, **document})).fetchone()
            assert row is not None  # noqa: S101 — the statement returns one
            values |= {"document_id": row[0], "version": row[1]}
            if row[1] > 1:
                await connection.execute(_REMOVE_CHUNKS, values)
                await self._forget(connection, tenant_id, base_id, row[0])
            for start in range(0, len(chunks), _CHUNKS_AT_ONCE):
                part = chunks[start : start + _CHUNKS_AT_ONCE]
                await connection.execute(_ADD_CHUNKS, {**values, **_columns(start, part)})

    @again_if_contended
    async def delete(self, tenant_id: UUID, base_id: UUID, document_id: UUID) -> None:
        """Remove a document; a job removes its chunks from the index. Raises `NotFound` if the base has no
        document of this id."""
        values = {"tenant_id": tenant_id, "base_id": base_id, "document_id": document_id}
        async with self._database.tenant(tenant_id) as connection:
            # In the same order as `put`, so that the two cannot deadlock.
            await connection.execute(_LOCK_BASE, values)
            if not (await connection.execute(_DELETE, values)).rowcount:
                raise NotFound(f"There is no document {document_id} in the knowledge base.")
            await self._forget(connection, tenant_id, base_id, document_id)

    async def _forget(self, connection: Connection, tenant_id: UUID, base_id: UUID, document_id: UUID) -> None:
        await self._jobs.defer(
            connection, FORGET_PASSAGES, tenant_id=tenant_id, base_id=base_id, document_ids=[document_id]
        )


def text_to_index(title: str, heading: str, text: str) -> str:
    """Return the text that is embedded and split into terms: a chunk with its headings."""
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


def _columns(start: int, part: Sequence[tuple[Chunk, str]]) -> dict[str, Any]:
    return {
        "ids": [uuid7() for _ in part],
        "positions": list(range(start, start + len(part))),
        "headings": [chunk.heading for chunk, _ in part],
        "pages": [chunk.page for chunk, _ in part],
        "texts": [chunk.text for chunk, _ in part],
        "terms": [terms for _, terms in part],
    }
