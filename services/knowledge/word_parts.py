"""Rewrites the XML of a Word document so that mammoth also reads numbers, formulas, ruby text and text boxes."""

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from xml.etree import ElementTree

from services.knowledge.left_out import parts_left_out
from services.knowledge.word_numbering import WordNumbering

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
_NEEDS = (b"<m:oMath", b":oMath", b":ruby", b":txbxContent")
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"

Element = ElementTree.Element


_NUMBERING, _STYLES = "word/numbering.xml", "word/styles.xml"
_TEXT = re.compile(rb"<w:t[ >]")
_LEFT_OUT: Mapping[str, tuple[str, bytes]] = {
    "comment": (r"word/comments\.xml", rb"<w:comment "),
    "deleted passage (tracked changes)": (r"word/document\.xml", rb"<w:(?:del|moveFrom) [^>]*[^/]>(?!</w:rPr>)"),
    "chart": (r"word/charts/chart\d*\.xml", rb"<c:chart>"),
    "diagram": (r"word/diagrams/data\d*\.xml", rb"<dgm:dataModel"),
    "embedded file": (r"word/embeddings/.+", b""),
}
"""Parts of a document that are not read: their files, and how each part begins."""


def left_out_of_docx(data: bytes) -> tuple[str, ...]:
    """Return how much of a document stands in places that are not read."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        told = parts_left_out(archive, _LEFT_OUT)
        pages = [each for each in archive.namelist() if re.fullmatch(r"word/(?:header|footer)\d*\.xml", each)]
        told += ["page headers and footers"] if any(_TEXT.search(archive.read(each)) for each in pages) else []
        return tuple(told)


def readable_docx(data: bytes) -> bytes:
    """Return the document with numbers and formulas as text, ruby as its base, and text boxes as paragraphs."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        numbering, names = None, archive.namelist()
        if _NUMBERING in names:
            styles = _tree(archive.read(_STYLES)) if _STYLES in names else ElementTree.Element("none")
            numbering = WordNumbering(_tree(archive.read(_NUMBERING)), styles)
        rewritten = {name: _rewritten(archive, name, numbering) for name in _PARTS}
        changed = {name: again for name, again in rewritten.items() if again is not None}
        if not changed:
            return data
        made = BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as copied:
            for member in archive.infolist():
                if member.filename.endswith((".xml", ".rels")):
                    copied.writestr(member.filename, changed.get(member.filename) or archive.read(member))
        return made.getvalue()


def _tree(content: bytes) -> Element:
    return ElementTree.fromstring(content)  # noqa: S314 — a document that declares entities is refused before


def _rewritten(archive: zipfile.ZipFile, name: str, numbering: WordNumbering | None) -> bytes | None:
    if name not in archive.namelist():
        return None
    content = archive.read(name)
    if numbering is None and not any(each in content for each in _NEEDS):
        return None
    root = _tree(content)
    parents = {child: parent for parent in root.iter() for child in parent}
    for formula in list(root.iter(f"{_M}oMath")):
        _replace(parents, formula, [_run(_linear(formula))])
    for formulas in list(root.iter(f"{_M}oMathPara")):
        _replace(parents, formulas, [each for each in formulas if each.tag == f"{_W}r"])
    for ruby in list(root.iter(f"{_W}ruby")):
        base = ruby.find(f"{_W}rubyBase")
        run = parents[ruby]
        _replace(parents, run, list(base) if base is not None else [])
    for alternative in list(root.iter(f"{_MC}AlternateContent")):
        _lift_box(parents, alternative, alternative.find(f"{_MC}Choice"))
    for drawing in list(root.iter(f"{_W}drawing")):
        if drawing in parents:
            _lift_box(parents, drawing, drawing)
    for paragraph in root.iter(f"{_W}p"):
        if numbering is not None and (label := numbering.label(paragraph)) is not None:
            _number(paragraph, label)
    again: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return again


def _number(paragraph: Element, label: str) -> None:
    """Write a paragraph's number at its beginning, and remove its numbering."""
    properties = paragraph.find(f"{_W}pPr")
    if properties is None:
        properties = ElementTree.Element(f"{_W}pPr")
        paragraph.insert(0, properties)
    for old in properties.findall(f"{_W}numPr"):
        properties.remove(old)
    none = ElementTree.SubElement(properties, f"{_W}numPr")
    for name in ("ilvl", "numId"):
        ElementTree.SubElement(none, f"{_W}{name}", {f"{_W}val": "0"})
    if any(text.text for text in paragraph.iter(f"{_W}t")):
        paragraph.insert(list(paragraph).index(properties) + 1, _run(label))


