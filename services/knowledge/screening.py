"""Refuses documents that would exhaust a parser, by checks that cost a fraction of parsing.

They count bytes and build no tree. Each goes over the data once, so 40 MB take less than a second.
"""

import re
import zipfile
from io import BytesIO
from typing import IO

from services.knowledge.document import MOST_CHARACTERS, BadDocument

MOST_UNPACKED_BYTES = 100 * 1024 * 1024
_MOST_MEMBERS = 5_000
_MOST_TAGS = 500_000
_MOST_TAGS_OF_SHEET = 3_000_000
_MOST_DEPTH = 1_000
_MOST_RATIO, _RATIO_FROM_BYTES = 200, 10 * 1024 * 1024
"""Maximum ratio of compression, and bytes from which it applies: Word compresses about tenfold; a larger file
that is compressed 200 times is repetitive."""
_MOST_TEXT_BYTES = 4 * MOST_CHARACTERS
"""Bytes that the longest accepted document needs in any encoding."""
_PIECE_BYTES = 1024 * 1024
_PROLOGUE_BYTES = 4096
_TAG_NAME = re.compile(rb"/?[a-zA-Z]*")
_XML_TAG = re.compile(rb"<[^>]*>?")
_VOID = frozenset(
    {b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"source", b"wbr"}
)
_UNSEEN = frozenset({b"script", b"style"})


def screen_html(data: bytes) -> None:
    """Count tags, their depth and the text between them. Raises `BadDocument` if there is too much of one."""
    if data.count(b"<") > _MOST_TAGS:
        raise _too_many_tags(_MOST_TAGS)
    depth = text = at = 0
    lower = data.lower()
    while (begin := lower.find(b"<", at)) >= 0:
        text += begin - at
        name = _TAG_NAME.match(lower, begin + 1)
        tag = name.group() if name else b""
        end = lower.find(b"-->" if lower.startswith(b"<!--", begin) else b">", begin)
        if tag in _UNSEEN:
            end = lower.find(b"</" + tag, begin)
        if end < 0:
            break
        at = end + 1 if lower[end : end + 1] != b"<" else end
        if tag.startswith(b"/"):
            depth = max(0, depth - 1)
        elif tag and tag not in _VOID and tag not in _UNSEEN and lower[end - 1 : end] != b"/":
            depth += 1
        if depth > _MOST_DEPTH:
            raise BadDocument("is nested too deeply")
    else:
        text += len(lower) - at
    if text > _MOST_TEXT_BYTES:
        raise too_long()


def screen_docx(data: bytes) -> None:
    """Check a Word document as `_screen_office` does."""
    _screen_office(data, "word/document.xml", "is no DOCX: it holds no Word document", most_tags=_MOST_TAGS)


def screen_xlsx(data: bytes) -> None:
    """Check a workbook as `_screen_office` does; its cells are read one by one, so more tags are accepted."""
    _screen_office(data, "xl/workbook.xml", "is no XLSX: it holds no workbook", most_tags=_MOST_TAGS_OF_SHEET)


def _screen_office(data: bytes, needed: str, otherwise: str, *, most_tags: int) -> None:
    """Check the sizes that the archive declares, then count tags and text while unpacking its document.

    Raises:
        BadDocument: it does not hold what is needed, or there is too much of something.
        zipfile.BadZipFile, and others of the library: it is broken.
    """
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = archive.infolist()
        if needed not in archive.namelist():
            raise BadDocument(otherwise)
        # Reading a member stops at the size that the archive declares.
        unpacked = sum(member.file_size for member in members)
        if len(members) > _MOST_MEMBERS:
            raise BadDocument(f"holds {len(members):,} files; at most {_MOST_MEMBERS:,} are read")
        if unpacked > MOST_UNPACKED_BYTES:
            raise BadDocument(f"would have {unpacked:,} bytes unpacked; at most {MOST_UNPACKED_BYTES:,} are read")
        if unpacked > max(_RATIO_FROM_BYTES, _MOST_RATIO * len(data)):
            raise BadDocument(f"would be {unpacked // len(data)} times as large unpacked: it repeats itself")
        for member in members:
            if member.filename.endswith(".xml"):
                with archive.open(member) as unpacking:
                    _screen_xml(unpacking, most_tags)


def _screen_xml(unpacking: IO[bytes], most_tags: int) -> None:
    tags = text = 0
    while piece := unpacking.read(_PIECE_BYTES):
        if b"<!DOCTYPE" in piece[:_PROLOGUE_BYTES]:  # entities can expand to gigabytes
            raise BadDocument("declares entities, which no Office document does")
        in_piece = piece.count(b"<")
        tags += in_piece
        if tags > most_tags:
            raise _too_many_tags(most_tags)
        text += len(_XML_TAG.sub(b"", piece)) if in_piece else len(piece)
        if text > _MOST_TEXT_BYTES:
            raise too_long()


def too_long() -> BadDocument:
    """Return the error for a document with too much text."""
    return BadDocument(f"holds more than {MOST_CHARACTERS:,} characters of text; split it")


def _too_many_tags(most: int) -> BadDocument:
    return BadDocument(f"holds more than {most:,} tags; split it")
