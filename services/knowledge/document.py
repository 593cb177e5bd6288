"""Values of a document: converted, cut into chunks, stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from services.errors import InvalidInput

IngestStatus = Literal["created", "replaced", "unchanged"]

MOST_CHARACTERS = 4_000_000
"""Maximum characters of one document: some 2,500 pages."""


class BadDocument(InvalidInput):
    """A document that cannot be read; the message gives the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__("document", reason)


class UnknownKind(BadDocument):
    """A document of an unsupported type."""

    code = "unsupported_media_type"


@dataclass(frozen=True)
class Part:
    """Part of a document's text: a page, or all of it."""

    text: str
    page: int | None = None
    """Page number from 1; None if there are no pages."""


@dataclass(frozen=True)
class Converted:
    """A document as text."""

    title: str
    """Title; empty if the document has none."""
    parts: tuple[Part, ...]
    headings: bool
    """Whether the text is Markdown, so that its headings are used."""
    left_out: tuple[str, ...] = ()
    """Parts of the document that are not in the text, each in a few words: `2 comments`."""


@dataclass(frozen=True)
class Chunk:
    """Part of a document that is found and shown as one passage."""

    heading: str
    """The headings above it, the outermost first, joined by ` > `; may be empty."""
    page: int | None
    text: str


@dataclass(frozen=True)
class StoredDocument:
    """A document of a knowledge base."""

    id: UUID
    source: str
    """Name of the document in the base."""
    title: str
    media_type: str
    checksum: str
    """SHA-256 of its bytes, in hexadecimal digits."""
    byte_size: int
    chunk_count: int
    waiting: int
    """Number of chunks that are not in the index yet."""
    ingested_at: datetime
    left_out: Sequence[str] | None
    """Parts of the document that are not in its text, each in a few words: `2 comments`; null for a document
    read before this was noted."""


@dataclass(frozen=True)
class Ingested:
    """Outcome of an upload."""

    status: IngestStatus
    document: StoredDocument
