"""Documents as values: as it is converted, cut into chunks, and stored."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from services.errors import InvalidInput

IngestStatus = Literal["created", "replaced", "unchanged"]

MOST_CHARACTERS = 4_000_000
"""Characters of one document: some 2,500 pages."""


class BadDocument(InvalidInput):
    """A document that cannot be read, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__("document", reason)


class UnknownKind(BadDocument):
    """A document of a kind that is not read here."""


@dataclass(frozen=True)
class Part:
    """A stretch of a document's text: a page, or all of it."""

    text: str
    page: int | None = None
    """From 1; None where there are no pages."""


@dataclass(frozen=True)
class Converted:
    """A document as text."""

    title: str
    """Empty where it says none."""
    parts: tuple[Part, ...]
    headings: bool
    """Whether the text is Markdown, whose headings say what it is about."""


@dataclass(frozen=True)
class Chunk:
    """A piece of a document that is found and shown as one passage."""

    heading: str
    """The headings above it, the outermost first, joined by ` > `; may be empty."""
    page: int | None
    text: str


@dataclass(frozen=True)
class StoredDocument:
    """A document of a knowledge base."""

    id: UUID
    source: str
    """Its name in the base."""
    title: str
    media_type: str
    checksum: str
    """SHA-256 of its bytes, in hexadecimal digits."""
    byte_size: int
    chunk_count: int
    waiting: int
    """Chunks that are not in the index yet."""
    ingested_at: datetime


@dataclass(frozen=True)
class Ingested:
    """Outcome of a document that was given."""

    status: IngestStatus
    document: StoredDocument


@dataclass(frozen=True)
class DocumentStatus:
    """How far a document is."""

    status: Literal["waiting", "converting", "indexing", "ready"]
    """`indexing`: it is found by its words, and by its meaning when all of it is indexed."""
    position: int
    """In the queue of those that wait to be converted, from 1; else 0."""
    document: StoredDocument | None
    """As it is stored; None where it is new."""
