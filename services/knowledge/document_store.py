"""Documents and their chunks in PostgreSQL."""

from collections.abc import Sequence
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import NotFound
from services.jobs.queue import JobQueue
from services.knowledge.bases import only
from services.knowledge.document import Chunk, StoredDocument
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import Database
from services.search.vector_index import FORGET_PASSAGES

_CHUNKS_AT_ONCE = 500

_BASE = """
SELECT id FROM knowledge_bases WHERE tenant_id = %(tenant_id)s AND prefix = %(prefix)s AND user_id IS NULL
"""

_DOCUMENTS: LiteralString = """
SELECT d.id, d.source, d.title, d.media_type, encode(d.checksum, 'hex') AS checksum, d.byte_size, d.chunk_count,
       d.ingested_at,
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

# Wait for a removal of the base, after which it is gone; changes of its documents wait for each other.
_LOCK_BASE = """
SELECT FROM knowledge_bases WHERE tenant_id = %(tenant_id)s AND id = %(base_id)s FOR NO KEY UPDATE
"""

_PUT = """
INSERT INTO kb_documents (id, tenant_id, base_id, source, title, media_type, checksum, byte_size, chunk_count)
VALUES (%(id)s, %(tenant_id)s, %(base_id)s, %(source)s, %(title)s, %(media_type)s, decode(%(checksum)s, 'hex'),
        %(byte_size)s, %(chunk_count)s)
ON CONFLICT (base_id, source, tenant_id) DO UPDATE SET
    title = EXCLUDED.title, media_type = EXCLUDED.media_type, checksum = EXCLUDED.checksum,
    byte_size = EXCLUDED.byte_size, chunk_count = EXCLUDED.chunk_count, version = kb_documents.version + 1,
    ingested_at = clock_timestamp()
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


class DocumentStore:
    """Reads and writes documents, and defers the index's jobs in the same transaction."""

    def __init__(self, database: Database, jobs: JobQueue) -> None:
        self._database = database
        self._jobs = jobs

    async def base_id(self, tenant_id: UUID, prefix: str) -> UUID:
        """Return the id of a base.

        Raises:
            NotFound: the tenant has none of this prefix.
        """
        values = {"tenant_id": tenant_id, "prefix": prefix}
        row = only(prefix, await self._database.fetch(tenant_id, _BASE, values, tuple_row))
        base_id: UUID = row[0]
        return base_id

    async def page(
        self, tenant_id: UUID, base_id: UUID, *, after: str | None, limit: int
    ) -> Sequence[StoredDocument]:
        """Documents in the order of their sources, after the source `after`."""
        values = {"tenant_id": tenant_id, "base_id": base_id, "after": after, "limit": limit}
        return await self._database.fetch(tenant_id, _PAGE, values, class_row(StoredDocument))

    async def of_source(self, tenant_id: UUID, base_id: UUID, source: str) -> StoredDocument | None:
        """The document of this name."""
        values = {"tenant_id": tenant_id, "base_id": base_id, "source": source}
        found = await self._database.fetch(tenant_id, _OF_SOURCE, values, class_row(StoredDocument))
        return found[0] if found else None

    async def sources(self, tenant_id: UUID, base_id: UUID) -> set[str]:
        """Names of all documents."""
        values = {"tenant_id": tenant_id, "base_id": base_id}
        return {row[0] for row in await self._database.fetch(tenant_id, _SOURCES, values, tuple_row)}

    @again_if_contended
    async def put(
        self, tenant_id: UUID, base_id: UUID, document: dict[str, Any], chunks: Sequence[tuple[Chunk, str]]
    ) -> None:
        """Store a document with its chunks and their terms, in place of the one of the same source.

        A search sees either the old chunks or the new ones.

        Raises:
            NotFound: the base was removed meanwhile.
        """
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
        """Remove a document; a job removes its chunks from the index.

        Raises:
            NotFound: the base has no document of this id.
        """
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


def _columns(start: int, part: Sequence[tuple[Chunk, str]]) -> dict[str, Any]:
    return {
        "ids": [uuid7() for _ in part],
        "positions": list(range(start, start + len(part))),
        "headings": [chunk.heading for chunk, _ in part],
        "pages": [chunk.page for chunk, _ in part],
        "texts": [chunk.text for chunk, _ in part],
        "terms": [terms for _, terms in part],
    }
