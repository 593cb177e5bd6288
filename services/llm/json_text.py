"""Reads JSON written by language models: amid prose, in fences, or not quite well-formed."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from services.json_levels import TooDeep, check_levels

_OPENING = re.compile(r"[{\[]")
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_LITERALS = {"true": "True", "false": "False", "null": "None"}
_LITERAL = re.compile(r"\b(?:true|false|null)\b")
_TYPOGRAPHIC = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "，": ",", "：": ":"})
_CLOSING = {"{": "}", "[": "]"}
_MOST_CHARACTERS = 100_000
_MOST_STARTS = 200
"""Maximum number of brackets tried as the beginning of a value: an answer full of them is not JSON."""
_MOST_LOOKS = 8

_DECODER = json.JSONDecoder(strict=False)


def json_values(text: str) -> list[Any]:
    """Return the JSON objects and arrays in a model's answer, in order; of nested ones the outermost that parse.

    Trailing commas, single quotes, Python's literals and typographic quotes are accepted. Of an answer that was
    cut off, the objects that are complete remain.
    """
    answer = text[:_MOST_CHARACTERS]
    found = list(_values(answer))
    return found or list(_values(answer.translate(_TYPOGRAPHIC)))


def _values(text: str) -> Iterator[Any]:
    place, starts, brackets = 0, 0, _Brackets(text)
    while (opening := _OPENING.search(text, place)) and starts < _MOST_STARTS:
        starts += 1
        value, place = _value_at(text, opening.start(), brackets)
        if isinstance(value, dict | list):
            yield value


def _value_at(text: str, start: int, brackets: "_Brackets") -> tuple[Any, int]:
    """Return the value that begins at a bracket, and the position after it; None if there is none."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError, too
        closing = brackets.closing(start)
    else:
        return (None if _is_too_deep(text[start:end]) else value), end
    if closing is not None:
        if _is_too_deep(text[start : closing + 1]):
            return None, closing + 1
        value = _repaired(text[start : closing + 1])
        if value is not None:
            return value, closing + 1
    return None, start + 1


def _is_too_deep(text: str) -> bool:
    try:
        check_levels(text)
    except TooDeep:
        return True
    return False


def _repaired(text: str) -> Any:
    text = _TRAILING_COMMA.sub("", text)
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(_LITERAL.sub(lambda found: _LITERALS[found.group()], text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


class _Brackets:
    """Finds where the brackets of a text are closed; brackets in quoted text do not count.

    One look from a bracket finds all brackets inside it. Which text is quoted depends on where one begins, so a
    bracket that seems quoted from there is examined by itself, a few times.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._closings: dict[int, int | None] = {}
        self._looks_left = _MOST_LOOKS

    def closing(self, start: int) -> int | None:
        """Return the place of the bracket that closes the one at `start`."""
        if start not in self._closings and self._looks_left:
            self._looks_left -= 1
            self._look(start)
        return self._closings.get(start)

    def _look(self, start: int) -> None:
        open_at: list[int] = []
        quote = ""
        escaped = False
        for place in range(start, len(self._text)):
            character = self._text[place]
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif quote:
                if character == quote:
                    quote = ""
            elif character == '"' or (character == "'" and self._text[place - 1] in " {[,:\n"):
                quote = character
            elif character in _CLOSING:
                self._closings.setdefault(place, None)
                open_at.append(place)
            elif open_at and character == _CLOSING[self._text[open_at[-1]]]:
                self._closings[open_at.pop()] = place
                if not open_at:
                    return
