"""Values of callers: plain reasons why one does not match its schema, valid ids, and strict reading of JSON."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.errors import InvalidInput
from services.json_levels import check_levels

Location = tuple[int | str, ...]

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_MAYBE_HALF = re.compile("[\ud800-\udfff]|\\\\u[dD][89a-fA-F]")
_MAYBE_HALF_IN_BYTES = re.compile(rb"\xed[\xa0-\xbf]|\\u[dD][89a-fA-F]")
_HALF = "holds half of a character (a lone surrogate)"

_NUMBER = "must be a number"
_TEXT = "must be a text"
_INTEGER = "must be a whole number"
_FLAG = "must be true or false"
_LIST = "must be a list"
_OBJECT = "must be a JSON object"
_UUID = "must be a UUID: 8-4-4-4-12 hexadecimal digits"
_TIME = "must be an ISO 8601 time such as 2026-11-21T10:00:00+08:00"
_DATE = "must be a date such as 2026-11-21"

_REASONS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "missing": "is required",
    "string_type": _TEXT,
    "int_type": _INTEGER,
    "int_parsing": _INTEGER,
    "int_parsing_size": "is too large a number",
    "int_from_float": _INTEGER,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "must be a finite number",
    "bool_type": _FLAG,
    "bool_parsing": _FLAG,
    "list_type": _LIST,
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "uuid_type": _UUID,
    "uuid_parsing": _UUID,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "timezone_aware": "needs an offset, such as +08:00 or Z",
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "literal_error": lambda ctx: f"must be {ctx['expected']}",
    "string_pattern_mismatch": lambda ctx: f"must match {ctx['pattern']}",
    "string_too_short": lambda ctx: f"must have at least {_counted(ctx['min_length'], 'character')}",
    "string_too_long": lambda ctx: f"must have at most {_counted(ctx['max_length'], 'character')}",
    "too_short": lambda ctx: f"must have at least {_counted(ctx['min_length'], 'item')}",
    "too_long": lambda ctx: f"must have at most {_counted(ctx['max_length'], 'item')}",
    "greater_than": lambda ctx: f"must be more than {ctx['gt']:g}",
    "greater_than_equal": lambda ctx: f"must be {ctx['ge']:g} or more",
    "less_than": lambda ctx: f"must be less than {ctx['lt']:g}",
    "less_than_equal": lambda ctx: f"must be {ctx['le']:g} or less",
    "multiple_of": lambda ctx: f"must be a multiple of {ctx['multiple_of']}",
}


def plain_reason(error: Mapping[str, Any], accepted: Sequence[str] = ()) -> str:
    """Return what is wrong with the field of pydantic's error; `accepted` are the fields known in its place."""
    if error["type"] == "extra_forbidden":
        return f"is not known here; accepted: {', '.join(accepted)}" if accepted else "is not known here"
    reason = _REASONS.get(error["type"])
    if reason is None:
        return str(error["msg"]).removeprefix("Value error, ")
    if error["type"] in {"too_short", "too_long"} and isinstance(error.get("input"), str):
        reason = _REASONS[f"string_{error['type']}"]
    return reason if isinstance(reason, str) else reason(error.get("ctx") or {})


def is_known(error: Mapping[str, Any]) -> bool:
    """Return whether the type of pydantic's error alone says what is wrong."""
    return error["type"] in _REASONS or error["type"] == "extra_forbidden"


def accepted_fields(schema: Mapping[str, Any], location: Location) -> list[str]:
    """Return the fields that a JSON schema knows beside the last one of a location; none if it does not say."""
    names: list[str] = []
    for found in _inside(schema, schema, location[:-1]):
        names += [name for name in found.get("properties", {}) if name not in names]
    return names


def _inside(root: Mapping[str, Any], schema: Mapping[str, Any], location: Location) -> list[Mapping[str, Any]]:
    """Return every schema that may apply in a place; unions have several."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    variants = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if variants:
        return [found for each in variants for found in _inside(root, each, location)]
    if not location:
        return [schema]
    step, *rest = location
    under = schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
    return _inside(root, under, tuple(rest)) if isinstance(under, dict) else []


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


_MOST_CHARACTERS = 128
_UNFILLED = ("{{", "${")
RULE = (
    "must be 1 to 128 printable characters, without a blank at either end, neither . nor .., and no placeholder "
    "that was left as it is, such as {{USER_ID}}"
)


def is_id(text: str) -> bool:
    """Return whether callers may use the text as an id.

    Ids of identity providers, and mail addresses, contain `|`, `+`, `/` and letters of any script. A path segment
    `.` or `..` would be resolved by every HTTP client; a placeholder would be one user for everybody.
    """
    return (
        0 < len(text) <= _MOST_CHARACTERS
        and text.isprintable()
        and text.strip() == text
        and text not in {".", ".."}
        and not any(mark in text for mark in _UNFILLED)
    )


def composed(text: str) -> str:
    """Return an id in the form in which it is compared: an accent in a character of its own is joined to its
    letter."""
    return unicodedata.normalize("NFC", text)


_LONGEST_KEY_SHOWN = 80


def strict_json(text: str | bytes) -> Any:
    """Return the value of a caller's JSON.

    Raises:
        InvalidInput: An object has a key twice; the field is the key. Or a text has half of a character.
        ValueError: It is no JSON, or has too many levels.
    """
    check_levels(text)
    found = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    is_doubtful = _MAYBE_HALF.search(text) if isinstance(text, str) else _MAYBE_HALF_IN_BYTES.search(text)
    if is_doubtful and (place := _place_of_half(found)) is not None:
        raise InvalidInput(place or "body", _HALF)
    return found


def _place_of_half(value: Any, place: str = "") -> str | None:
    """Return the field of a text with half of a character; None = there is none."""
    if isinstance(value, str):
        return place if _HALF_CHARACTER.search(value) else None
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        if isinstance(key, str) and _HALF_CHARACTER.search(key):
            return place
        if (found := _place_of_half(each, f"{place}.{key}" if place else str(key))) is not None:
            return found
    return None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no value of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):  # parsers silently take the last value, which may not be the one that was meant
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise InvalidInput(key[:_LONGEST_KEY_SHOWN], "is given more than once in one object")
    return found


def no_nul(text: str) -> str:
    """Check a text to be stored: PostgreSQL accepts neither NUL characters nor lone surrogates."""
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    if _HALF_CHARACTER.search(text):
        raise ValueError(_HALF)
    return text


def without_nul(text: str) -> str:
    """Remove NUL characters: models write them, and PostgreSQL cannot store them."""
    return text.replace("\x00", "")
