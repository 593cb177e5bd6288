"""Documents say what their readers see: numbers, formats, ticks, links, all of a page; what is lost is told."""

import re
import sys
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls, qn

from services.knowledge.conversion import Converter
from services.knowledge.document import BadDocument, Converted
from services.knowledge.encodings import kind_of
from services.knowledge.formats import convert
from tests.services.knowledge.test_conversion import LIMITS
from tests.support.knowledge import pdf


def _read(source: str, data: bytes | str) -> Converted:
    content = data.encode() if isinstance(data, str) else data
    return convert(kind_of(source, "", content), content)


def _text(source: str, data: bytes | str) -> str:
    return "\n".join(part.text for part in _read(source, data).parts).strip()


_Levels = list[tuple[str, str] | tuple[str, str, str]]
_Paragraph = tuple[str, int, int] | tuple[str, int, int, str] | str


def numbered(lists: dict[int, _Levels], paragraphs: list[_Paragraph], extra: str = "") -> bytes:
    """A DOCX: the levels of its lists (kind, label, more XML), and paragraphs: text, list, level, style."""
    document = docx.Document()
    numbering = document.part.numbering_part.element
    first = numbering.find(qn("w:num"))
    for number, levels in lists.items():
        written = "".join(
            f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>{"".join(more)}'
            f'<w:lvlText w:val="{label}"/></w:lvl>'
            for at, (kind, label, *more) in enumerate(levels)
        )
        first.addprevious(
            parse_xml(f'<w:abstractNum {nsdecls("w")} w:abstractNumId="{number}">{written}</w:abstractNum>')
        )
        ids = f'w:numId="{number}"><w:abstractNumId w:val="{number}"/>'
        numbering.append(parse_xml(f"<w:num {nsdecls('w')} {ids}</w:num>"))
    if extra:
        numbering.append(parse_xml(extra))
    for each in paragraphs:
        text, number, level, *style = (each, 0, 0) if isinstance(each, str) else each
        paragraph = document.add_paragraph(text, style=style[0] if style else None)
        if number:
            ids = f'<w:ilvl w:val="{level}"/><w:numId w:val="{number}"/>'
            paragraph._p.get_or_add_pPr().append(parse_xml(f"<w:numPr {nsdecls('w')}>{ids}</w:numPr>"))
    made = BytesIO()
    document.save(made)
    return made.getvalue()


ARTICLES: _Levels = [("chineseCountingThousand", "第%1条"), ("decimal", "（%2）")]
RESTARTED = (
    f'<w:num {nsdecls("w")} w:numId="77"><w:abstractNumId w:val="70"/><w:lvlOverride w:ilvl="0">'
    '<w:startOverride w:val="1"/></w:lvlOverride></w:num>'
)
WORD = {
    "custom labels, a plain paragraph between, a level below": (
        numbered(
            {70: ARTICLES},
            [
                ("租期", 70, 0),
                "房东负责外墙。",
                ("租金", 70, 0),
                ("逾期", 70, 1),
                ("押金", 70, 1),
                ("宠物", 70, 0),
                ("水", 70, 1),
            ],
        ),
        ["第一条 租期", "房东负责外墙。", "第二条 租金", "（1） 逾期", "（2） 押金", "第三条 宠物", "（1） 水"],
    ),
    "headings": (
        numbered(
            {70: [("decimal", "%1"), ("decimal", "%1.%2")]},
            [("总则", 70, 0, "Heading 1"), ("范围", 70, 1, "Heading 2"), ("附则", 70, 0, "Heading 1")],
        ),
        ["# 1 总则", "## 1.1 范围", "# 2 附则"],
    ),
    "a restart, and on with the first list": (
        numbered(
            {70: [("lowerLetter", "(%1)")]}, [("a", 70, 0), ("b", 70, 0), ("c", 77, 0), ("d", 77, 0)], RESTARTED
        ),
        ["(a) a", "(b) b", "(a) c", "(b) d"],
    ),
    "legal digits, a level that never restarts, no space": (
        numbered(
            {
                70: [
                    ("upperRoman", "Part %1"),
                    ("decimal", "Section %1.%2", "<w:lvlRestart w:val='0'/><w:isLgl/>"),
                    ("ideographTraditional", "%3、", '<w:suff w:val="nothing"/>'),
                ]
            },
            [("A", 70, 0), ("x", 70, 1), ("甲方", 70, 2), ("乙方", 70, 2), ("B", 70, 0), ("y", 70, 1)],
        ),
        ["Part I A", "Section 1.1 x", "甲、甲方", "乙、乙方", "Part II B", "Section 2.2 y"],
    ),
    "bullets below a number": (
        numbered(
            {70: ARTICLES, 71: [("bullet", "-"), ("bullet", "-")]},
            [("租期", 70, 0), ("一年", 71, 1), ("两年", 71, 1)],
        ),
        ["第一条 租期", "- 一年", "- 两年"],
    ),
    "boxes as bullets": (
        numbered({70: [("bullet", "\uf0fe")], 71: [("bullet", "\uf0a8")]}, [("yes", 70, 0), ("no", 71, 0)]),
        ["☑ yes", "☐ no"],
    ),
}


