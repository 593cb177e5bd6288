"""How a search finds items: by filters as LangGraph has them, and by how near their texts are to what is sought.

A filter wants equal values, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`.
"""

import base64
import json
import operator
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from langgraph.store.base import get_text_at_path, tokenize_path
from numpy.typing import ArrayLike, NDArray
from psycopg.types.json import Jsonb

from services.errors import InvalidInput
from services.text.tokenizer import terms

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def check_filter(wanted: Any) -> None:
    """See that a filter names no operator that there is not. Raises `InvalidInput` if it does, or names an
    operator beside a key."""
    if isinstance(wanted, Mapping):
        for name, each in wanted.items():
            if name.startswith("$") and name not in {"$eq", "$ne", *_ORDERS}:
                raise InvalidInput("filter", f"{name!r} is none of $eq, $ne, {', '.join(_ORDERS)}")
            if name.startswith("$") != next(iter(wanted)).startswith("$"):
                raise InvalidInput("filter", f"{name!r} stands beside what is no operator, or the other way")
            check_filter(each)
    elif isinstance(wanted, list):
        for each in wanted:
            check_filter(each)


_SAFE_NUMBER = 10**15
"""Below it, a whole number begins with the same digits however it is written."""


@dataclass(frozen=True)
class InSql:
    """The part of a filter that PostgreSQL compares, as the values of its statements. It takes every value that
    fits, and with lists also some that do not."""

    values: Mapping[str, Any]
    is_all: bool
    """Whether nothing of the filter is left."""

    @classmethod
    def of(cls, wanted: Mapping[str, Any]) -> "InSql":
        """Take what a filter, which was checked, wants."""
        equal: dict[str, Any] = {}
        unequal: list[Jsonb] = []
        bounds: dict[str, Any] = {}
        conditions, is_all = [], True
        for key, each in wanted.items():
            compared = each if _has_operators(each) else {"$eq": each}
            for name, value in compared.items():
                if "\x00" in key or not _is_comparable(value):
                    is_all = False
                elif name == "$eq":
                    is_all = is_all and equal.get(key, value) == value
                    equal[key] = value
                elif isinstance(value, Mapping | list):
                    is_all = False
                elif name == "$ne":
                    unequal.append(Jsonb({key: value}))
                elif isinstance(value, bool):
                    is_all = False
                else:
                    conditions.append(f"@.{json.dumps(key)} {_IN_PATH[name]} $b{len(bounds)}")
                    bounds[f"b{len(bounds)}"] = value
        # A text that is in every value which has one of the equal ones.
        written = [f"{_written(k)}:{_written(v)}" for k, v in equal.items() if isinstance(v, str | int)]
        values = {
            "equal": Jsonb(equal) if equal else None,
            "fragment": max(written, key=len, default=None),
            "unequal": unequal,
            "path": f"strict $ ? ({' && '.join(conditions)})" if conditions else None,
            "bounds": Jsonb(bounds),
        }
        return cls(values, is_all)


