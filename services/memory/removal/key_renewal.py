"""Renewal of a user's key after forgetting for good: the remaining key does not open earlier backups.

A new key replaces the old one. A minute later, when nobody writes with the old one any more, all data of the user
that it has sealed are sealed with the new one, and the old key is destroyed.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, LiteralString
from uuid import UUID

import structlog
from psycopg import sql
from psycopg.rows import tuple_row

from services.encryption.data_key import DIGEST_MARK, DataKey
from services.encryption.key_store import KeyStore
from services.encryption.marks import Sealed
from services.errors import Unavailable
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.memory.removal.tables import OF_NOBODY, columns_of_tables, rows_of_user
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S, Database

RENEW_KEY = "renew_user_key"
RESEAL = "reseal_user"
_OTHERS_END_S = 60.0
"""Seconds after which no running statement has parameters that were sealed before the renewal."""
_LOOK_S = 0.5
_ROWS_AT_ONCE = 200
_SEALED_TYPES = frozenset({"text", "text[]", "jsonb", "bytea"})

log = structlog.get_logger(__name__)

_USER: LiteralString = "SELECT external_id FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s"

_LATEST: LiteralString = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
_OLDEST: LiteralString = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"

# What a trigger has just kept is what the row was before, sealed with the old key.
_NO_VERSIONS: LiteralString = """
DELETE FROM memory_versions
WHERE tenant_id = %(tenant_id)s AND closed_at >= %(since)s
  AND (episode_id = ANY(%(ids)s) OR message_id = ANY(%(ids)s) OR day_id = ANY(%(ids)s))