@pytest.mark.parametrize("name", WORD)
def test_word_s_numbers_are_those_that_word_shows(name: str) -> None:
    data, lines = WORD[name]
    assert [line for line in _text("a.docx", data).split("\n") if line] == lines


def test_ticks_links_descriptions_and_what_is_left_out_of_word_are_told() -> None:
    body = (
        '<w:p><w:sdt><w:sdtPr><w14:checkbox xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml">'
        '<w14:checked w14:val="1"/></w14:checkbox></w:sdtPr><w:sdtContent><w:r><w:t>☒</w:t></w:r></w:sdtContent>'
        "</w:sdt><w:r><w:t>同意</w:t></w:r></w:p>"
        "<w:p><w:r><w:t>m</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>2</w:t></w:r>"
        "<w:del w:id='1' w:author='a'><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:ins w:id='2' w:author='a'><w:r><w:t> kept</w:t></w:r></w:ins></w:p>"
        "<w:p><w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText>HYPERLINK \"https://a.example/f.pdf\""
        "</w:instrText></w:r><w:r><w:fldChar w:fldCharType='separate'/></w:r><w:r><w:t>这里</w:t></w:r>"
        "<w:r><w:fldChar w:fldCharType='end'/></w:r></w:p>"
    )
    made = BytesIO()
    with zipfile.ZipFile(BytesIO(numbered({}, ["x"]))) as archive, zipfile.ZipFile(made, "w") as copied:
        for member in archive.namelist():
            content = archive.read(member)
            if member == "word/document.xml":
                content = re.sub(rb"<w:p>.*</w:p>", body.encode(), content)
            copied.writestr(member, content)
        names = nsdecls("w")
        comments = f"<w:comments {names}><w:comment w:id='0'/><w:comment w:id='1'/></w:comments>"
        copied.writestr("word/comments.xml", comments)
        copied.writestr("word/footer1.xml", f"<w:ftr {names}><w:p><w:r><w:t>draft</w:t></w:r></w:p></w:ftr>")

    converted = _read("a.docx", made.getvalue())

    text = converted.parts[0].text
    for shown in ("☑ 同意", "m² kept", "[这里](https://a.example/f.pdf)"):
        assert shown in text
    assert "gone" not in text
    assert converted.left_out == ("2 comments", "1 deleted passage (tracked changes)", "page headers and footers")


def _workbook(rows: list[list[Any]], **formats: str) -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, code in formats.items():
        book.active[cell].number_format = code
    return book


def _saved(book: openpyxl.Workbook, styles: tuple[str, str] = ("", "")) -> bytes:
    written, made = BytesIO(), BytesIO()
    book.save(written)
    with zipfile.ZipFile(written) as archive, zipfile.ZipFile(made, "w") as copied:
        for member in archive.namelist():
            content = archive.read(member)
            copied.writestr(
                member, content.replace(styles[0].encode(), styles[1].encode()) if styles[0] else content
            )
    return made.getvalue()


@pytest.mark.parametrize(("number", "shown"), [(31, "2025年12月29日"), (57, "2025年12月"), (58, "12月29日")])
def test_dates_that_chinese_excel_has_built_in_are_dates(number: int, shown: str) -> None:
    book = _workbook([["公司", "到期"], ["青禾", 46020]], B2="mm-dd-yy")
    text = _text("a.xlsx", _saved(book, ('numFmtId="14"', f'numFmtId="{number}"')))
    assert f"| 青禾 | {shown} |" in text


