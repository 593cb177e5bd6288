"""Converts HTML to Markdown: the whole main content, with its links, numbers and ticks.

Only `conversion_process.py` runs this, because the files may be hostile.
"""

import re
from copy import copy
from typing import Any
from urllib.parse import urljoin

from services.knowledge.document import BadDocument, Converted, Part
from services.knowledge.encodings import declared_in_html, decoded
from services.knowledge.left_out import counted
from services.knowledge.list_numbers import list_number
from services.knowledge.screening import screen_html

_UNSHOWN = ["script", "style", "noscript", "template", "iframe", "svg", "nav", "head", "rt", "rp"]
_CONTROLS = ["select", "button", "input", "datalist"]
_MAIN = ["main", "article"]
_LEAST_SHARE = 0.5
"""Minimum share of a page's text in its main content; with less, the whole page is read."""
_SUPERSCRIPTS = str.maketrans("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")
_SUBSCRIPTS = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
_SCRIPT = re.compile(r"[-+−=()\dn]+")
_KINDS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_NO_ADDRESS = re.compile(r"\A\s*(?:#|$|javascript:|data:|file:|about:|blob:)", re.IGNORECASE)
_INSTRUCTION = re.compile(r"<\?[^>]{0,1000}>")
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_MOST_COLUMNS = 200
_MOST_SPAN = 1_000


def from_html(data: bytes) -> Converted:
    """Read a page. Raises `BadDocument` if it cannot be read; says why."""
    screen_html(data)
    return from_html_text(decoded(data, declared=declared_in_html(data)))


def from_html_text(text: str) -> Converted:
    """Read a page whose encoding is known. Raises `BadDocument` if it is nested too deeply."""
    from bs4 import BeautifulSoup  # noqa: PLC0415 — each kind of document loads its own library
    from markdownify import MarkdownConverter  # noqa: PLC0415

    soup = BeautifulSoup(_INSTRUCTION.sub("", text), "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    left_out = counted(len(soup("iframe")), "embedded page")
    left_out += counted(len([each for each in soup("img") if "alt" not in each.attrs]), "undescribed picture")
    base = soup.find("base", href=True) or soup.find("link", rel="canonical", href=True)
    address = str(base["href"]) if base else ""
    for element in soup(_UNSHOWN):
        if element.decomposed:  # removed together with one around it
            continue
        if not (element.has_attr("shadowrootmode") or (element.name == "svg" and element.find("text"))):
            element.decompose()
    converter = MarkdownConverter(
        heading_style="ATX", bullets="-", escape_asterisks=False, escape_underscores=False, table_infer_header=True
    )
    try:
        _write_signs(soup)
        _write_links(soup, address)
        _write_numbers(soup)
        _unmerge_all(soup)
        content, outside = _content(soup)
        markdown = "\n\n".join(converter.convert_soup(each) for each in content)
    except RecursionError:
        raise BadDocument("is nested too deeply") from None
    if outside:
        left_out.append(f"{outside:,} characters outside the page's main content")
    part = Part(_BLANK_LINES.sub("\n\n", markdown))
    return Converted(title, (part,), headings=True, left_out=tuple(left_out))


def _content(soup: Any) -> tuple[list[Any], int]:
    """Return the outermost elements with a page's main content, or else all of it; and the characters outside."""
    found = [*soup(_MAIN), *soup(role="main")]
    found.sort(key=lambda each: (each.sourceline or 0, each.sourcepos or 0))
    found = list({id(each): each for each in found}.values())
    known = set(map(id, found))
    main = [each for each in found if not any(id(above) in known for above in each.parents)]
    whole, held = _length(soup), sum(map(_length, main))
    return (main, whole - held) if main and held >= _LEAST_SHARE * whole else ([soup], 0)


def _length(element: Any) -> int:
    return sum(len(text.strip()) for text in element.strings)


def _write_signs(soup: Any) -> None:
    """Write as text what HTML shows otherwise: ticks, raised and lowered digits, descriptions of pictures,
    formulas."""
    for box in soup("input", type=["checkbox", "radio"]):
        box.replace_with("☑ " if box.has_attr("checked") else "☐ ")
    for control in soup(_CONTROLS):
        control.decompose()
    for element in soup(["sup", "sub"]):
        if _SCRIPT.fullmatch(said := element.get_text(strip=True)):
            element.replace_with(said.translate(_SUPERSCRIPTS if element.name == "sup" else _SUBSCRIPTS))
    for picture in soup("img"):
        described = " ".join(str(picture.get("alt", "")).split())
        picture.replace_with(f"![{described}]" if described else "")
    for formula in soup("math"):
        if tex := formula.find("annotation", encoding="application/x-tex"):
            formula.replace_with(f"${tex.get_text(strip=True)}$")


def _write_links(soup: Any, base: str) -> None:
    """Keep links that lead elsewhere; the links of a heading stand below it, so that it can be a title."""
    for link in soup("a"):
        address = str(link.get("href", ""))
        if _NO_ADDRESS.match(address) or not link.get_text(strip=True):
            link.unwrap()
            continue
        link.attrs = {"href": urljoin(base, address.strip()).replace("|", "%7C")}
        if heading := link.find_parent(_HEADINGS):
            heading.insert_after(copy(link))
            link.unwrap()


def _write_numbers(soup: Any) -> None:
    """Write the numbers of lists that are not simply 1, 2, 3; an item that is only a list gets none."""
    for inner in soup(["ul", "ol"]):
        item = inner.parent
        if item.name == "li" and len(item.find_all(recursive=False)) == 1 and _length(item) == _length(inner):
            inner.unwrap()
            item.unwrap()
    for ordered in soup("ol"):
        items = ordered.find_all("li", recursive=False)
        if not {"type", "reversed"} & ordered.attrs.keys() and not any("value" in each.attrs for each in items):
            continue
        step = -1 if ordered.has_attr("reversed") else 1
        number = _whole(ordered.get("start"), len(items) if step < 0 else 1)
        kind = _KINDS.get(str(ordered.get("type")), "decimal")
        for item in items:
            number = _whole(item.get("value"), number)
            item.insert(0, f"{list_number(kind, number)}. ")
            item.name = "div"
            number += step
        ordered.name = "div"


def _whole(said: Any, usual: int) -> int:
    return int(said) if said is not None and re.fullmatch(r"-?\d{1,6}", str(said).strip()) else usual


def _unmerge_all(soup: Any) -> None:
    """Repeat merged cells of HTML in every row and column that they cover. A table around other tables lays a
    page out, and is taken apart."""
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
    # Cells from above, by their column, with the number of further rows that they cover.
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
        row.clear()  # also of the line breaks between cells
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
