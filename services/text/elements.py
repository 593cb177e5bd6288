"""Elements of a text, `<name …>…</name>`, found by their names in time proportional to the length of the text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Element:
    """One element; it ends with the first closing mark of its name."""

    name: str
    start: int
    end: int
    inside: str


def elements(text: str, *names: str) -> Iterator[Element]:
    """Yield the elements of these names, in any case and in order; they do not overlap. An unclosed element is
    left out.

    A pattern such as `<name>.*?</name>` would search the whole text again for every opening mark.
    """
    unclosed: set[str] = set()
    at = 0
    opening = _opening(names)
    while opens := opening.search(text, at):
        name, at = opens[1].lower(), opens.end()
        begin = text.find(">", at) + 1
        if not begin:
            return
        closes = None if name in unclosed else _closing(name).search(text, begin)
        if closes is None:
            unclosed.add(name)
        else:
            at = closes.end()
            yield Element(name, opens.start(), at, text[begin : closes.start()])


def without_elements(text: str, *names: str) -> str:
    """Return a text without its elements of these names."""
    kept, at = [], 0
    for each in elements(text, *names):
        kept.append(text[at : each.start])
        at = each.end
    return "".join([*kept, text[at:]])


@lru_cache(maxsize=16)
def _opening(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<({'|'.join(names)})(?=[\s/>])", re.IGNORECASE)


@lru_cache(maxsize=16)
def _closing(name: str) -> re.Pattern[str]:
    return re.compile(f"</{name}>", re.IGNORECASE)
