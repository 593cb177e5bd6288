"""Converts LangGraph's operations to the API's, and its answers to LangGraph's."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

MOST_AT_ONCE = 1_000
"""Maximum operations in one request."""
Whose = tuple[str, str | None]
"""User and space."""
WhoseOf = Callable[[Sequence[str], bool], Whose]
"""Function from a namespace, or a prefix of namespaces (True), to its user and space."""


@dataclass
class Asked:
    """An operation of the API, and the place of its result."""

    operation: dict[str, Any]
    places: list[int] = field(default_factory=list)


@dataclass
class Plan:
    """Requests that carry out operations: equal reads are sent once, and of several writes to a key only the
    last."""

    results: list[Result] = field(default_factory=list)
    _of: dict[Whose, dict[Any, Asked]] = field(default_factory=dict)

    @classmethod
    def of(cls, ops: Iterable[tuple[Op, WhoseOf]], fields: Sequence[str] | None) -> "Plan":
        """Plan operations of the users and spaces that their namespaces name.

        Args:
            ops: Operations of LangGraph, each with the function that tells the owner of its namespace.
            fields: Paths that a search reads if a put names none.

        Raises:
            ValueError: An operation is unknown, or a prefix names no user.
        """
        plan = cls()
        for at, (op, whose) in enumerate(ops):
            plan.results.append(None)
            asked, namespace = _asked(op)
            if asked is None:
                plan.results[at] = []
                continue
            within = isinstance(op, SearchOp | ListNamespacesOp)
            wanted = plan._of.setdefault(whose(namespace, within), {})
            if isinstance(op, PutOp):
                if op.index is None:
                    asked["index"] = fields
                wanted.pop((op.namespace, op.key), None)
                wanted[(op.namespace, op.key)] = Asked(asked)
            else:
                wanted.setdefault(json.dumps(asked), Asked(asked)).places.append(at)
        return plan

    def requests(self) -> Iterator[tuple[Whose, list[Asked]]]:
        """Yield the operations of each request; reads come before writes."""
        for whose, wanted in self._of.items():
            ordered = sorted(wanted.values(), key=lambda each: each.operation["op"] == "put")
            for begin in range(0, len(ordered), MOST_AT_ONCE):
                yield whose, ordered[begin : begin + MOST_AT_ONCE]

    def fill(self, asked: Sequence[Asked], found: Sequence[Any]) -> None:
        """Take the results of a request."""
        for each, answer in zip(asked, found, strict=True):
            for at in each.places:
                self.results[at] = _result(each.operation["op"], answer)


def _asked(op: Op) -> tuple[dict[str, Any] | None, Sequence[str]]:
    """Return an operation in the form of the API, None = it finds nothing; and the namespace of its owner."""
    match op:
        case GetOp():
            asked = {"namespace": op.namespace, "key": op.key, "refresh_ttl": op.refresh_ttl}
            return {"op": "get", **asked}, op.namespace
        case PutOp():
            value = None if op.value is None else dict(op.value)
            asked = {"namespace": op.namespace, "key": op.key, "value": value, "index": op.index, "ttl": op.ttl}
            return {"op": "put", **asked}, op.namespace
        case SearchOp():
            return {"op": "search", **op._asdict()}, op.namespace_prefix
        case ListNamespacesOp():
            prefix = _pattern(op.match_conditions, "prefix")
            suffix = _pattern(op.match_conditions, "suffix")
            if prefix is None or suffix is None:
                return None, ()
            bounds = {"max_depth": op.max_depth, "limit": op.limit, "offset": op.offset}
            return {"op": "list_namespaces", "prefix": prefix, "suffix": suffix, **bounds}, prefix
    raise ValueError(f"Unknown operation type: {type(op)}")


def _pattern(conditions: Sequence[MatchCondition] | None, kind: str) -> list[str] | None:
    """Return the one pattern that means what all conditions of a kind mean; None = they contradict each other."""
    step = -1 if kind == "suffix" else 1
    merged = []
    paths = [each.path[::step] for each in conditions or () if each.match_type == kind]
    for labels in zip_longest(*paths, fillvalue="*"):
        named = set(labels) - {"*"}
        if len(named) > 1:
            return None
        merged.append(named.pop() if named else "*")
    return merged[::step]


def _result(op: str, found: Any) -> Result:
    if op == "get":
        return None if found is None else Item(**_fields(found))
    if op == "search":
        return [SearchItem(**_fields(item), score=item["score"]) for item in found]
    return [tuple(labels) for labels in found]


def _fields(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "namespace": tuple(found["namespace"]),
        "key": found["key"],
        "value": found["value"],
        "created_at": datetime.fromisoformat(found["created_at"]),
        "updated_at": datetime.fromisoformat(found["updated_at"]),
    }
