"""Tables keep their columns and their header, wherever they come from and however they are cut."""

from io import BytesIO
from typing import Any

import openpyxl
import pytest

from services.knowledge.chunking import CHUNK_TOKENS, chunks_of
from services.knowledge.conversion import Converter
from services.knowledge.document import BadDocument, Converted, Part
from services.knowledge.encodings import kind_of
from services.llm.token_estimates import count_tokens
from tests.services.knowledge.test_conversion import LIMITS

HEADER = "| 姓名 | 部门 | 分机 |"


async def _text(source: str, data: bytes, content_type: str = "") -> str:
    converted = await Converter(LIMITS).convert(kind_of(source, content_type, data), data)
    return "\n".join(part.text for part in converted.parts)


def workbook(*sheets: tuple[str, list[list[Any]], list[str]]) -> bytes:
    """An XLSX with sheets: name, rows, and merged ranges of each."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows, merged in sheets:
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for cells in merged:
            sheet.merge_cells(cells)
    written = BytesIO()
    book.save(written)
    return written.getvalue()


def test_long_table_repeats_its_header_in_each_chunk() -> None:
    rows = [f"| 员工{number} | 财务部 | {8000 + number} |" for number in range(150)]
    text = "# 通讯录\n\n以下是分机。\n\n" + "\n".join([HEADER, "| --- | --- | --- |", *rows]) + "\n\n完。\n"

    chunks = chunks_of(Converted("", (Part(text),), headings=True))

    tables = [chunk for chunk in chunks if "员工" in chunk.text]
    assert len(tables) > 4
    assert all(chunk.text.startswith(HEADER) and chunk.heading == "通讯录" for chunk in tables)
    assert all(count_tokens(chunk.text) <= CHUNK_TOKENS for chunk in chunks)
    told = [line for chunk in tables for line in chunk.text.split("\n")[2:]]
    assert told == rows
    assert [chunk.text for chunk in chunks if chunk not in tables] == ["以下是分机。", "完。"]


async def test_merged_cells_of_html_keep_their_columns() -> None:
    page = (
        "<table><tr><td>城市</td><td>职级</td><td>标准</td></tr><tr><td rowspan=2>北京</td><td>经理</td>"
        "<td>五百</td></tr><tr><td>职员</td><td>三百元</td></tr>"
        "<tr><td colspan=2>合计</td><td>八百</td></tr></table>"
    )
    lines = [line for line in (await _text("a.html", page.encode())).split("\n") if line]
    assert lines == [
        "| 城市 | 职级 | 标准 |",
        "| --- | --- | --- |",
        "| 北京 | 经理 | 五百 |",
        "| 北京 | 职员 | 三百元 |",
        "| 合计 | 合计 | 八百 |",
    ]


@pytest.mark.parametrize(
    ("source", "content_type", "text", "encoding"),
    [
        ("a.csv", "", "姓名,部门,分机\n王小明,财务部,8001\n", "utf-8"),
        ("a.csv", "text/csv", "姓名;部门;分机\n王小明;财务部;8001\n", "gb18030"),
        ("a.csv", "application/vnd.ms-excel", '"姓名","部门","分机"\n"王小明","财务部","8001"\n', "utf-16"),
    ],
)
async def test_csv_is_a_table(source: str, content_type: str, text: str, encoding: str) -> None:
    lines = (await _text(source, text.encode(encoding), content_type)).split("\n")
    assert lines == [HEADER, "| --- | --- | --- |", "| 王小明 | 财务部 | 8001 |"]


async def test_workbook_is_read_sheet_by_sheet() -> None:
    data = workbook(
        ("差旅", [["城市", "职级", "标准"], ["北京", "经理", 500.0], [None, "职员", 300.5]], ["A2:A3"]),
        ("Empty", [], []),
        ("Notes", [["Who", "Since"], ["Ada", "2024"]], []),
    )
    text = await _text("a.xlsx", data)
    assert text.split("\n\n")[0] == "## 差旅"
    assert "| 北京 | 经理 | 500 |\n| 北京 | 职员 | 300.5 |" in text
    assert "## Notes" in text
    assert "Empty" not in text


@pytest.mark.parametrize(
    ("source", "data", "reason"),
    [
        ("a.xlsx", b"PK\x03\x04 junk", "is broken"),
        ("a.xlsx", b"hello", "is no XLSX"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0 old", "before 2007"),
        ("a.csv", b"a,b\n" + b'"' + b"x" * 2_000_000, "is no CSV"),
        ("a.csv", b",,\n,,\n", "holds no text"),
    ],
)
async def test_sheet_that_cannot_be_read_says_why(source: str, data: bytes, reason: str) -> None:
    with pytest.raises(BadDocument, match=reason):
        await _text(source, data)