def test_a_workbook_tells_what_it_leaves_out_and_shows_formulas_without_a_value() -> None:
    book = _workbook([["2025 年报表"], [], ["城市", "区号", "合计"], ["杭州", 571, "=SUM(B4,1)"]], B4="0000")
    hidden = book.create_sheet("底稿")
    hidden.sheet_state = "hidden"
    book.active["A4"].comment = openpyxl.comments.Comment("批注", "me")
    book.active["A5"], book.active["D4"] = "旧数据", "底价"
    book.active.row_dimensions[5].hidden = book.active.column_dimensions["D"].hidden = True

    converted = _read("a.xlsx", _saved(book))

    assert "2025 年报表\n\n| 城市 | 区号 | 合计 |\n| --- | --- | --- |\n| 杭州 | 0571 | =SUM(B4,1) |" in (
        converted.parts[0].text
    )
    assert "旧数据" not in converted.parts[0].text
    assert "底价" not in converted.parts[0].text
    assert converted.left_out == (
        "hidden sheet 底稿",
        "1 hidden row (of Sheet: 5)",
        "1 hidden column (of Sheet: 4)",
        "1 formula value (the file holds none; the formula is shown)",
        "1 comment",
    )


@pytest.mark.parametrize("odd", ["strict", "case"])
def test_workbooks_of_the_strict_standard_and_with_names_in_another_case_are_read(odd: str) -> None:
    old, new = {
        "strict": (
            b"http://schemas.openxmlformats.org/spreadsheetml/2006/",
            b"http://purl.oclc.org/ooxml/spreadsheetml/",
        ),
        "case": (b"", b""),
    }[odd]
    made = BytesIO()
    written = BytesIO(_saved(_workbook([["城市", "区号"], ["杭州", 571]], B2="0000")))
    with zipfile.ZipFile(written) as book, zipfile.ZipFile(made, "w") as copied:
        for name in book.namelist():
            renamed = name.replace("sharedStrings", "SharedStrings") if odd == "case" else name
            copied.writestr(renamed, book.read(name).replace(old, new) if old else book.read(name))
    assert "| 杭州 | 0571 |" in _text("a.xlsx", made.getvalue())


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"\r', "SEP=;"])
def test_csv_may_name_what_separates_its_fields(first: str) -> None:
    text = _text("a.csv", f"{first}\n城市;价格,元\n杭州;3,5\n")
    assert text.split("\n")[0::2] == ["| 城市 | 价格,元 |", "| 杭州 | 3,5 |"]


def test_csv_may_say_something_above_its_header() -> None:
    text = _text("a.csv", "导出自系统，仅供内部\n\n姓名,部门,分机\n王小明,财务部,8001\n李华,人事部,8002\n")
    assert text.split("\n")[:4] == ["导出自系统，仅供内部", "", "| 姓名 | 部门 | 分机 |", "| --- | --- | --- |"]
    wide = _read("a.csv", ",".join(f"c{number}" for number in range(250)))
    assert wide.left_out == ("columns after the first 200",)


