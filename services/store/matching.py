"""How a search finds items: by filters as LangGraph has them, and by how near their texts are to what is sought.

A filter wants equal values, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`.
"""

import base64
import operator
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from langgraph.store.base import get_text_at_path, tokenize_path
from numpy.typing import ArrayLike, NDArray

from services.errors import InvalidInput
from services.text.tokenizer import terms

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def check_filter(wanted: Any) -> None:
    """See that a filter names no operator that there is not.

    Raises:
        InvalidInput: it does.
    """
    if isinstance(wanted, Mapping):
        for name, each in wanted.items():
            if name.startswith("$") and name not in {"$eq", "$ne", *_ORDERS}:
                raise InvalidInput("filter", f"{name!r} is none of $eq, $ne, {', '.join(_ORDERS)}")
            check_filter(each)
    elif isinstance(wanted, list):
        for each in wanted:
            check_filter(each)


def fits(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a value has what a filter, which was checked, wants of each of its keys."""
    return all(_fits(value.get(key), each) for key, each in wanted.items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
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
    """Return the paths that are stored: None = every text, an empty list = nothing.

    Raises:
        InvalidInput: one is no path.
    """
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
    """Return the vectors of items, one a row, and the row at which those of each item begin."""
    contents = [base64.b64decode(each) for each in packed_vectors]
    rows = np.frombuffer(b"".join(contents), _STORED).reshape(-1, dimension).astype(np.float32)
    # Halves are rounded: without this a text would be nearer to itself than 1.
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    row_bytes = dimension * np.dtype(_STORED).itemsize
    return rows, np.cumsum([0, *(len(each) // row_bytes for each in contents[:-1])], dtype=np.intp)


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


@dataclass(frozen=True)
class Held:
    """The items of one search: their ids, newest first, and the vectors of those that are indexed."""

    stamp: tuple[int, int]
    """Of the items as they were."""
    user_id: UUID
    ids: Sequence[UUID]
    indexed: NDArray[np.intp]
    """Places of those that have vectors."""
    rows: NDArray[np.float32]
    starts: NDArray[np.intp]
    """Where the vectors of each begin."""

    @classmethod
    def of(
        cls,
        stamp: tuple[int, int],
        user_id: UUID,
        ids: Sequence[UUID],
        vectors: Sequence[str | None],
        dimension: int,
    ) -> "Held":
        """Hold the vectors of items, each as it is stored; None = it is not indexed."""
        indexed = np.asarray([at for at, each in enumerate(vectors) if each], np.intp)
        rows, starts = unpacked([each for each in vectors if each], dimension)
        return cls(stamp, user_id, ids, indexed, rows, starts)

    def ranked(self, sought: Sequence[float], offset: int, limit: int) -> list[tuple[UUID, float | None]]:
        """Return a page of ids by nearness; those that are not indexed come last, without one."""
        scores = np.full(len(self.ids), -2.0, np.float32)
        if len(self.indexed):
            scores[self.indexed] = np.maximum.reduceat(self.rows @ np.asarray(sought, np.float32), self.starts)
        order = np.argsort(-scores, kind="stable")[offset : offset + limit]
        return [(self.ids[at], float(scores[at]) if scores[at] > -2.0 else None) for at in order]  # noqa: PLR2004


class HeldVectors:
    """What is held, up to 64 MB; what was used longest ago goes first."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, Held] = OrderedDict()

    def get(self, key: Hashable, stamp: tuple[int, int]) -> Held | None:
        """Return what is held, if the items are still as they were."""
        held = self._held.get(key)
        if held is None or held.stamp != stamp:
            return None
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