def _replace(parents: dict[Element, Element], old: Element, new: list[Element]) -> None:
    parent = parents.get(old)
    if parent is None or old not in list(parent):
        return
    place = list(parent).index(old)
    parent[place : place + 1] = new
    for each in new:
        parents[each] = parent


def _lift_box(parents: dict[Element, Element], shape: Element, holder: Element | None) -> None:
    """Move the paragraphs of a text box behind the paragraph that it is anchored in."""
    boxes = list(holder.iter(f"{_W}txbxContent")) if holder is not None else []
    anchor = _above(parents, shape, f"{_W}p")
    if not boxes or anchor is None or anchor not in parents:
        return
    paragraphs = [each for box in boxes for each in box]
    _replace(parents, shape, [])
    parent = parents[anchor]
    place = list(parent).index(anchor) + 1
    parent[place:place] = paragraphs
    for each in paragraphs:
        parents[each] = parent


def _above(parents: dict[Element, Element], element: Element, tag: str) -> Element | None:
    found: Element | None = element
    while found is not None and found.tag != tag:
        found = parents.get(found)
    return found


def _run(text: str) -> Element:
    run = ElementTree.Element(f"{_W}r")
    said = ElementTree.SubElement(run, f"{_W}t", {_SPACE: "preserve"})
    said.text = text
    return run


def _linear(element: Element) -> str:
    """Return a formula on one line: `(a + b)/c`, `x^2`, `√(x)`."""
    name = element.tag.removeprefix(_M)
    if name == "t":
        return element.text or ""
    write = _WRITTEN.get(name)
    return write(element) if write is not None else "".join(_parts(element))


def _fraction(element: Element) -> str:
    kind = element.find(f"{_M}fPr/{_M}type")
    if kind is not None and kind.get(f"{_M}val") == "noBar":  # a binomial, not a quotient
        return f"{_of(element, 'num')} over {_of(element, 'den')}"
    return f"{_grouped(_of(element, 'num'))}/{_grouped(_of(element, 'den'))}"


def _scripts(element: Element) -> str:
    return f"{_of(element, 'e')}{_limits(element)}"


def _function(element: Element) -> str:
    said = _of(element, "e")
    return f"{_of(element, 'fName')}{said if said.startswith('(') else f'({said})'}"


def _limit(element: Element) -> str:
    sign = "_" if element.tag == f"{_M}limLow" else "^"
    return f"{_of(element, 'e')}{sign}{_grouped(_of(element, 'lim'))}"


def _rows(element: Element) -> str:
    rows = element.findall(f"{_M}mr") or element.findall(f"{_M}e")
    return "; ".join(", ".join(_parts(row)) if row.tag == f"{_M}mr" else _linear(row) for row in rows)


def _root(element: Element) -> str:
    return f"{_of(element, 'deg')}√({_of(element, 'e')})"


def _delimited(element: Element) -> str:
    inside = ", ".join(_linear(each) for each in element.findall(f"{_M}e"))
    return f"{_property(element, 'begChr', '(')}{inside}{_property(element, 'endChr', ')')}"


def _operator(element: Element) -> str:
    return f"{_property(element, 'chr', '∫')}{_limits(element)} {_of(element, 'e')}"


_WRITTEN: Mapping[str, Callable[[Element], str]] = {
    "f": _fraction,
    "sSup": _scripts,
    "sSub": _scripts,
    "sSubSup": _scripts,
    "rad": _root,
    "d": _delimited,
    "nary": _operator,
    "func": _function,
    "limLow": _limit,
    "limUpp": _limit,
    "m": _rows,
    "eqArr": _rows,
}


def _parts(element: Element) -> Iterator[str]:
    for child in element:
        if not child.tag.endswith("Pr"):
            yield _linear(child)


def _of(element: Element, name: str) -> str:
    found = element.find(f"{_M}{name}")
    return _linear(found) if found is not None else ""


def _limits(element: Element) -> str:
    below, above = _of(element, "sub"), _of(element, "sup")
    return (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")


def _property(element: Element, name: str, usual: str) -> str:
    found = element.find(f"{_M}{element.tag.removeprefix(_M)}Pr/{_M}{name}")
    return found.get(f"{_M}val", usual) if found is not None else usual


def _grouped(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"
