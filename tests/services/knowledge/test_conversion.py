"""Documents as text, and those that cannot be read: each is named with a reason, and ends nothing but itself."""

import random
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import BytesIO

import pytest

from services.knowledge.conversion import ConversionLimits, Converter
from services.knowledge.document import BadDocument, Converted, UnknownKind
from services.knowledge.encodings import kind_of
from services.knowledge.screening import screen_docx, screen_html
from tests.support.knowledge import pdf, word, zip_bomb

CHINESE = "年假有八天，病假须提供证明。"

LIMITS = ConversionLimits(at_once=2, seconds=60, megabytes=512)


def packed(document: bytes) -> bytes:
    """A DOCX with this document in it."""
    data = BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("word/document.xml", document)
    return data.getvalue()


def noise() -> bytes:
    """Bytes that cannot be packed, without a tag."""
    return random.Random(1).randbytes(600_000).replace(b"<", b"")


async def _convert(source: str, data: bytes, content_type: str = "") -> Converted:
    return await Converter(LIMITS).convert(kind_of(source, content_type, data), data)


async def test_a_chinese_pdf_keeps_its_pages_and_title() -> None:
    converted = await _convert("a.pdf", pdf(CHINESE, "", "第三页\nthird page", title="员工手册"))
    assert converted.title == "员工手册"
    assert [(part.page, part.text.strip()) for part in converted.parts] == [
        (1, CHINESE),
        (3, "第三页\nthird page"),
    ]


async def test_a_word_document_keeps_its_headings() -> None:
    (part,) = (await _convert("a.docx", word((1, "员工手册"), (2, "年假"), (0, CHINESE)))).parts
    assert part.text.strip() == f"# 员工手册\n\n## 年假\n\n{CHINESE}"


async def test_html_is_shown_as_its_reader_sees_it() -> None:
    page = (
        "<html><head><title>Hours &amp; prices</title><style>p{}</style></head><body><nav>Home</nav>"
        "<script>alert(1)</script><h1>Hours</h1><p>Nine to <a href='http://x'>five</a>.</p>"
        "<table><tr><th>Who</th><th>Price</th></tr><tr><td>Adults</td><td>40</td></tr></table></body></html>"
    )
    converted = await _convert("a.html", page.encode())
    text = converted.parts[0].text
    assert converted.title == "Hours & prices"
    assert text.strip().startswith("# Hours\n\nNine to [five](http://x).")
    assert "| Adults | 40 |" in text
    assert not any(word in text for word in ("alert", "Home", "p{}"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030"])
@pytest.mark.parametrize("ending", ["txt", "html"])
async def test_chinese_text_is_read_in_every_usual_encoding(encoding: str, ending: str) -> None:
    assert (await _convert(f"a.{ending}", CHINESE.encode(encoding))).parts[0].text.strip() == CHINESE


@pytest.mark.parametrize(
    ("source", "data", "reason"),
    [
        ("a.pdf", partial(pdf, "secret", password="x"), "needs a password"),
        ("a.pdf", b"%PDF-1.7 and then nothing", "is broken"),
        ("a.pdf", b"no PDF at all", "is no PDF"),
        ("a.pdf", partial(pdf, ""), "may be scanned"),
        ("a.docx", b"PK\x03\x04 junk", "is broken"),
        ("a.docx", b"\xd0\xcf\x11\xe0 old", "encrypted"),
        ("a.docx", b"hello", "is no DOCX"),
        ("a.docx", zip_bomb, "bytes unpacked"),
        ("a.txt", b" \n\t ", "is empty"),
        ("a.txt", b"\x89PNG\x00\x01\x02", "binary"),
        ("a.txt", b"\x1bG\x01\x02 and some words", "binary"),
        ("a.txt", "ÄÖÜ äöü ÀÈ".encode("latin-1"), "is not text in UTF-8"),
        ("a.html", b"<div>" * 100_000 + b"x", "nested too deeply"),
        ("a.html", b"<script>only()</script>", "holds no text"),
        ("a.txt", b"x" * 4_000_001, "more than 4,000,000 characters"),
    ],
)
async def test_what_cannot_be_read_says_why(source: str, data: bytes | Callable[[], bytes], reason: str) -> None:
    with pytest.raises(BadDocument, match=reason):
        await _convert(source, data() if callable(data) else data)


async def test_a_document_that_names_files_and_entities_of_this_machine_gets_none() -> None:
    bomb = (
        b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "hello"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
        b"<p>&f;&a; visible</p>"
    )
    text = (await _convert("a.xhtml", bomb)).parts[0].text
    assert "visible" in text
    assert "root:" not in text


@pytest.mark.parametrize(
    ("source", "made", "reason"),
    [
        ("a.html", lambda: b"<b>" * 13_333_333, "more than 500,000 tags"),
        ("a.html", lambda: b"<p>" + b"<i>" * 2_000 + b"x" * 1_000, "nested too deeply"),
        ("a.html", lambda: b"<p>" + b"word " * 4_000_000, "characters of text"),
        ("a.html", lambda: b"<script>" + b"x" * 20_000_000 + b"</script><p>seen</p>", ""),
        ("a.docx", lambda: packed(b"<w:p/>" * 16_500_000), "repeats itself"),
        ("a.docx", lambda: packed(noise() + b"<w:p/>" * 1_000_000), "more than 500,000 tags"),
        ("a.docx", lambda: packed(b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'), "entities"),
    ],
)
def test_what_no_parser_would_come_through_is_refused_by_counting(
    source: str, made: Callable[[], bytes], reason: str
) -> None:
    screen, data = screen_html if source.endswith("html") else screen_docx, made()
    begun = time.thread_time()
    if reason in {"", "holds no text"}:
        screen(data)  # nothing is wrong that counting shows
    else:
        with pytest.raises(BadDocument, match=reason):
            screen(data)
    assert time.thread_time() - begun < 1


async def test_a_document_that_needs_too_much_memory_ends_alone() -> None:
    data = b"<p a='" + b"x" * 30_000_000 + b"'>" + b"<b>word</b> " * 100_000
    with pytest.raises(BadDocument, match=r"memory|needed too much"):
        await Converter(replace(LIMITS, megabytes=128)).convert("html", data)


async def test_a_document_that_takes_too_long_ends_alone() -> None:
    converter = Converter(replace(LIMITS, seconds=0.001))
    with pytest.raises(BadDocument, match=r"takes more than 0\.001 seconds"):
        await converter.convert("pdf", pdf("x"))
    assert (await _convert("a.pdf", pdf("x"))).parts[0].text.strip() == "x"


@pytest.mark.parametrize(("source", "content_type"), [("a.exe", ""), ("a", ""), ("a.md", "application/json")])
def test_an_unknown_kind_is_refused(source: str, content_type: str) -> None:
    with pytest.raises(UnknownKind, match="unknown kind"):
        kind_of(source, content_type, b"x")
