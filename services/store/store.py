"""The store: exact JSON objects of a user under namespaces and keys, with search by the encoder.

A batch reads first and then writes, as LangGraph's own stores do; of several writes to a key the last one counts.
Every write is logged with what undoes it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from uuid import UUID

import structlog
from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.encryption.marks import Words
from services.errors import InvalidInput
from services.jobs.queue import JobQueue
from services.llm.embeddings import Embedder
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.store import sql
from services.store.indexing import VectorIndexing
from services.store.matching import InSql, check_filter, checked_paths, fits
from services.store.model import (
    LONGEST_TTL,
    Get,
    Item,
    ListNamespaces,
    Operation,
    Put,
    Result,
    Search,
    StoreOwner,
    checked_key,
    content_of,
    is_listed,
    joined,
    parted,
)
from services.store.search import ItemSearch, Page

MOST_BYTES = 32 * 2**20
"""Bytes of the values that a search looks at."""
_SWEEP, _EVERY = "sweep_store", "*/10 * * * *"
_NOTHING = InSql.of({})

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Row:
    id: UUID
    namespace: str
    key: str
    value: str
    created_at: datetime
    updated_at: datetime
    ttl_minutes: float | None

    @property
    def item(self) -> Item:
        return Item(parted(self.namespace), self.key, json.loads(self.value), self.created_at, self.updated_at)


@dataclass(frozen=True)
class _Found(_Row):
    place: int


class Store:
    """Reads and writes items. Every process with a worker has one: it registers the sweep of those that expire."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        jobs: JobQueue,
        *,
        default_timezone: str = "UTC",
        default_locale: str | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Take the time zone and locale of users who are new, and the bytes of values that a search reads."""
        self._database = database
        self._embedder = embedder
        self._served_at = 0.0
        self._indexing = VectorIndexing(
            database, embedder, lambda: monotonic() if jobs.turns_run() else self._served_at
        )
        self._search_of = ItemSearch(database, embedder, self._indexing, most_bytes=most_bytes)
        self._new_user = {"timezone": default_timezone, "locale": default_locale}
        jobs.periodic(_SWEEP, _EVERY)(self.sweep)

    async def batch(self, owner: StoreOwner, operations: Sequence[Operation]) -> list[Result]:
        """Carry out operations on the items of a user, or of one of their spaces; return the result of each. A
        user or a space that is written to and not there is made. Raises `InvalidInput` if a namespace, a key, a
        value or a filter is not accepted; nothing was done."""
        writes = {
            (joined(each.namespace), checked_key(each.key)): each for each in operations if isinstance(each, Put)
        }
        contents = [None if each.value is None else content_of(each.value) for each in writes.values()]
        self._served_at = monotonic()
        for each in operations:
            if isinstance(each, Search):
                check_filter(each.filter)
        results: list[Result] = [None] * len(operations)
        gets = {at: each for at, each in enumerate(operations) if isinstance(each, Get)}
        if gets:
            for at, item in zip(gets, await self._get(owner, list(gets.values())), strict=True):
                results[at] = item
        for at, each in enumerate(operations):
            if isinstance(each, Search):
                results[at] = await self._search(owner, each)
            elif isinstance(each, ListNamespaces):
                results[at] = await self._namespaces(owner, each)
        if writes:
            await self._write(owner, writes, contents)
            if not self._embedder.by_words_alone and any(each.value is not None for each in writes.values()):
                self._indexing.begin(owner)
        return results

    async def close(self) -> None:
        """Stop what runs in the background."""
        await self._indexing.close()

    async def _get(self, owner: StoreOwner, gets: Sequence[Get]) -> list[Item | None]:
        values = {
            **vars(owner),
            "namespaces": [joined(each.namespace) for each in gets],
            "keys": [checked_key(each.key) for each in gets],
        }
        rows = await self._database.read(owner.tenant_id, Query(sql.GET, values, class_row(_Found)))
        found = {row.place - 1: row for row in rows}
        await self._refresh(owner, [row for at, row in found.items() if gets[at].refresh_ttl])
        return [found[at].item if at in found else None for at in range(len(gets))]

    async def _search(self, owner: StoreOwner, wanted: Search) -> list[Item]:
        prefix, query = joined(wanted.namespace_prefix, may_be_empty=True), (wanted.query or "").strip()
        # Sealed values are compared here.
        in_sql = InSql.of(wanted.filter or {}) if self._database.vault is None else replace(_NOTHING, is_all=False)
        values = {**vars(owner), "prefix": prefix, **in_sql.values}
        if not query and (in_sql.is_all or not wanted.filter):
            page = {**values, "limit": wanted.limit, "offset": wanted.offset}
            newest = await self._database.fetch(owner.tenant_id, sql.PAGE, page, class_row(_Row))
            if all(fits(json.loads(row.value), wanted.filter or {}) for row in newest):
                await self._refresh(owner, newest if wanted.refresh_ttl else [])
                return [row.item for row in newest]
        return await self._shown(owner, wanted, await self._search_of.ranked(owner, wanted, query, values))

    async def _shown(self, owner: StoreOwner, wanted: Search, page: Page) -> list[Item]:
        rows = await self._rows(owner, [each for each, _ in page])
        await self._refresh(owner, list(rows.values()) if wanted.refresh_ttl else [])
        # What is not there was removed at this moment.
        return [replace(rows[each].item, score=score) for each, score in page if each in rows]

    def forget(self, user_id: UUID) -> None:
        """Drop what this process holds of a user."""
        self._search_of.forget(user_id)

    async def _rows(self, owner: StoreOwner, ids: Sequence[UUID]) -> dict[UUID, _Row]:
        if not ids:
            return {}
        values = {"tenant_id": owner.tenant_id, "ids": list(ids)}
        rows = await self._database.fetch(owner.tenant_id, sql.ITEMS, values, class_row(_Row))
        return {row.id: row for row in rows}

    async def _namespaces(self, owner: StoreOwner, wanted: ListNamespaces) -> list[list[str]]:
        rows = await self._database.fetch(owner.tenant_id, sql.NAMESPACES, vars(owner), tuple_row)
        found = {tuple(parted(row[0])) for row in rows if is_listed(parted(row[0]), wanted)}
        if wanted.max_depth is not None:
            found = {each[: wanted.max_depth] for each in found}
        return [list(each) for each in sorted(found)[wanted.offset : wanted.offset + wanted.limit]]

    async def _refresh(self, owner: StoreOwner, rows: Sequence[_Row]) -> None:
        ids = [row.id for row in rows if row.ttl_minutes is not None]
        if ids:
            values = {"tenant_id": owner.tenant_id, "ids": ids}
            await self._database.fetch(owner.tenant_id, sql.REFRESH, values, tuple_row)

    async def _write(
        self, owner: StoreOwner, writes: Mapping[tuple[str, str], Put], contents: Sequence[Words | None]
    ) -> None:
        values = {
            **vars(owner),
            "ids": [uuid7() for _ in writes],
            "operation_ids": [uuid7() for _ in writes],
            "namespaces": [namespace for namespace, _ in writes],
            "keys": [key for _, key in writes],
            "contents": list(contents),
            "ttls": [_minutes(each.ttl) for each in writes.values()],
            "paths": [Jsonb(checked_paths(each.index)) for each in writes.values()],
        }
        lock = f"store {owner.tenant_id} {owner.user}"
        # No row means that the user or the space does not exist yet.
        while not await self._database.fetch(
            owner.tenant_id, sql.WRITE, values, tuple_row, lock=lock, generic=True
        ):
            new = {"new_user_id": uuid7(), "new_space_id": uuid7()}
            made = {**vars(owner), **self._new_user, **new}
            await self._database.fetch(owner.tenant_id, sql.MAKE_OWNER, made, tuple_row)

    async def sweep(self) -> None:
        """Remove the items whose time has passed."""
        for tenant_id in await self._database.tenants():
            gone = await self._database.fetch(tenant_id, sql.SWEEP, {"tenant_id": tenant_id}, tuple_row)
            if gone:
                log.info("items of the store expired", tenant_id=str(tenant_id), count=len(gone))


def _minutes(ttl: float | None) -> float | None:
    if ttl is not None and not 0 < ttl <= LONGEST_TTL:
        raise InvalidInput("ttl", "is a number of minutes, more than 0 and at most ten years")
    return ttl
