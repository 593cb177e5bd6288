"""Tables: cells that are merged keep their columns, and every table is written in Markdown with its header."""

import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any

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
        cells = [*map(_cell, row[:_MOST_COLUMNS]), *[""] * (min(width, _MOST_COLUMNS) - len(row))]
        yield f"| {' | '.join(cells)} |"
        if header is None:
            header = row
            yield f"|{' --- |' * len(cells)}"


def _cell(text: str) -> str:
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
