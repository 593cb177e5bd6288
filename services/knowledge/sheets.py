"""Converts tables of CSV and XLSX to Markdown with their headers.

Only `conversion_process.py` runs this, because the files may be hostile.
"""

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import unescape
from io import BytesIO
from itertools import chain, islice
from typing import Any

from services.knowledge.document import MOST_CHARACTERS, BadDocument, Converted, Part
from services.knowledge.encodings import decoded
from services.knowledge.left_out import counted, parts_left_out, ranges
from services.knowledge.number_formats import DATES_OF_CHINESE_EXCEL, as_shown, shows_date
from services.knowledge.screening import screen_xlsx, too_long

_MOST_COLUMNS = 200
_SAMPLED_ROWS = 40
_TOO_WIDE = f"columns after the first {_MOST_COLUMNS}"
_LINE_BREAKS = re.compile(r"(?<!\s)\s*[\r\n\v\f\u2028\u2029]+\s*")


def markdown_table(rows: Iterable[Sequence[str]], left_out: list[str]) -> Iterator[str]:
    """Yield the lines of a table: what stands above it, its header, its rows. Names the columns that are too
    many in `left_out`."""
    coming = iter(rows)
    first = list(islice(coming, _SAMPLED_ROWS))
    above, first = _notes_and_table(first)
    yield from above
    header: Sequence[str] | None = None
    for row in chain(first, coming):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > _MOST_COLUMNS and _TOO_WIDE not in left_out:
            left_out.append(_TOO_WIDE)
        width = max(len(row), len(header or ()))
        cells = [*map(_table_cell, row[:_MOST_COLUMNS]), *[""] * (min(width, _MOST_COLUMNS) - len(row))]
        yield f"| {' | '.join(cells)} |"
        if header is None:
            header = row
            yield f"|{' --- |' * len(cells)}"


def _notes_and_table(rows: list[Sequence[str]]) -> tuple[list[str], list[Sequence[str]]]:
    """Separate the first rows of a sheet: lines with much less content than most rows stand above the table."""
    filled = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    widths = sorted(len(cells) for cells in filled if cells)
    usual = widths[-1 - len(widths) // 4] if widths else 0
    notes: list[str] = []
    for at, cells in enumerate(filled):
        is_apart = len(cells) < usual and at + 1 < len(rows) and not filled[at + 1]
        is_title = len(set(cells)) == 1 and rows[at][0].strip()
        if cells and not (usual > 1 and (is_title or is_apart or 2 * len(cells) <= usual)):
            return ([*notes, ""] if notes else []), rows[at:]
        if cells:
            notes.append(" ".join(dict.fromkeys(cells)))
    return [], rows


def _table_cell(text: str) -> str:
    return _LINE_BREAKS.sub(" ", text.strip()).replace("|", "\\|")


_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r"\A\"?sep=([^\"\r\n])\"?\r?\n", re.IGNORECASE)
"""The line with which Excel is told what separates fields."""
_SNIFFED_LINES = 20
_LONGEST_FIELD = 1_000_000
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell [^>]*?ref=\"([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})\"")
_MOST_MERGED = 10_000


def from_csv(data: bytes) -> Converted:
    """Read a CSV file, whatever separates its fields. Raises `BadDocument` if it cannot be read; says why."""
    text = decoded(data)
    csv.field_size_limit(_LONGEST_FIELD)
    named = _SEPARATOR.match(text)
    delimiter = named[1] if named else _delimiter(text)
    rows = csv.reader(io.StringIO(text[named.end() if named else 0 :], newline=""), delimiter=delimiter)
    try:
        left_out: list[str] = []
        table = _limited(markdown_table(rows, left_out))
    except csv.Error as error:
        raise BadDocument(f"is no CSV that can be read: {error}") from None
    return Converted("", (Part(table),), headings=False, left_out=tuple(left_out))


def _delimiter(text: str) -> str:
    """Return the character that occurs equally often in most of the first lines; of several, the most frequent."""
    lines = [line for line in islice(io.StringIO(text), _SNIFFED_LINES) if line.strip()]

    def steadiness(mark: str) -> tuple[int, int]:
        usual = Counter(line.count(mark) for line in lines if mark in line).most_common(1)
        return usual[0][::-1] if usual else (0, 0)

    return max(_DELIMITERS, key=steadiness)