PAGES = {
    "all of the main content": (
        "<body><main><p>护照七天。</p></main><main><p>签注三天。</p></main><article><p>通行证五天。</p></article>",
        ["护照七天。", "签注三天。", "通行证五天。"],
    ),
    "a page whose main content is small": (
        f"<body><main><p>首页</p></main><div><p>{'正文在这里。' * 20}</p></div></body>",
        ["首页", "正文在这里。" * 20],
    ),
    "links and descriptions": (
        "<link rel=canonical href='https://a.example/x/'><p>申请表见<a href='form.pdf'>这里</a>，"
        "<a href='#top'>顶部</a><img src=a.png alt='流程图：先登记'></p><h2><a href='https://b.example'>办理</a></h2>",
        [
            "申请表见[这里](https://a.example/x/form.pdf)，顶部![流程图：先登记]",
            "## 办理\n\n[办理](https://b.example)",
        ],
    ),
    "ticks, powers and formulas": (
        "<p><input type=checkbox checked>同意 <input type=checkbox>不同意</p>"
        "<p>10<sup>5</sup> m<sup>2</sup> H<sub>2</sub>O</p>"
        "<math><mi>x</mi><annotation encoding='application/x-tex'>x^{2}</annotation></math>",
        ["☑ 同意 ☐ 不同意", "10⁵ m² H₂O", "$x^{2}$"],
    ),
    "numbers of lists": (
        "<ol type=a start=3><li>x</li><li value=5>y</li></ol>"
        "<ol reversed><li>z</li><li>w</li></ol><ol start=4><li>v</li></ol>",
        ["c. x", "e. y", "2. z", "1. w", "4. v"],
    ),
    "line breaks between cells, one that reaches down, a control character": (
        "<?xml version='1.0'?><table>\n <tr>\n <th>年</th>\n <th>月</th>\n </tr>\n <tr>\n"
        " <th rowspan=2>2025</th>\n <td>一月\x07</td>\n </tr>\n <tr>\n <td>二月</td>\n </tr>\n</table>"
        + " "
        * 500,
        ["| 年 | 月 |\n| --- | --- |\n| 2025 | 一月 |\n| 2025 | 二月 |"],
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_all_that_it_shows(name: str) -> None:
    page, shown = PAGES[name]
    text = _text("a.html", page)
    assert [each for each in shown if each not in text] == []
    assert "xml" not in text


def test_what_stands_outside_the_main_content_is_counted() -> None:
    main = f"<main>{'text ' * 20}<img src=x></main>"
    page = f"<head><script>x</script></head><body><div>cookies</div><iframe src=x></iframe>{main}</body>"
    converted = _read("a.html", page)
    assert converted.left_out == (
        "1 embedded page",
        "1 undescribed picture",
        "7 characters outside the page's main content",
    )


OCR = """
import sys
sys.path.insert(0, {root!r})
from tests.support.knowledge import pdf
assert sys.stdin.buffer.read(5) == b"%PDF-"
sys.stdin.buffer.read()
sys.stdout.buffer.write(pdf("first", "recognised"))
"""


async def test_pages_without_text_are_named_and_an_operator_s_command_may_read_them(tmp_path: Path) -> None:
    scanned = pdf("first", "", "", "fourth")
    converted = await Converter(LIMITS).convert("pdf", scanned)
    assert converted.left_out == ("2 of 4 pages, which hold no text (2–3)",)

    script = tmp_path / "ocr.py"
    script.write_text(OCR.format(root=str(Path(__file__).parents[3])))
    reader = Converter(replace(LIMITS, ocr_command=f"{sys.executable} {script}"))
    for document in (scanned, pdf("")):
        read = await reader.convert("pdf", document)
        assert [part.text.strip() for part in read.parts] == ["first", "recognised"]
        assert read.left_out == ()

    broken = Converter(replace(LIMITS, ocr_command="false"))
    assert (await broken.convert("pdf", scanned)).left_out[1:] == ("the command for OCR ended with 1",)
    with pytest.raises(BadDocument, match=r"may be scanned .*OCR ended with 1"):
        await broken.convert("pdf", pdf(""))


def test_links_of_cells_and_numbers_that_only_a_format_makes_a_date_are_shown() -> None:
    book = _workbook(
        [["form", "leave", "day"], ["报销单", '=HYPERLINK("https://oa.example/leave?a=1","请假单")', 44558]]
    )
    sheet = book.active
    assert sheet is not None
    sheet["A2"].hyperlink = "https://oa.example/form.xlsx"
    sheet["C2"].number_format = "[$-804]aaaa;@"
    text = _text("a.xlsx", _saved(book))
    assert "[报销单](https://oa.example/form.xlsx)" in text
    assert "https://oa.example/leave?a=1" in text
    assert "星期二" in text  # 28 December 2021


def test_word_s_numbers_need_no_styles() -> None:
    whole = numbered({9: [("chineseCounting", "第%1条")]}, [("租期三年", 9, 0)])
    made = BytesIO()
    with zipfile.ZipFile(BytesIO(whole)) as archive, zipfile.ZipFile(made, "w") as copied:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith(".rels") or name == "[Content_Types].xml":
                content = re.sub(rb"<(?:Relationship|Override)\b[^>]*/styles\.xml\"[^>]*/>", b"", content)
            if name != "word/styles.xml":
                copied.writestr(name, content)
    assert "第一条 租期三年" in _text("a.docx", made.getvalue())


def test_a_scan_that_bears_a_running_line_has_no_text_and_the_back_of_its_leaf_is_no_loss() -> None:
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    made = BytesIO()
    canvas = Canvas(made, pagesize=(500, 700))
    for line in ("A page of words. " * 10, "Lease 2219, page 2", ""):
        if line.startswith("Lease"):
            canvas.drawImage(ImageReader(Image.new("RGB", (50, 70))), 0, 0, 500, 700)
        canvas.drawString(20, 680, line)
        canvas.showPage()
    canvas.save()
    assert _read("a.pdf", made.getvalue()).left_out == ("1 of 3 pages, which hold no text (2)",)
