"""Detect a document's type from its declared type, its name and its first bytes."""

from pathlib import PurePosixPath
from typing import Literal

from services.knowledge.document import BadDocument, UnknownKind

Kind = Literal["text", "markdown", "html", "pdf", "docx", "xlsx", "csv"]

MEDIA_TYPES: dict[Kind, str] = {
    "text": "text/plain",
    "markdown": "text/markdown",
    "html": "text/html",
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "csv": "text/csv",
}
SUFFIXES: dict[str, Kind] = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".xlsx": "xlsx",
    ".csv": "csv",
    ".tsv": "csv",
}
_KINDS: dict[str, Kind] = {
    **{media_type: kind for kind, media_type in MEDIA_TYPES.items()},
    "text/x-markdown": "markdown",
    "application/xhtml+xml": "html",
    "text/tab-separated-values": "csv",
    "application/csv": "csv",
}
_SAYS_NOTHING = frozenset({"", "application/octet-stream", "application/x-www-form-urlencoded"})
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_EXCEL = "application/vnd.ms-excel"
_ACCEPTED = "plain text, Markdown, HTML, PDF, DOCX, XLSX and CSV are read"


def kind_of(source: str, content_type: str, data: bytes) -> Kind:
    """Return the type of a document.

    Args:
        source: its name; the ending counts where the content type says nothing.
        content_type: as in HTTP; may be empty.
        data: its bytes.

    Raises:
        UnknownKind: it is of no kind that is read here.
        BadDocument: it is empty, or not what it is said to be.
    """
    if not data.strip():
        raise BadDocument("is empty")
    said = content_type.partition(";")[0].strip().lower()
    suffix = PurePosixPath(source).suffix.lower()
    kind = SUFFIXES.get(suffix) if said in _SAYS_NOTHING else _KINDS.get(said)
    if kind == "text" and (named := SUFFIXES.get(suffix)) in {"markdown", "csv"}:
        kind = named  # many programs send it so
    if said == _EXCEL and suffix == ".csv":
        kind = "csv"  # what browsers say where Excel is installed
    if kind is None:
        raise UnknownKind(f"is of an unknown kind ({said or suffix or 'no ending'}); {_ACCEPTED}")
    if kind == "pdf" and b"%PDF-" not in data[:1024]:
        raise BadDocument("is no PDF, although it is said to be one")
    if kind in {"docx", "xlsx"} and data.startswith(_OLD_OFFICE):
        raise BadDocument("is encrypted, or of an Office before 2007")
    if kind in {"docx", "xlsx"} and not data.startswith(b"PK"):
        raise BadDocument(f"is no {kind.upper()}, although it is said to be one")
    return kind