Bounds = Callable[[str], tuple[int, int, int, int]]
"""Function that reads a range such as A1:B2: its first and last column and row, from 1."""


_FORMULA = re.compile(
    rb"<(?:\w+:)?c\s([^>]*)><(?:\w+:)?f\b(?:[^>]*/>|[^>]*>([^<]*)</(?:\w+:)?f>)(?:<(?:\w+:)?v\s*/>|<v></v>)?</(?:\w+:)?c>"
)
"""A cell whose formula has no stored value."""
_RELATION, _LINK = re.compile(rb"<Relationship\s[^>]+>"), re.compile(rb"<(?:\w+:)?hyperlink\s[^>]+>")
_ATTRIBUTE = re.compile(rb"([\w:]+)=\"([^\"]*)\"")
_LINKING = re.compile(
    rb"<(?:\w+:)?c\s[^>]*?\br=\"([A-Z]+\d+)\"[^>]*><(?:\w+:)?f>HYPERLINK\((?:\"|&quot;)([^\"<]+?)(?:\"|&quot;)"
)
_TYPES = "[Content_Types].xml"
_HIDDEN = re.compile(rb"<(?:\w+:)?(row|col)\s([^>]*\bhidden=\"(?:1|true)\"[^>]*)>")
_NUMBERS = re.compile(rb"\b(?:r|min|max)=\"(\d{1,7})\"")
_PLACE = re.compile(rb"\br=\"([A-Z]+\d+)\"")
_LEFT_OUT = {
    "comment": (r"xl/comments[^/]*\.xml|xl/comments/.*\.xml", rb"<(?:\w+:)?comment "),
    "chart": (r"xl/charts/chart\d*\.xml", b""),
    "picture": (r"xl/media/.+", b""),
}


def from_xlsx(data: bytes) -> Converted:
    """Read the sheets of a workbook: values as they are shown, each sheet under its name. Raises `BadDocument`
    if it cannot be read; says why."""
    left_out: list[str] = []
    try:
        screen_xlsx(data)
        from openpyxl import load_workbook, utils  # noqa: PLC0415 — each kind of document loads its own library
        from openpyxl.styles.numbers import BUILTIN_FORMATS  # noqa: PLC0415

        BUILTIN_FORMATS.update(DATES_OF_CHINESE_EXCEL)
        data = _transitional(data)
        book = load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
        with zipfile.ZipFile(BytesIO(data)) as archive:
            lines = _limited(_sheets(book, archive, utils.range_boundaries, left_out))
            left_out += parts_left_out(archive, _LEFT_OUT)
    except BadDocument:
        raise
    except Exception as error:  # the library raises whatever its parsers raise
        raise BadDocument("is broken: no workbook can be read from it") from error
    title = book.properties.title if book.properties else None
    return Converted(title or "", (Part(lines),), headings=True, left_out=tuple(left_out))


_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_PART = re.compile(rb"PartName=\"/([^\"]+)\"")


def _transitional(data: bytes) -> bytes:
    """Return a workbook of the strict standard, or whose names differ in case, as the library reads it."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        parts = {each.decode().lower(): each.decode() for each in _PART.findall(archive.read(_TYPES))}
        names = {each: parts.get(each.lower(), each) for each in archive.namelist()}
        if not _STRICT.search(archive.read("xl/workbook.xml")) and all(a == b for a, b in names.items()):
            return data
        made = BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as copied:
            for name, wanted in names.items():
                copied.writestr(
                    wanted, _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", archive.read(name))
                )
        return made.getvalue()


def _sheets(book: Any, archive: zipfile.ZipFile, bounds: Bounds, left_out: list[str]) -> Iterator[str]:
    left_out += [f"hidden sheet {each.title}" for each in book.worksheets if each.sheet_state != "visible"]
    without_value = 0
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            continue
        path = getattr(sheet, "_worksheet_path", "")
        content = archive.read(path) if path in archive.namelist() else b""
        formulas = dict(_formulas(content))
        without_value += len(formulas)
        hidden = _hidden(content)
        rows = _rows(sheet, _merged(content, bounds), formulas, _links(archive, path, content))
        shown = (
            [cell for at, cell in enumerate(row, 1) if at not in hidden["col"]]
            for number, row in enumerate(rows, 1)
            if number not in hidden["row"]
        )
        table = list(markdown_table(shown, left_out))
        for kind, name in (("row", "hidden row"), ("col", "hidden column")):
            left_out += counted(len(hidden[kind]), f"{name} (of {sheet.title}: {ranges(sorted(hidden[kind]))})")
        if table:
            yield f"## {sheet.title}\n"
            yield from table
            yield ""
    left_out += counted(without_value, "formula value (the file holds none; the formula is shown)")


def _hidden(content: bytes) -> dict[str, set[int]]:
    """Return the numbers of the rows, and of the columns, that a sheet does not show."""
    hidden: dict[str, set[int]] = {"row": set(), "col": set()}
    for found in _HIDDEN.finditer(content):
        numbers = [int(each) for each in _NUMBERS.findall(found[2])]
        last = min(max(numbers, default=0), _MOST_COLUMNS) if found[1] == b"col" else max(numbers, default=0)
        hidden[found[1].decode()].update(range(min(numbers, default=1), last + 1))
    return hidden


def _formulas(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the formulas without a value, with their cells; some only repeat another formula."""
    for found in _FORMULA.finditer(content):
        place = _PLACE.search(found[1])
        if place and b't="str"' not in found[1]:  # an empty text is a value
            yield place[1].decode(), f"={unescape(found[2].decode() if found[2] else '…')}"


