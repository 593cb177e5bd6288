"""Converts PDF and DOCX to pages or Markdown, and the other kinds through `pages.py` and `sheets.py`.

Only `conversion_process.py` runs this, because the files may be hostile.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

from services.knowledge.document import MOST_CHARACTERS, BadDocument, Converted, Part
from services.knowledge.encodings import Kind
from services.knowledge.left_out import ranges
from services.knowledge.pages import from_html, from_html_text
from services.knowledge.screening import screen_docx, too_long
from services.knowledge.sheets import from_csv, from_xlsx
from services.knowledge.word_parts import left_out_of_docx, readable_docx
from services.text.storable import storable

_MOST_PAGES = 5_000
_LONGEST_TITLE = 1_000
_NO_TITLE = re.compile(
    r"[\W_]*(?:untitled|anonymous|unspecified|unknown|no title|title|document|word document|template"
    r"|无标题|未命名|無標題|未命名文档|文档|新建 ?(?:microsoft )?(?:word|文本)? ?文档|無題)?"
    r"(?: document)?[\W_\d]*",
    re.IGNORECASE,
)
"""Titles that programs write if nobody has given one."""
_PROGRAM = re.compile(r"microsoft (?:word|excel|powerpoint) - (.+?)(?:\.docx?|\.xlsx?|\.pptx?)?", re.IGNORECASE)
_RUNNING_LINE = 100
"""Characters of a page that may be no more than its header: a scan bears some."""
_IMAGE = 3
"""PDFium's type of an image."""
_PASSWORD = 4
"""PDFium's error code for a missing password."""

# A printed line may end in the middle of a word.
_BROKEN_CHINESE = re.compile(r"(?<=[\u4e00-\u9fff，、；：])\s*\n(?=[\u4e00-\u9fff])")
_BROKEN_WORD = re.compile("[\ufffe\xad]\\s*\n?")


def convert(kind: Kind, data: bytes) -> Converted:
    """The document as text; without a part if it holds none. Raises `BadDocument` if it cannot be read; says
    why."""
    readers = {"html": from_html, "pdf": _pdf, "docx": _docx, "xlsx": from_xlsx, "csv": from_csv}
    read = readers[kind](data)
    parts = tuple(replace(part, text=storable(part.text)) for part in read.parts if part.text.strip())
    if sum(len(part.text) for part in parts) > MOST_CHARACTERS:
        raise too_long()
    return replace(read, title=_title(storable(read.title)), parts=parts)


def _title(told: str) -> str:
    """Return a document's title; empty if what it tells is no title."""
    title = " ".join(told[:_LONGEST_TITLE].split())
    if found := _PROGRAM.fullmatch(title):
        title = found[1]
    return "" if _NO_TITLE.fullmatch(title) else title


def _docx(data: bytes) -> Converted:
    try:
        screen_docx(data)
        import mammoth  # noqa: PLC0415 — refused without it

        html = mammoth.convert_to_html(
            BytesIO(readable_docx(data)),
            convert_image=mammoth.images.img_element(_no_image),
            external_file_access=False,
        ).value
        left_out = left_out_of_docx(data)
    except BadDocument:
        raise
    except Exception as error:  # the library raises whatever its parsers raise
        raise BadDocument("is broken: no Word document can be read from it") from error
    read = from_html_text(html)
    return replace(read, left_out=(*left_out, *read.left_out))


def _no_image(_: Any) -> dict[str, str]:
    return {"src": ""}


def _pdf(data: bytes) -> Converted:
    import pypdfium2  # noqa: PLC0415 — as above

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        reason = "needs a password" if error.err_code == _PASSWORD else "is broken: no PDF can be read from it"
        raise BadDocument(reason) from None
    if len(document) > _MOST_PAGES:
        raise BadDocument(f"has {len(document):,} pages; at most {_MOST_PAGES:,} are read")
    title = document.get_metadata_value("Title").strip()
    drawn: list[int] = []
    pages = tuple(_pages(document, drawn))
    # Beside scans a page on which nothing is drawn is the back of a leaf; alone it may be what cannot be read.
    without = drawn or [page.page for page in pages if page.page and not page.text.strip()]
    told = (f"{len(without)} of {len(pages)} pages, which hold no text ({ranges(without)})",) if without else ()
    return Converted(title, pages, headings=False, left_out=told)


def _pages(document: Any, drawn: list[int]) -> Iterator[Part]:
    """Yield the pages; adds to `drawn` the numbers of those that show a picture in place of text."""
    for number in range(len(document)):
        page = document[number]
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n")
        if len(text.strip()) <= _RUNNING_LINE and _is_picture(page, blank=not text.strip()):
            drawn.append(number + 1)
        yield Part(_BROKEN_CHINESE.sub("", _BROKEN_WORD.sub("", text)), number + 1)
        page.close()


def _is_picture(page: Any, *, blank: bool) -> bool:
    """Return whether a page is a picture: one that fills most of it, or anything at all on a page without text."""
    drawn = list(page.get_objects(max_depth=2))
    if blank:
        return bool(drawn)
    sizes = [each.get_bounds() for each in drawn if each.type == _IMAGE]
    area = page.get_width() * page.get_height()
    return any((right - left) * (top - bottom) * 2 > area for left, bottom, right, top in sizes)
