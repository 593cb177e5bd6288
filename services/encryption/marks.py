"""Marks on parameters of statements that hold users' words; with encryption on they are sealed on their way out.

Without encryption a marked value is stored like an unmarked one.
"""

import re
from collections.abc import Iterable
from typing import Any, overload

from psycopg.types.json import Jsonb


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
MARKS = (Words, Fingerprint, WordsDigest, WordsJson, WordsByKey, WordsInJson)


@overload
def words(text: str) -> Words: ...
@overload
def words(text: None) -> None: ...
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