def _links(archive: zipfile.ZipFile, path: str, content: bytes) -> dict[str, str]:
    """Return the addresses to which cells lead, by a link or by the formula of one."""
    folder, _, name = path.rpartition("/")
    beside = f"{folder}/_rels/{name}.rels"
    told = archive.read(beside) if beside in archive.namelist() else b""
    targets = {found[b"Id"]: found[b"Target"] for found in map(_attributes, _RELATION.findall(told))}
    linked = map(_attributes, _LINK.findall(content))
    found = [(each[b"ref"], targets.get(each.get(b"r:id", b""), b"")) for each in linked] + _LINKING.findall(
        content
    )
    return {at.decode(): unescape(to.decode()) for at, to in found if to.startswith((b"http", b"mailto:"))}


def _attributes(element: bytes) -> dict[bytes, bytes]:
    return dict(_ATTRIBUTE.findall(element))


def _merged(content: bytes, bounds: Bounds) -> dict[tuple[int, int], tuple[int, int]]:
    """Return for each merged cell the cell whose value it shows, by row and column from 1."""
    shown: dict[tuple[int, int], tuple[int, int]] = {}
    for found in islice(_MERGED.finditer(content), _MOST_MERGED):
        left, top, right, bottom = bounds(found[1].decode())
        for row in range(top, min(bottom, top + _MOST_MERGED) + 1):
            for column in range(left, min(right, _MOST_COLUMNS) + 1):
                shown[row, column] = (top, left)
        if len(shown) > _MOST_MERGED * 10:
            break
    return shown


def _rows(
    sheet: Any,
    merged: dict[tuple[int, int], tuple[int, int]],
    formulas: Mapping[str, str],
    links: Mapping[str, str],
) -> Iterator[Sequence[str]]:
    kept: dict[tuple[int, int], str] = {}
    sources = set(merged.values())
    for number, row in enumerate(sheet.iter_rows(max_col=_MOST_COLUMNS + 1), 1):
        cells = [_shown(cell, formulas, links) for cell in row]
        for column in range(1, len(cells) + 1):
            if (number, column) in sources:
                kept[number, column] = cells[column - 1]
            elif (source := merged.get((number, column))) is not None:
                cells[column - 1] = kept.get(source, "")
        while cells and not cells[-1].strip():
            cells.pop()
        yield cells


def _shown(cell: Any, formulas: Mapping[str, str], links: Mapping[str, str]) -> str:
    at = getattr(cell, "coordinate", "") if formulas or links else ""
    value = cell.value
    if value is None:
        return formulas.get(at, "")
    if isinstance(value, (int, float)) and not isinstance(value, bool) and shows_date(cell.number_format):
        from openpyxl.utils.datetime import from_excel  # noqa: PLC0415

        value = from_excel(value, cell.parent.parent.epoch)
    shown = as_shown(value, cell.number_format)
    return f"[{shown}]({links[at]})" if at in links and links[at] != shown else shown


def _limited(lines: Iterable[str]) -> str:
    kept, characters = [], 0
    for line in lines:
        characters += len(line) + 1
        if characters > MOST_CHARACTERS:
            raise too_long()
        kept.append(line)
    return "\n".join(kept)