"""
_VERSIONED = frozenset({"episodes", "messages", "daily_summaries"})


class KeyRenewal:
    """Renews keys of users. Every process with a worker has one: it registers the jobs."""

    def __init__(self, database: Database, jobs: JobQueue, *, others_end_s: float = _OTHERS_END_S) -> None:
        """Take the stores, and the seconds after which nobody writes with an old key any more."""
        self._database = database
        self._jobs = jobs
        self._others_end_s = others_end_s
        jobs.task(RENEW_KEY)(self._renew)
        jobs.task(RESEAL)(self._reseal)

    async def defer(self, connection: Connection, tenant_id: UUID, user_id: UUID) -> None:
        """Queue a renewal in the caller's transaction, if there is encryption."""
        if self._database.vault is not None:
            lock = f"{RENEW_KEY}:{user_id}"
            await self._jobs.defer(connection, RENEW_KEY, tenant_id=tenant_id, lock=lock, user_id=user_id)

    async def reseal(self, tenant_id: UUID, user_id: UUID) -> int:
        """Seal all data that old keys of a user have sealed with the present key, and destroy the old ones; return
        the number of rows. Raises `Unavailable` if the keys or the database cannot be read or written."""
        found = await self._user(tenant_id, user_id)
        if found is None:
            return 0
        keys, user = found
        old = await asyncio.to_thread(keys.renewed, tenant_id, user, before_s=self._others_end_s)
        new = keys.of_owner(tenant_id, user)
        if new is None or not old:
            return 0
        await self._others_have_ended(tenant_id)
        count = 0
        async with self._database.tenant(tenant_id) as connection:
            tables = await columns_of_tables(connection)
        for table, columns in tables:
            sealed = {name: kind for name, kind in columns.items() if kind in _SEALED_TYPES}
            if sealed and rows_of_user(table) != OF_NOBODY:
                count += await self._reseal_table(
                    {"tenant_id": tenant_id, "user_id": user_id}, table, sealed, old, new
                )
        for each in old:
            await asyncio.to_thread(keys.destroy_renewed, each)
        return count

    async def _renew(self, job: RunningJob, *, user_id: UUID) -> None:
        found = await self._user(job.tenant_id, user_id)
        if found is None:
            return
        keys, user = found
        await asyncio.to_thread(keys.renew, job.tenant_id, user)
        async with job.transaction() as connection:
            await self._jobs.defer(
                connection,
                RESEAL,
                tenant_id=job.tenant_id,
                lock=f"{RENEW_KEY}:{user_id}",
                delay_s=self._others_end_s + 1,
                user_id=user_id,
            )

    async def _reseal(self, job: RunningJob, *, user_id: UUID) -> None:
        count = await self.reseal(job.tenant_id, user_id)
        log.info("a user's key was renewed", tenant_id=str(job.tenant_id), user_id=str(user_id), rows=count)

    async def _user(self, tenant_id: UUID, user_id: UUID) -> tuple[KeyStore, str] | None:
        """Return the store of keys, and the caller's name for a user; None without encryption or without the
        user."""
        values = {"tenant_id": tenant_id, "user_id": user_id}
        rows = await self._database.fetch(tenant_id, _USER, values, tuple_row)
        vault = self._database.vault
        return (vault.keys, rows[0][0]) if vault is not None and rows else None

    async def _others_have_ended(self, tenant_id: UUID) -> None:
        """Wait until every transaction that is running now has ended. Raises `Unavailable` if one of them does not
        end."""
        [(latest,)] = await self._database.fetch(tenant_id, _LATEST, {}, tuple_row)
        try:
            async with asyncio.timeout(UNHURRIED_S / 2):
                while (await self._database.fetch(tenant_id, _OLDEST, {}, tuple_row))[0][0] < latest:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            raise Unavailable("A transaction does not end; the old key is kept until it does.") from None

    async def _reseal_table(
        self, owner: dict[str, Any], table: str, columns: dict[str, str], old: Sequence[DataKey], new: DataKey
    ) -> int:
        """Seal again the contents of columns in a user's rows of a table; return the number of rows."""
        patterns = [f"%{key.beginning}%" for key in old] + [f"%{(DIGEST_MARK + key.id).hex()}%" for key in old]
        values = {**owner, "patterns": patterns, "most": _ROWS_AT_ONCE}
        name = sql.Identifier(table)
        select = sql.SQL(
            "SELECT ctid::text, {id}, clock_timestamp(), {columns} FROM {table} t"
            " WHERE {own} AND t::text LIKE ANY(%(patterns)s) ORDER BY ctid LIMIT %(most)s FOR UPDATE"
        ).format(
            id=sql.SQL("t.id" if table in _VERSIONED else "NULL::uuid"),
            table=name,
            own=sql.SQL(rows_of_user(table)),
            # As bytes: a text would be opened on its way.
            columns=sql.SQL(", ").join(
                sql.SQL("convert_to(t.{}::text, 'UTF8')").format(sql.Identifier(column)) for column in columns
            ),
        )
        count = 0
        while True:
            async with self._database.tenant(owner["tenant_id"], statement_s=UNHURRIED_S) as connection:
                rows = await (await connection.execute(select, values)).fetchall()
                for place, _, _, *contents in rows:
                    changed = {
                        column: again
                        for (column, kind), content in zip(columns.items(), contents, strict=True)
                        if content is not None and (again := _again(content.decode(), kind, old, new)) is not None
                    }
                    assigned = sql.SQL(", ").join(
                        sql.SQL("{} = {}::{}").format(
                            sql.Identifier(column), sql.Placeholder(column), sql.SQL(columns[column])
                        )
                        for column in changed
                    )
                    update = sql.SQL("UPDATE {} SET {} WHERE ctid = %(place)s::tid").format(name, assigned)
                    await connection.execute(update, {**changed, "place": place})
                if rows and table in _VERSIONED:
                    kept = {**owner, "ids": [row[1] for row in rows], "since": rows[0][2]}
                    await connection.execute(_NO_VERSIONS, kept)
            if not rows:
                return count
            count += len(rows)


def _again(content: str, kind: str, old: Sequence[DataKey], new: DataKey) -> Sealed | None:
    """Return the text form of a column sealed with the new key; None if the old keys have sealed none of it."""
    if kind == "bytea":
        sealed = bytes.fromhex(content.removeprefix("\\x"))
        for key in old:
            if (block := new.reseal_digest(sealed, key)) != sealed:
                return Sealed("\\x" + block.hex())
        return None
    again = content
    for key in old:
        again = new.reseal(again, key)
    return Sealed(again) if again != content else None
