"""A LangGraph store whose items are in Anamnesis: exact, searchable, logged, exported and erased with the user."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from langchain_anamnesis.clients import Clients

_Whose = tuple[str, str | None]
_Plan = dict[_Whose, list[tuple[int, dict[str, Any]]]]


class AnamnesisStore(BaseStore):
    """A `BaseStore` over HTTP; a batch is one round trip for each user and space in it."""

    supports_ttl = True

    def __init__(
        self,
        url: str,
        *,
        user: str,
        key: str | None = None,
        user_at: int | None = None,
        space: str | None = None,
        space_at: int | None = None,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        """Take where the service is, and whose the items are.

        Args:
            url: such as `http://127.0.0.1:8000`.
            user: whose items they are, unless the namespace says so.
            key: an API key or a token.
            user_at: place of the label that names the user, from 0; a shorter namespace is of `user`.
            space: of the user's; None = items that belong to no space.
            space_at: place of the label that names the space.
            fields: paths of what a search reads where a put names none; None = every text.
            ttl: `default_ttl` in minutes and `refresh_on_read`; the service itself removes what has expired.
            timeout_s: seconds to wait for the next bytes of an answer.
        """
        self._clients = Clients(url, user, key, timeout_s)
        self._user, self._user_at = user, user_at
        self._space, self._space_at = space, space_at
        self._fields = list(fields) if fields is not None else None
        self.ttl_config = ttl

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clients.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._clients.aclose()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; reads see what was there before the writes.

        Raises:
            ServiceError: the service refused.
            Unreachable: it does not answer.
        """
        results, plan = self._plan(ops)
        for (user, space), asked in plan.items():
            found = self._clients.sync.store([each for _, each in asked], user=user, space=space)
            _fill(results, asked, found)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same in an event loop."""
        results, plan = self._plan(ops)
        for (user, space), asked in plan.items():
            found = await self._clients.of_loop.store([each for _, each in asked], user=user, space=space)
            _fill(results, asked, found)
        return results

    def _plan(self, ops: Iterable[Op]) -> tuple[list[Result], _Plan]:
        plan: _Plan = defaultdict(list)
        results: list[Result] = []
        for at, op in enumerate(ops):
            results.append(None)
            asked, namespace = _asked(op)
            if asked["op"] == "put" and asked["index"] is None:
                asked["index"] = self._fields
            plan[self._whose(namespace)].append((at, asked))
        return results, plan

    def _whose(self, namespace: Sequence[str]) -> _Whose:
        def label(at: int | None, usual: Any) -> Any:
            return namespace[at] if at is not None and at < len(namespace) and namespace[at] != "*" else usual

        return label(self._user_at, self._user), label(self._space_at, self._space)


def _asked(op: Op) -> tuple[dict[str, Any], Sequence[str]]:
    """Return an operation as the API takes it, and the namespace that says whose items it is about."""
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
            paths = {each.match_type: list(each.path) for each in op.match_conditions or ()}
            if len(paths) < len(op.match_conditions or ()):
                raise ValueError("Namespaces are matched by one prefix and one suffix at most.")
            bounds = {"max_depth": op.max_depth, "limit": op.limit, "offset": op.offset}
            asked = {"prefix": paths.get("prefix"), "suffix": paths.get("suffix"), **bounds}
            return {"op": "list_namespaces", **asked}, paths.get("prefix", ())
    raise ValueError(f"Unknown operation type: {type(op)}")


def _fill(results: list[Result], asked: Sequence[tuple[int, Mapping[str, Any]]], found: Sequence[Any]) -> None:
    for (at, operation), each in zip(asked, found, strict=True):
        if operation["op"] == "get":
            results[at] = None if each is None else Item(**_fields(each))
        elif operation["op"] == "search":
            results[at] = [SearchItem(**_fields(item), score=item["score"]) for item in each]
        elif operation["op"] == "list_namespaces":
            results[at] = [tuple(labels) for labels in each]


def _fields(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "namespace": tuple(found["namespace"]),
        "key": found["key"],
        "value": found["value"],
        "created_at": datetime.fromisoformat(found["created_at"]),
        "updated_at": datetime.fromisoformat(found["updated_at"]),
    }
