"""Reads that are asked for at the same moment and sent together in one round trip."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, LiteralString, TypeVar
from uuid import UUID

import psycopg
from psycopg.rows import AsyncRowFactory

Row = TypeVar("Row")

_MOST_TOGETHER = 4
"""Maximum callers whose statements share a round trip; within it the statements run one after the other."""
_PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|%)")
_MOST_KNOWN = 1_000


@dataclass(frozen=True)
class Query(Generic[Row]):
    """One statement with its row factory."""

    statement: LiteralString
    values: Mapping[str, Any]
    row_factory: AsyncRowFactory[Row]


def page_after(after: tuple[datetime, UUID] | None, limit: int) -> dict[str, Any]:
    """Return the values with which a statement reads a page: time and id of the last row seen, and the limit."""
    after_at, after_id = after or (None, None)
    return {"after_at": after_at, "after_id": after_id, "limit": limit}


@dataclass(frozen=True)
class _Asked:
    queries: Sequence[Query[Any]]
    of_one_moment: bool
    rows: asyncio.Future[list[list[Any]]]


Run = Callable[[UUID, Sequence[Query[Any]], bool], Coroutine[Any, Any, list[list[Any]]]]
"""Function that runs a tenant's statements in one round trip, of one moment or not, and returns their rows."""


class SharedReads:
    """Collects the reads of one step of the event loop."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting: dict[UUID, list[_Asked]] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def rows(
        self, tenant_id: UUID, queries: Sequence[Query[Any]], *, of_one_moment: bool
    ) -> list[list[Any]]:
        """Return the rows of each statement; errors are those of the run. A cancelled caller returns at once,
        while the round trip runs to its end."""
        loop = asyncio.get_running_loop()
        asked = _Asked(queries, of_one_moment, loop.create_future())
        waiting = self._waiting.setdefault(tenant_id, [])
        waiting.append(asked)
        if len(waiting) == 1:
            loop.call_soon(self._send, tenant_id)
        return await asked.rows

    async def settled(self, within_s: float) -> None:
        """Wait for reads that are under way."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=within_s)

    def _send(self, tenant_id: UUID) -> None:
        waiting = self._waiting.pop(tenant_id)
        for begin in range(0, len(waiting), _MOST_TOGETHER):
            task = asyncio.create_task(self._read(tenant_id, waiting[begin : begin + _MOST_TOGETHER]))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _read(self, tenant_id: UUID, together: Sequence[_Asked]) -> None:
        """Run all statements; separately if one of them fails."""
        queries = [query for asked in together for query in asked.queries]
        try:
            found = iter(await self._run(tenant_id, queries, any(asked.of_one_moment for asked in together)))
        except psycopg.Error as error:
            if len(together) == 1:
                _fail(together, error)
                return
            for asked in together:
                await self._read(tenant_id, [asked])
        except Exception as error:  # each caller gets it
            _fail(together, error)
        else:
            for asked in together:
                rows = [next(found) for _ in asked.queries]
                if not asked.rows.done():
                    asked.rows.set_result(rows)


def _fail(together: Sequence[_Asked], error: Exception) -> None:
    for asked in together:
        if not asked.rows.done():
            asked.rows.set_exception(error)


@lru_cache(maxsize=_MOST_KNOWN)
def _positional(statement: LiteralString) -> tuple[LiteralString, tuple[str, ...]]:
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}" if found[1] else "%"

    return _PLACEHOLDER.sub(number, statement), tuple(names)


def positional(statement: LiteralString, values: Mapping[str, Any]) -> tuple[LiteralString, list[Any]]:
    """Return a statement with numbered placeholders, and its values in that order, for a raw cursor. The driver
    would search a statement longer than 4,096 characters for placeholders at every execution."""
    text, names = _positional(statement)
    return text, [values[name] for name in names]
