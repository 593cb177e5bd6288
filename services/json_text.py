"""JSON of callers, read strictly; JSON of columns, read and written fast, since images are megabytes long."""

import json
from collections import Counter
from typing import Any

import orjson
from pydantic_core import from_json

from services.errors import InvalidInput

_LONGEST_KEY_SHOWN = 80


def strict_json(text: str | bytes) -> Any:
    """Return JSON of a caller as Python's values.

    Raises:
        InvalidInput: an object has a key twice; the field is the key.
        ValueError: it is no JSON.
        RecursionError: it has too many levels.
    """
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):  # parsers silently take the last, which may not be what was meant
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise InvalidInput(key[:_LONGEST_KEY_SHOWN], "is given more than once in one object")
    return found


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