_IN_PATH = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def _has_operators(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and any(key.startswith("$") for key in wanted)


def _is_comparable(value: Any) -> bool:
    """Return whether PostgreSQL compares a value as this service does; what is null may also be missing."""
    if isinstance(value, Mapping):
        return not _has_operators(value) and all(map(_is_comparable, (*value, *value.values())))
    if isinstance(value, list):
        return all(map(_is_comparable, value))
    if isinstance(value, str):
        return "\x00" not in value
    return isinstance(value, int | float) and abs(value) < _SAFE_NUMBER


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def fits(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a value has what a filter, which was checked, wants of each of its keys."""
    return all(_fits(value.get(key), each) for key, each in wanted.items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            return all(_compares(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(_fits(value.get(key), each) for key, each in wanted.items())
    if isinstance(wanted, list):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_fits, value, wanted))
    return _equal(value, wanted)


def _compares(value: Any, name: str, other: Any) -> bool:
    if name == "$eq":
        return _equal(value, other)
    if name == "$ne":
        return not _equal(value, other)
    if isinstance(value, bool) or isinstance(other, bool):
        return False
    for kind in (int | float, str):
        if isinstance(value, kind) and isinstance(other, kind):
            return _ORDERS[name](value, other)
    return False


def _equal(value: Any, other: Any) -> bool:
    """Return whether two values are equal; a truth value is no number, as in JSON."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


LONGEST_TEXT = 8_000
"""Characters of an item that are embedded."""
_MOST_PATHS, _LONGEST_PATH, _MOST_TEXTS = 50, 200, 100
_STORED = np.float16


def checked_paths(index: Any) -> list[str] | None:
    """Return the paths that are stored: None = every text, an empty list = nothing. Raises `InvalidInput` if
    one is no path."""
    if index is None or index is False:
        return None if index is None else []
    for path in index:
        if not path or len(path) > _LONGEST_PATH or "\x00" in path:
            raise InvalidInput("index", f"{path[:80]!r} is no path")
    if len(index) > _MOST_PATHS:
        raise InvalidInput("index", f"names more than {_MOST_PATHS} paths")
    return list(index)


def texts_of(value: dict[str, Any], paths: Sequence[str] | None) -> list[str]:
    """Return what a search reads of a value: all its texts as one, or each that paths name."""
    if paths is None:
        found = ["\n".join(_texts(value))]
    else:
        found = [text for path in paths for text in get_text_at_path(value, tokenize_path(path))]
    return [text[:LONGEST_TEXT] for text in found if text.strip()][:_MOST_TEXTS]


def packed(vectors: Sequence[ArrayLike]) -> str:
    """Return the vectors of an item as they are stored."""
    return base64.b64encode(np.asarray(vectors, _STORED).tobytes()).decode()


def unpacked(packed_vectors: Sequence[str], dimension: int) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return the vectors of items, one a row, and how many each item has."""
    contents = [base64.b64decode(each) for each in packed_vectors]
    rows = np.frombuffer(b"".join(contents), _STORED).reshape(-1, dimension).astype(np.float32)
    # Halves are rounded: without this a text would be nearer to itself than 1.
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    row_bytes = dimension * np.dtype(_STORED).itemsize
    return rows, np.asarray([len(each) // row_bytes for each in contents], dtype=np.intp)


def shared_terms(text: str, query: str) -> float:
    """Return the share of a query's terms that a text has: in place of nearness, while no encoder answers."""
    wanted = set(terms(query))
    return len(wanted & set(terms(text))) / len(wanted) if wanted else 0.0


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


_MOST_BYTES = 64 * 2**20


@dataclass(slots=True)
class Candidate:
    """An item that may be found, in the order of the statement's columns."""

    id: UUID
    index_paths: list[str] | None
    updated_at: datetime
    digest: int
    """Digest of the operation that wrote it."""
    vector: str | None
    """As it is stored; empty = it has no text; None = it was not made."""
    value: str | None


@dataclass(frozen=True)
class Held:
    """The items of one search: their ids, newest first, and the vectors of those that are indexed."""

    user_id: UUID
    ids: Sequence[UUID]
    digests: NDArray[np.int64]
    newest: datetime
    """When the newest was written."""
    sizes: NDArray[np.intp]
    """Vectors of each item."""
    rows: NDArray[np.float32]

    @classmethod
    def of(cls, user_id: UUID, found: Sequence[Candidate], dimension: int) -> "Held":
        """Hold the vectors of items; there is one item at least."""
        rows, sizes = unpacked([each.vector or "" for each in found], dimension)
        digests = np.fromiter((each.digest for each in found), np.int64, len(found))
        return cls(user_id, [each.id for each in found], digests, found[0].updated_at, sizes, rows)

    @property
    def stamp(self) -> tuple[int, int]:
        """The number of items, and a checksum that changes when one of them is written."""
        return len(self.ids), int(np.bitwise_xor.reduce(self.digests)) if len(self.ids) else 0

    def changed_by(self, newer: "Held") -> "Held":
        """Return these items with those of `newer`, which replace the ones of the same id."""
        written = set(newer.ids)
        stays = np.fromiter((each not in written for each in self.ids), np.bool_, len(self.ids))
        return Held(
            self.user_id,
            [*newer.ids, *(each for each in self.ids if each not in written)],
            np.concatenate([newer.digests, self.digests[stays]]),
            newer.newest,
            np.concatenate([newer.sizes, self.sizes[stays]]),
            np.concatenate([newer.rows, self.rows[np.repeat(stays, self.sizes)]]),
        )

    def ranked(self, sought: Sequence[float], offset: int, limit: int) -> list[tuple[UUID, float | None]]:
        """Return a page of ids by nearness; those that are not indexed come last, without one."""
        scores = np.full(len(self.ids), -2.0, np.float32)
        if len(self.rows):
            indexed = np.flatnonzero(self.sizes)
            starts = np.cumsum([0, *self.sizes[indexed][:-1]], dtype=np.intp)
            scores[indexed] = np.maximum.reduceat(self.rows @ np.asarray(sought, np.float32), starts)
        order = np.argsort(-scores, kind="stable")[offset : offset + limit]
        return [(self.ids[at], float(scores[at]) if scores[at] > -2.0 else None) for at in order]  # noqa: PLR2004


class HeldVectors:
    """Vectors held in memory, up to 64 MB; those used longest ago go first."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, Held] = OrderedDict()

    def get(self, key: Hashable) -> Held | None:
        """Return what is held; the items may have changed since."""
        held = self._held.get(key)
        if held is not None:
            self._held.move_to_end(key)
        return held

    def put(self, key: Hashable, held: Held) -> None:
        """Hold it in the place of what was held."""
        self._held.pop(key, None)
        self._held[key] = held
        while sum(each.rows.nbytes for each in self._held.values()) > _MOST_BYTES:
            self._held.popitem(last=False)

    def forget(self, user_id: UUID) -> None:
        """Drop what is held of a user."""
        for key in [key for key, each in self._held.items() if each.user_id == user_id]:
            del self._held[key]
