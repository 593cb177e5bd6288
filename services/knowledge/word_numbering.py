"""Labels of numbered paragraphs, as Word shows them: 第一条, 2.1, (a)."""

import re
from xml.etree import ElementTree

from services.knowledge.list_numbers import list_number

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PLACE = re.compile(r"%([1-9])")
_BOXES = {"\uf0fe": "☑", "\uf0fd": "☒", "\uf06f": "☐", "\uf0a8": "☐", "\uf071": "☐", "\uf0fc": "✓", "\uf0fb": "✗"}
"""Bullets of the font Wingdings that show whether something is ticked."""

Element = ElementTree.Element
_Properties = tuple[str | None, str | None]
"""Id of a numbering and level in it, as a paragraph or a style names them."""


class WordNumbering:
    """Counts the numbered paragraphs of a document; call it for each in their order."""

    def __init__(self, numbering: Element, styles: Element) -> None:
        """Take the roots of `numbering.xml` and `styles.xml`."""
        self._styles = {style.get(f"{W}styleId"): style for style in styles.iter(f"{W}style")}
        self._default = next(
            (name for name, style in self._styles.items() if _is_default_of_paragraphs(style)), None
        )
        self._abstract = {each.get(f"{W}abstractNumId"): each for each in numbering.iter(f"{W}abstractNum")}
        self._numberings = {each.get(f"{W}numId"): each for each in numbering.iter(f"{W}num")}
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[str] = set()

    def label(self, paragraph: Element) -> str | None:
        """Count a paragraph and return its number with the space behind it. None if it has none: no bullets
        have one but boxes."""
        properties = paragraph.find(f"{W}pPr")
        style_id = _value(properties, "pStyle") or self._default
        own, level = _numbered(properties)
        if own is None or level is None:
            inherited, its_level = self._of_style(style_id)
            own, level = own or inherited, level or (its_level if own in {None, inherited} else None)
        if own is None or own not in self._numberings or _is_deleted(paragraph):
            return None
        abstract_id, levels = self._levels(own)
        depth = int(level) if level else _level_of_style(levels, style_id)
        if depth not in levels:
            return None
        return self._counted(abstract_id, own, depth, levels)

    def _counted(self, abstract_id: str, own: str, depth: int, levels: dict[int, Element]) -> str | None:
        counts = self._counts.setdefault(abstract_id, {})
        if own not in self._begun:
            self._begun.add(own)
            for override in self._numberings[own].iter(f"{W}lvlOverride"):
                if (start := _value(override, "startOverride")) is not None:
                    counts[int(override.get(f"{W}ilvl", 0))] = int(start) - 1
        counts[depth] = counts.get(depth, _start(levels[depth]) - 1) + 1
        for deeper in [each for each in counts if each > depth]:
            restart = _value(levels.get(deeper), "lvlRestart")
            if restart is None or (int(restart) > 0 and depth < int(restart)):
                del counts[deeper]
        return _written(depth, levels, counts)

    def _of_style(self, style_id: str | None) -> _Properties:
        number, level, passed = None, None, 0
        while style_id in self._styles and passed < len(self._styles) and number is None:
            style = self._styles[style_id]
            number, its_level = _numbered(style.find(f"{W}pPr"))
            level, passed = level or its_level, passed + 1
            style_id = _value(style, "basedOn")
        return number, level

    def _levels(self, own: str) -> tuple[str, dict[int, Element]]:
        """Return the id of the list that a numbering counts in, and its levels."""
        abstract_id = _value(self._numberings[own], "abstractNumId") or ""
        abstract = self._abstract.get(abstract_id)
        linked, _ = self._of_style(_value(abstract, "numStyleLink"))
        if linked in self._numberings and linked != own:
            abstract_id = _value(self._numberings[linked], "abstractNumId") or ""
            abstract = self._abstract.get(abstract_id)
        levels = list(abstract.findall(f"{W}lvl")) if abstract is not None else []
        levels += self._numberings[own].findall(f"{W}lvlOverride/{W}lvl")
        return abstract_id, {int(each.get(f"{W}ilvl", 0)): each for each in levels}


def _written(depth: int, levels: dict[int, Element], counts: dict[int, int]) -> str | None:
    level = levels[depth]
    space = "" if _value(level, "suff") == "nothing" else " "
    text, kind = _value(level, "lvlText") or "", _value(level, "numFmt")
    if kind == "bullet":
        return f"{_BOXES[text]}{space}" if text in _BOXES else None
    legal = _value(level, "isLgl", "1") not in {None, "0", "false"}

    def count(found: re.Match[str]) -> str:
        above = int(found[1]) - 1
        its_level = levels.get(above)
        its_kind = _value(its_level, "numFmt") or "decimal"
        number = counts.get(above, _start(its_level))
        return list_number("decimal" if legal and its_kind != "none" else its_kind, number)

    return f"{_PLACE.sub(count, text)}{space}"


def _numbered(properties: Element | None) -> _Properties:
    found = properties.find(f"{W}numPr") if properties is not None else None
    return _value(found, "numId"), _value(found, "ilvl")


def _level_of_style(levels: dict[int, Element], style_id: str | None) -> int:
    return next((depth for depth, level in levels.items() if style_id and _value(level, "pStyle") == style_id), 0)


def _start(level: Element | None) -> int:
    return int(_value(level, "start") or 1)


def _value(element: Element | None, name: str, usual: str | None = None) -> str | None:
    """Return the value of an element's child; `usual` if there is none."""
    found = element.find(f"{W}{name}") if element is not None else None
    return found.get(f"{W}val", usual) if found is not None else None


def _is_deleted(paragraph: Element) -> bool:
    """Return whether a tracked change removes a paragraph."""
    gone = paragraph.find(f"{W}pPr/{W}rPr/{W}del") is not None
    return gone and not any(text.text for text in paragraph.iter(f"{W}t"))


def _is_default_of_paragraphs(style: Element) -> bool:
    return style.get(f"{W}type") == "paragraph" and style.get(f"{W}default") in {"1", "true"}
