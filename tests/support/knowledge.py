"""Documents for tests: files of every kind, made here, and knowledge bases with something in them."""

import zipfile
from io import BytesIO
from typing import Any

import docx
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.knowledge.bases import Base, NewBase
from services.knowledge.document import Ingested

_CHINESE_FONT = "STSong-Light"


def pdf(*pages: str, title: str = "", password: str | None = None) -> bytes:
    """A PDF with a page for each text; its Chinese font is one that readers have."""
    pdfmetrics.registerFont(UnicodeCIDFont(_CHINESE_FONT))
    written = BytesIO()
    canvas = Canvas(written, encrypt=password)
    if title:
        canvas.setTitle(title)
    for page in pages:
        canvas.setFont(_CHINESE_FONT, 12)
        for number, line in enumerate(page.split("\n")):
            canvas.drawString(72, 760 - 18 * number, line)
        canvas.showPage()
    canvas.save()
    return written.getvalue()


def word(*paragraphs: tuple[int, str]) -> bytes:
    """A DOCX: headings of a level, and paragraphs of level 0."""
    document = docx.Document()
    for level, text in paragraphs:
        if level:
            document.add_heading(text, level)
        else:
            document.add_paragraph(text)
    written = BytesIO()
    document.save(written)
    return written.getvalue()


def zip_bomb() -> bytes:
    """A DOCX of a few hundred kilobytes that has more than a hundred megabytes unpacked."""
    written = BytesIO(word((0, "Hello.")))
    with zipfile.ZipFile(written, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/zeros.bin", b"\0" * (101 * 1024 * 1024))
    return written.getvalue()


def a_document(**values: Any) -> dict[str, Any]:
    given = {
        "source": "a.md",
        "title": "A",
        "media_type": "text/markdown",
        "checksum": "00" * 32,
        "byte_size": 1,
        "left_out": [],
    }
    return {**given, **values}


async def a_base(services: Services, prefix: str = "handbook", **values: Any) -> Base:
    """A knowledge base of the default tenant."""
    tenant_id = values.pop("tenant_id", DEFAULT_TENANT)
    new = NewBase(prefix, values.pop("description", "Our handbook."), **values)
    return await services.knowledge.bases.create(tenant_id, new)


async def put(services: Services, base: Base, source: str, text: str | bytes, **values: Any) -> Ingested:
    """Take a document in."""
    data = text.encode() if isinstance(text, str) else text
    tenant_id = values.pop("tenant_id", DEFAULT_TENANT)
    return await services.knowledge.documents.ingest(tenant_id, base.id, source, data, **values)


async def found(
    services: Services, question: str, prefix: str = "handbook", **values: Any
) -> list[tuple[str, str]]:
    """Document and text of the passages found."""
    tenant_id = values.pop("tenant_id", DEFAULT_TENANT)
    answer = await services.knowledge.search.search(tenant_id, prefix, question, **values)
    return [(passage["document"], passage["text"]) for passage in answer.passages]
