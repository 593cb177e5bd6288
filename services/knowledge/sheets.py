"""CSV and XLSX as Markdown tables. Only `conversion_process.py` runs this: the files may be hostile."""

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time
from io import BytesIO
from itertools import islice
from typing import Any

from services.knowledge.document import MOST_CHARACTERS, BadDocument, Converted, Part
from services.knowledge.encodings import decoded
from services.knowledge.screening import screen_xlsx, too_long
from services.knowledge.tables import markdown_table
from services.text.storable import storable

_DELIMITERS = ",;\t|"
_SNIFFED_LINES = 20
_LONGEST_FIELD = 1_000_000
_MOST_COLUMNS = 200
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell [^>]*?ref=\"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})\"")
_MOST_MERGED = 10_000


def from_csv(data: bytes) -> Converted:
    """Read a CSV file, whatever separates its fields.

    Raises:
        BadDocument: it cannot be read; says why.
    """
    text = storable(decoded(data))
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


def from_xlsx(data: bytes) -> Converted:
    """Read the sheets of a workbook: values as they are shown, each sheet under its name.

    Raises:
        BadDocument: it cannot be read; says why.
    """
    try:
        screen_xlsx(data)
        import openpyxl  # noqa: PLC0415 — each kind of document loads its own library

        book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
        with zipfile.ZipFile(BytesIO(data)) as archive:
            lines = _limited(_sheets(book, archive))
    except BadDocument:
        raise
    except Exception as error:  # the library raises whatever its parsers do
        raise BadDocument("is broken: no workbook can be read from it") from error
    title = book.properties.title if book.properties else None
    return Converted(storable(title or ""), (Part(lines),), headings=True)


def _sheets(book: Any, archive: zipfile.ZipFile) -> Iterator[str]:
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            continue
        merged = _merged(archive, getattr(sheet, "_worksheet_path", ""))
        table = list(markdown_table(_rows(sheet, merged)))
        if table:
            yield f"## {sheet.title}\n"
            yield from table
            yield ""


def _merged(archive: zipfile.ZipFile, path: str) -> dict[tuple[int, int], tuple[int, int]]:
    """The cell whose value a merged cell shows, by row and column, both from 1."""
    if path not in archive.namelist():
        return {}
    shown: dict[tuple[int, int], tuple[int, int]] = {}
    for found in islice(_MERGED.finditer(archive.read(path)), _MOST_MERGED):
        left, top, right, bottom = _column(found[1]), int(found[2]), _column(found[3]), int(found[4])
        for row in range(top, min(bottom, top + _MOST_MERGED) + 1):
            for column in range(left, min(right, _MOST_COLUMNS) + 1):
                shown[row, column] = (top, left)
        if len(shown) > _MOST_MERGED * 10:
            break
    return shown


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number


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
    return storable("\n".join(kept))
