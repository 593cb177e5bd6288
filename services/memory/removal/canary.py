"""Search of every store for a word: PostgreSQL with its queue, Milvus, Redis, and the files of the data folder."""

import asyncio
import json
import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg import sql
from redis.exceptions import RedisError

from services.errors import NotFound, Unavailable
from services.identity.tenants import user_id_of
from services.memory.episodes.index import EpisodeIndex
from services.memory.removal.tables import columns_of_tables, rows_of_user
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S, Database
from services.platform.redis import RedisClient
from services.text.tokenizer import terms

_KEYS_AT_ONCE = 500
_MOST_IDS = 20
_WAL = "pg_wal"
_CONVERSATIONS = frozenset({"messages", "conversations"})
_ENGINES = frozenset({"postgres", "milvus"})
"""Folders of the embedded engines."""


@dataclass(frozen=True)
class Finding:
    """One place that holds the word."""

    store: str
    """`postgresql`, `queue`, `milvus`, `redis` or `file`."""
    place: str
    columns: list[str]
    rows: int
    ids: list[str]
    """Ids of the first 20 rows."""


_NOBODY = UUID(int=0)


@dataclass
class Search:
    """Result of a search."""

    findings: list[Finding] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)

    @property
    def beyond_conversations(self) -> list[Finding]:
        """Return the findings outside of the conversations themselves and the files in which these are stored."""
        said = [each for each in self.findings if each.place in _CONVERSATIONS]
        stored = [each for each in self.findings if said and _ENGINES.intersection(Path(each.place).parts)]
        return [each for each in self.findings if each not in said and each not in stored]


class CanarySearch:
    """Searches for a word in everything that is stored of a user."""

    def __init__(self, database: Database, index: EpisodeIndex, redis: RedisClient) -> None:
        self._database = database
        self._index = index
        self._redis = redis

    async def search(self, tenant_id: UUID, user: str, word: str, folders: Sequence[Path] = ()) -> Search:
        """Find a word, in any case, in everything stored of a user; in the queue, Redis and files, of any user.

        Args:
            word: the word; of an index that keeps words by their stems, these.
            folders: with files to search byte by byte, such as the data folder and logs.
        """
        try:
            user_id = await user_id_of(self._database, tenant_id, user)
        except NotFound:  # erased, which is when one looks: nothing may be of this user any more
            user_id = _NOBODY
        search = Search(searched=["postgresql", "queue"])
        async with self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            search.findings += await _rows(connection, user_id, word)
        for store, looked in (("milvus", self._milvus(user_id, word)), ("redis", self._keys(word))):
            try:
                search.findings += await looked
                search.searched.append(store)
            except (Unavailable, RedisError):
                search.unreachable.append(store)
        for folder in folders:
            search.findings += await asyncio.to_thread(_files, folder, word)
            search.searched.append(str(folder))
        return search

    async def _milvus(self, user_id: UUID, word: str) -> list[Finding]:
        sought = set(terms(word))
        rows = await self._index.terms_of(user_id)
        ids = sorted({str(episode_id) for episode_id, held in rows if sought and sought <= set(held.split())})
        return [Finding("milvus", "episodes", ["terms"], len(ids), ids[:_MOST_IDS])] if ids else []

    async def _keys(self, word: str) -> list[Finding]:
        sought, keys = word.encode().lower(), list[str]()
        async for key in self._redis.scan_iter(count=_KEYS_AT_ONCE):
            name = key if isinstance(key, bytes) else key.encode()
            if sought in name.lower() or sought in (await self._redis.dump(key) or b"").lower():
                keys.append(name.decode("utf-8", "replace"))
        return [Finding("redis", key, [], 1, []) for key in sorted(keys)]


async def _rows(connection: Connection, user_id: UUID, word: str) -> list[Finding]:
    """Read the rows of every table: encrypted contents can be searched only after they were decrypted here."""
    sought, findings = word.casefold(), list[Finding]()
    for table, columns in await columns_of_tables(connection):
        statement = sql.SQL("SELECT {id}, to_jsonb(t) FROM {table} t WHERE {own}").format(
            id=sql.SQL("t.id::text") if "id" in columns else sql.SQL("t.ctid::text"),
            table=sql.Identifier(table),
            own=sql.SQL(rows_of_user(table)),
        )
        ids, names = list[str](), set[str]()
        async with connection.cursor("audited") as cursor:
            await cursor.execute(statement, {"user_id": user_id})
            async for row_id, row in cursor:
                found = {name for name, value in row.items() if value and sought in _as_text(value).casefold()}
                if found:
                    ids.append(row_id)
                    names |= found
        if ids:
            store = "queue" if table.startswith(("procrastinate", "job_")) else "postgresql"
            findings.append(Finding(store, table, sorted(names), len(ids), ids[:_MOST_IDS]))
    return findings


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _files(folder: Path, word: str) -> list[Finding]:
    """Return the files that contain the word as given, in lower case or capitalised."""
    forms = {form.encode() for form in (word, word.lower(), word.capitalize(), word.upper())}
    paths: Iterable[Path] = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    findings = []
    for path in paths:
        try:
            if path.is_file() and not path.is_symlink() and path.stat().st_size and _holds(path, forms):
                columns = ["write-ahead log"] if _WAL in path.parts else []
                findings.append(Finding("file", str(path), columns, 1, []))
        except OSError:  # it went meanwhile
            continue
    return findings


def _holds(path: Path, forms: Iterable[bytes]) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(form) >= 0 for form in forms)
