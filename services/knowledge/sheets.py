"""Tables: of CSV, XLSX and HTML, all written in Markdown with their header.

Only `conversion_process.py` runs this: the files may be hostile.
"""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from datetime import datetime, time
from io import BytesIO
from itertools import islice
from typing import Any

from services.knowledge.document import MOST_CHARACTERS, BadDocument, Converted, Part
from services.knowledge.encodings import decoded
from services.knowledge.screening import screen_xlsx, too_long

_MOST_COLUMNS = 200
_MOST_SPAN = 1_000
_LINE_BREAKS = re.compile(r"(?<!\s)\s*[\r\n\v\f\u2028\u2029]+\s*")


def markdown_table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, of which the first row that holds anything is the header."""
    header: Sequence[str] | None = None
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        width = max(len(row), len(header or ()))
        cells = [
            *map(_table_cell, row[:_MOST_COLUMNS]),
            *[""] * (min(width, _MOST_COLUMNS) - len(row)),
        ]
        yield f"| {' | '.join(cells)} |"
        if header is None:
            header = row
            yield f"|{' --- |' * len(cells)}"


def _table_cell(text: str) -> str:
    return _LINE_BREAKS.sub(" ", text.strip()).replace("|", "\\|")


def unmerge(soup: Any) -> None:
    """Repeat merged cells of HTML in every row and column that they cover.

    A table around other tables lays a page out, and is taken apart.
    """
    for table in soup("table"):
        if table.find("table"):
            _take_apart(table)
        else:
            _unmerge(table)


def _take_apart(table: Any) -> None:
    for part in table(["thead", "tbody", "tfoot", "tr", "td", "th", "caption"]):
        if part.find_parent("table") is table:
            part.name = "div"
            part.attrs = {}
    table.name = "div"


def _unmerge(table: Any) -> None:
    # Cells from above, by their column, with the number of further rows in which they stand.
    waiting: dict[int, tuple[int, Any]] = {}
    for row in table("tr"):
        placed: list[Any] = []
        for cell in row.find_all(["td", "th"], recursive=False):
            _fill(placed, waiting)
            columns, rows = _span(cell, "colspan", _MOST_COLUMNS), _span(cell, "rowspan", _MOST_SPAN)
            for number in range(min(columns, _MOST_COLUMNS - len(placed))):
                if rows > 1:
                    waiting[len(placed)] = (rows - 1, cell)
                placed.append(cell if number == 0 else copy(cell))
        _fill(placed, waiting)
        row.extend(placed)


def _fill(placed: list[Any], waiting: dict[int, tuple[int, Any]]) -> None:
    """Place the cells that reach down from above, up to the next free column."""
    while (found := waiting.get(len(placed))) is not None:
        left, cell = found
        if left > 1:
            waiting[len(placed)] = (left - 1, cell)
        else:
            del waiting[len(placed)]
        placed.append(copy(cell))


def _span(cell: Any, name: str, most: int) -> int:
    said = str(cell.attrs.pop(name, ""))
    return max(1, min(most, int(said))) if said.isascii() and said.isdigit() else 1


_DELIMITERS = ",;\t|"
_SNIFFED_LINES = 20
_LONGEST_FIELD = 1_000_000
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell [^>]*?ref=\"([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})\"")
_MOST_MERGED = 10_000


def from_csv(data: bytes) -> Converted:
    """Read a CSV file, whatever separates its fields.

    Raises:
        BadDocument: it cannot be read; says why.
    """
    text = decoded(data)
    csv.field_size_limit(_LONGEST_FIELD)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    try:
        table = _limited(markdown_table(rows))
    except csv.Error as error:
        raise BadDocument(f"is no CSV that can be read: {error}") from None
    return Converted("", (Part(table),), headings=False)


def _delimiter(text: str) -> str:
    """The character that stands equally often in the first lines; of several, the most frequent."""
    lines = [line for line in islice(io.StringIO(text), _SNIFFED_LINES) if line.strip()]
    counts = {mark: [line.count(mark) for line in lines] for mark in _DELIMITERS}
    return max(_DELIMITERS, key=lambda mark: (min(counts[mark], default=0), sum(counts[mark])))


Bounds = Callable[[str], tuple[int, int, int, int]]
"""Reads a range such as A1:B2: its first column and row, its last column and row, from 1."""


def from_xlsx(data: bytes) -> Converted:
    """Read the sheets of a workbook: values as they are shown, each sheet under its name.

    Raises:
        BadDocument: it cannot be read; says why.
    """
    try:
        screen_xlsx(data)
        from openpyxl import load_workbook, utils  # noqa: PLC0415 — each kind of document loads its own library

        book = load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
        with zipfile.ZipFile(BytesIO(data)) as archive:
            lines = _limited(_sheets(book, archive, utils.range_boundaries))
    except BadDocument:
        raise
    except Exception as error:  # the library raises whatever its parsers do
        raise BadDocument("is broken: no workbook can be read from it") from error
    title = book.properties.title if book.properties else None
    return Converted(title or "", (Part(lines),), headings=True)


def _sheets(book: Any, archive: zipfile.ZipFile, bounds: Bounds) -> Iterator[str]:
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            continue
        merged = _merged(archive, getattr(sheet, "_worksheet_path", ""), bounds)
        table = list(markdown_table(_rows(sheet, merged)))
        if table:
            yield f"## {sheet.title}\n"
            yield from table
            yield ""


def _merged(archive: zipfile.ZipFile, path: str, bounds: Bounds) -> dict[tuple[int, int], tuple[int, int]]:
    """The cell whose value a merged cell shows, by row and column, both from 1."""
    if path not in archive.namelist():
        return {}
    shown: dict[tuple[int, int], tuple[int, int]] = {}
    for found in islice(_MERGED.finditer(archive.read(path)), _MOST_MERGED):
        left, top, right, bottom = bounds(found[1].decode())
        for row in range(top, min(bottom, top + _MOST_MERGED) + 1):
            for column in range(left, min(right, _MOST_COLUMNS) + 1):
                shown[row, column] = (top, left)
        if len(shown) > _MOST_MERGED * 10:
            break
    return shown


def _rows(sheet: Any, merged: dict[tuple[int, int], tuple[int, int]]) -> Iterator[Sequence[str]]:
    kept: dict[tuple[int, int], str] = {}
    sources = set(merged.values())
    for number, row in enumerate(sheet.iter_rows(max_col=_MOST_COLUMNS, values_only=True), 1):
        cells = [_shown(value) for value in row]
        for column in range(1, len(cells) + 1):
            if (number, column) in sources:
                kept[number, column] = cells[column - 1]
            elif (source := merged.get((number, column))) is not None:
                cells[column - 1] = kept.get(source, "")
        while cells and not cells[-1].strip():
            cells.pop()
        yield cells


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _limited(lines: Iterable[str]) -> str:
    kept, characters = [], 0
    for line in lines:
        characters += len(line) + 1
        if characters > MOST_CHARACTERS:
            raise too_long()
        kept.append(line)
    return "\n".join(kept)
