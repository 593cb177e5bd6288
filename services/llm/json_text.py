"""Reads JSON written by language models: amid prose, in fences, or not quite well-formed."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

_OPENING = re.compile(r"[{\[]")
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_LITERALS = {"true": "True", "false": "False", "null": "None"}
_LITERAL = re.compile(r"\b(?:true|false|null)\b")
_TYPOGRAPHIC = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "，": ",", "：": ":"})
_CLOSING = {"{": "}", "[": "]"}
_MOST_CHARACTERS = 100_000
_MOST_STARTS = 200
"""Maximum number of brackets tried as the beginning of a value: an answer full of them is not JSON."""

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
    place, starts = 0, 0
    while (opening := _OPENING.search(text, place)) and starts < _MOST_STARTS:
        starts += 1
        value, place = _value_at(text, opening.start())
        if isinstance(value, dict | list):
            yield value


def _value_at(text: str, start: int) -> tuple[Any, int]:
    """Return the value that begins at a bracket, and the position after it; None if there is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError, too
        end = _closing_bracket(text, start)
    if end is not None:
        value = _repaired(text[start : end + 1])
        if value is not None:
            return value, end + 1
    return None, start + 1


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


def _closing_bracket(text: str, start: int) -> int | None:
    """Return the place of the bracket that closes the one at `start`; brackets in quoted text do not count."""
    closing: list[str] = []
    quote = ""
    escaped = False
    for place in range(start, len(text)):
        character = text[place]
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif quote:
            if character == quote:
                quote = ""
        elif character == '"' or (character == "'" and text[place - 1] in " {[,:\n"):
            quote = character
        elif character in _CLOSING:
            closing.append(_CLOSING[character])
        elif closing and character == closing[-1]:
            closing.pop()
            if not closing:
                return place
    return None
