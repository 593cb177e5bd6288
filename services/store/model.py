"""Items of the store: JSON objects under a namespace and a key, as LangGraph's `BaseStore` has them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from services.encryption.marks import Words
from services.errors import InvalidInput

Namespace = Sequence[str]

_LONGEST_LABEL, _MOST_LABELS, _LONGEST_KEY = 256, 32, 512
_SEPARATOR = "."
LONGEST_VALUE = 1_000_000
"""Characters of an item's JSON."""
Labels = Annotated[Namespace, Field(max_length=_MOST_LABELS)]
Limit = Annotated[int, Field(ge=0, le=1_000)]
Offset = Annotated[int, Field(ge=0, le=1_000_000)]
LONGEST_TTL = 10 * 366 * 24 * 60
"""Minutes."""


def _with_name(schema: dict[str, Any]) -> None:
    """A request names its operations."""
    schema["required"] = [*schema.get("required", ()), "op"]
    del schema["properties"]["op"]["default"]


_REQUESTED = ConfigDict(extra="forbid", use_attribute_docstrings=True, json_schema_extra=_with_name)


@dataclass(frozen=True)
class StoreOwner:
    """Owner of items."""

    tenant_id: UUID
    user: str
    """The caller's own name for the user."""
    space: str | None = None
    """None = what belongs to no space."""


@dataclass(frozen=True)
class Item:
    """An item as it is stored."""

    namespace: list[str]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    score: float | None = None
    """How near it is to what was sought, -1 to 1; None where nothing was, or the item is not indexed."""


@dataclass(frozen=True)
class Get:
    """Read one item; the result is the item, or null."""

    __pydantic_config__ = _REQUESTED

    namespace: Labels
    key: str
    refresh_ttl: bool = True
    """Whether its time to live begins again."""
    op: Literal["get"] = "get"


@dataclass(frozen=True)
class Put:
    """Store an item in the place of what is there; the result is null."""

    __pydantic_config__ = _REQUESTED

    namespace: Labels
    key: str
    value: dict[str, Any] | None
    """Null removes the item."""
    index: Literal[False] | list[str] | None = None
    """Paths of what a search reads, such as `title` or `parts[*].text`; null = every text, false = nothing."""
    ttl: float | None = None
    """Minutes after the last use; null = it stays."""
    op: Literal["put"] = "put"


@dataclass(frozen=True)
class Search:
    """Find items below a prefix; the result is a list of items, best first, or newest first without a query."""

    __pydantic_config__ = _REQUESTED

    namespace_prefix: Labels = ()
    query: Annotated[str, Field(max_length=8_000)] | None = None
    filter: dict[str, Any] | None = None
    """Equal values by key, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`."""
    limit: Limit = 10
    offset: Offset = 0
    refresh_ttl: bool = True
    op: Literal["search"] = "search"


@dataclass(frozen=True)
class ListNamespaces:
    """List namespaces that have items; the result is a list of lists of labels."""

    __pydantic_config__ = _REQUESTED

    prefix: Labels | None = None
    """How it begins; `*` matches any label."""
    suffix: Labels | None = None
    max_depth: Annotated[int, Field(ge=1, le=_MOST_LABELS)] | None = None
    limit: Limit = 100
    offset: Offset = 0
    op: Literal["list_namespaces"] = "list_namespaces"


Operation = Get | Put | Search | ListNamespaces
Result = Item | list[Item] | list[list[str]] | None


def joined(namespace: Namespace, *, may_be_empty: bool = False) -> str:
    """Return a namespace as it is stored. Raises `InvalidInput` if it is empty, or a label of it is empty, too
    long, or holds a period or NUL."""
    if not namespace and not may_be_empty:
        raise InvalidInput("namespace", "names at least one label")
    if len(namespace) > _MOST_LABELS:
        raise InvalidInput("namespace", f"has more than {_MOST_LABELS} labels")
    for label in namespace:
        if not label or len(label) > _LONGEST_LABEL or _SEPARATOR in label or "\x00" in label:
            why = f"the label {label[:80]!r} is empty, longer than {_LONGEST_LABEL} characters, or has a period"
            raise InvalidInput("namespace", why)
    return _SEPARATOR.join(namespace)


def parted(stored: str) -> list[str]:
    """Return the labels of a stored namespace."""
    return stored.split(_SEPARATOR)


def checked_key(key: str) -> str:
    """Return a key. Raises `InvalidInput` if it is empty, too long, or holds NUL."""
    if not key or len(key) > _LONGEST_KEY or "\x00" in key:
        raise InvalidInput("key", f"is empty, longer than {_LONGEST_KEY} characters, or has a NUL")
    return key


def is_listed(namespace: Namespace, wanted: ListNamespaces) -> bool:
    """Return whether a namespace begins and ends as is wanted."""
    return _begins(namespace, wanted.prefix or ()) and _begins(namespace[::-1], (wanted.suffix or ())[::-1])


def _begins(namespace: Namespace, pattern: Namespace) -> bool:
    return len(namespace) >= len(pattern) and all(
        wanted in ("*", label) for label, wanted in zip(namespace, pattern, strict=False)
    )


def content_of(value: Mapping[str, Any]) -> Words:
    """Return the text of a value, as it is stored. Raises `InvalidInput` if it is too large."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(text) > LONGEST_VALUE:
        raise InvalidInput("value", f"has {len(text)} characters of JSON; at most {LONGEST_VALUE} are kept")
    return Words(text)
