"""Marks for the values of statements that hold users' words, and fast reading and writing of JSON columns.

With encryption on, marked values are sealed on their way out; without, they are stored like other values. JSON is
fast because JSON with images has megabytes.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import orjson
from psycopg.types.json import Jsonb
from pydantic_core import from_json


class Words(str):
    """A text to be sealed as a whole; an empty text stays as it is."""

    __slots__ = ()


class Sealed(str):
    """A text that is already sealed and is stored as it is."""

    __slots__ = ()


class Fingerprint(str):
    """A name made of a digest of words, such as the key of an imported message; a keyed digest replaces it."""

    __slots__ = ()


class WordsDigest(bytes):
    """A digest of words, 16 bytes; it is encrypted so that equal digests of a user stay equal."""

    __slots__ = ()


class SoughtDigest(bytes):
    """A digest of words that a statement compares with a list of stored ones. While a user's key is being
    renewed, several keys have sealed the user's digests; the list then holds one block for each key."""

    __slots__ = ()


class WordsJson(Jsonb):
    """JSON to be sealed as a whole, even its keys, so that statements cannot look into it."""


class WordsByKey(Jsonb):
    """A JSON object whose values are sealed one by one; statements can remove and replace them by their keys."""


class WordsInJson(Jsonb):
    """JSON whose texts are sealed, except ids and the values of the keys in `clear`. Statements can read its
    keys, numbers and structure."""

    def __init__(self, obj: Any, clear: Iterable[str] = ()) -> None:
        super().__init__(obj)
        self.clear = frozenset(clear)


_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MARKS = (Words, Fingerprint, WordsDigest, SoughtDigest, WordsJson, WordsByKey, WordsInJson)


def words(text: str | None) -> Words | None:
    """Mark a text, if there is one."""
    return None if text is None else Words(text)


def all_words(texts: Iterable[str | None]) -> list[Words | None]:
    """Mark each of some texts."""
    return [words(text) for text in texts]


def words_json(value: Any) -> WordsJson | None:
    """Mark JSON as a whole, if there is any."""
    return None if value is None else WordsJson(value)


def words_in_json(value: Any, clear: Iterable[str] = ()) -> WordsInJson | None:
    """Mark the texts in JSON, if there is any."""
    return None if value is None else WordsInJson(value, clear)


def is_marked(value: object) -> bool:
    """Return whether a parameter is marked, or is a list that holds a marked value."""
    if isinstance(value, list):
        return any(isinstance(each, MARKS) for each in value)
    return isinstance(value, MARKS)


def is_id(text: str) -> bool:
    """Return whether a text is a UUID in its usual form."""
    return _ID.fullmatch(text) is not None


def json_bytes(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:  # such as an integer of more than 64 bits
        return json.dumps(value).encode()


def json_value(text: str | bytes) -> Any:
    """Return the value that JSON describes. Raises `ValueError` if the text is no JSON."""
    try:
        # Strings are not cached, because they would outlive the users who had them forgotten.
        return from_json(text, cache_strings="none")
    except ValueError:  # such as more levels than this parser reads
        return json.loads(text)
