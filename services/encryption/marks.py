"""Values of statements: marks on those that hold users' words, and JSON of columns, read and written fast.

With encryption on, marked values are sealed on their way out; without, they are stored like unmarked ones.
JSON with images is megabytes long.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import orjson
from psycopg.types.json import Jsonb
from pydantic_core import from_json


class Words(str):
    """A text, sealed as a whole. An empty one holds nothing and stays as it is."""

    __slots__ = ()


class Sealed(str):
    """A text that was sealed before, which is stored as it is."""

    __slots__ = ()


class Fingerprint(str):
    """A name made of a digest of words, such as the key of an imported message: replaced by a keyed digest."""

    __slots__ = ()


class WordsDigest(bytes):
    """A digest of words, 16 bytes: encrypted so that equal digests of a user stay equal."""

    __slots__ = ()


class SoughtDigest(bytes):
    """A digest of words that a statement compares with stored ones, in a list.

    Until a user's key is renewed in all rows, there are blocks of several keys: the list then holds one of each.
    """

    __slots__ = ()


class WordsJson(Jsonb):
    """JSON, sealed as a whole, so that not even its keys can be read; statements cannot look into it."""


class WordsByKey(Jsonb):
    """A JSON object whose values are sealed one by one; statements can remove and replace them by their keys."""


class WordsInJson(Jsonb):
    """JSON in which every text is sealed but ids, and what stands under the keys of `clear`.

    Keys, numbers and the structure can be read, and statements can look into it.
    """

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
    """Whether a parameter is marked, or is a list in which something is."""
    if isinstance(value, list):
        return any(isinstance(each, MARKS) for each in value)
    return isinstance(value, MARKS)


def is_id(text: str) -> bool:
    """Whether a text is a UUID in its usual form."""
    return _ID.fullmatch(text) is not None


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:  # such as an integer of more than 64 bits
        return json.dumps(value).encode()


def json_value(text: str | bytes) -> Any:
    """Return JSON as Python's values.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        # Strings are not cached: they would outlive the users who had them forgotten.
        return from_json(text, cache_strings="none")
    except ValueError:  # such as more levels than this parser reads
        return json.loads(text)
