"""Filters of a search, as LangGraph has them: equal values, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from services.errors import InvalidInput

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
