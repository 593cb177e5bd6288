"""A tenant's rows in PostgreSQL: closing a database for the tenant, copying, comparing and removing them.

Ids, times, lineage and encrypted words stay as they are. Connections are those of the service's role, so that
row-level security limits every statement to the tenant; they must be direct, because each holds its transaction.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, cast
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from services.backup.tables import Connection, Table, revision_of, set_tenant, tables_of
from services.errors import Conflict, DatabaseUnavailable

IN_HOME_ALONE = frozenset({"api_keys"})
"""Tables whose rows stay in the first database: callers are identified there before their shard is known."""
_NOT_COPIED = IN_HOME_ALONE | {"memory_generations"}
"""Counters of working sets are made by triggers, and raised when the copy is complete."""
_AFTER = {"conversation_summaries": "messages"}
"""A trigger on messages looks at summaries; it is to find none."""

_SAME_TEXTS: LiteralString = """
SET timezone = 'UTC'; SET datestyle = 'ISO'; SET intervalstyle = 'iso_8601'; SET extra_float_digits = 1
"""
"""Values have the same text in two databases, however they are configured."""

_LOCK: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended('tenant ' || %(tenant_id)s, 0))"
_LOCK_LIMIT: LiteralString = "SET LOCAL lock_timeout = '5s'"

# The coalesce is the expression of an index; periodic jobs have no tenant.
_UNDER_WAY: LiteralString = """
SELECT (SELECT count(*) FROM turns WHERE tenant_id = %(tenant_id)s AND status IN ('waiting', 'running')),
       (SELECT count(*) FROM procrastinate_jobs
        WHERE coalesce(args->>'tenant_id', '00000000-0000-7000-8000-000000000001') = %(tenant_id)s::text
          AND args ? 'tenant_id' AND status = 'doing')
"""

_PARK: LiteralString = """
WITH taken AS (
    DELETE FROM procrastinate_jobs j
    WHERE coalesce(args->>'tenant_id', '00000000-0000-7000-8000-000000000001') = %(tenant_id)s::text
      AND args ? 'tenant_id' AND status IN ('todo', 'failed')
    RETURNING j.id, to_jsonb(j) || jsonb_build_object(
        'failure', (SELECT to_jsonb(f) FROM job_failures f WHERE f.job_id = j.id)) AS job
)
INSERT INTO parked_jobs (tenant_id, place, job) SELECT %(tenant_id)s::uuid, id, job FROM taken
"""

_PARKED: LiteralString = "SELECT place, job FROM parked_jobs WHERE tenant_id = %(tenant_id)s ORDER BY place"
_PARK_ONE: LiteralString = """
INSERT INTO parked_jobs (tenant_id, place, job) VALUES (%(tenant_id)s, %(place)s, %(job)s)
"""
_FORGET_PARKED: LiteralString = "DELETE FROM parked_jobs WHERE tenant_id = %(tenant_id)s"

# A job's number means nothing in another database; its failures follow it under the new one.
_QUEUE: LiteralString = """
WITH job AS (
    INSERT INTO procrastinate_jobs
        (queue_name, task_name, priority, lock, queueing_lock, args, status, scheduled_at, attempts)
    SELECT j.queue_name, j.task_name, j.priority, j.lock, j.queueing_lock, j.args, j.status, j.scheduled_at,
           j.attempts
    FROM jsonb_populate_record(NULL::procrastinate_jobs, %(job)s) j
    RETURNING id
)
INSERT INTO job_failures (job_id, failures, reason, failed_at)
SELECT job.id, f.failures, f.reason, f.failed_at
FROM job, jsonb_populate_record(NULL::job_failures, nullif(%(job)s::jsonb -> 'failure', 'null')) f
WHERE f.failures IS NOT NULL
"""

_CLOSE: LiteralString = """
INSERT INTO closed_tenants (tenant_id, reason) VALUES (%(tenant_id)s, %(reason)s)
ON CONFLICT (tenant_id) DO UPDATE SET reason = excluded.reason, since = clock_timestamp()
"""
_REASON: LiteralString = "SELECT reason FROM closed_tenants WHERE tenant_id = %(tenant_id)s FOR UPDATE"
_OPEN: LiteralString = "DELETE FROM closed_tenants WHERE tenant_id = %(tenant_id)s AND reason = %(reason)s"

_RAISE_GENERATIONS: LiteralString = """
SELECT renew_memory_generation(user_id, true) FROM memory_generations WHERE tenant_id = %(tenant_id)s
"""

_ENCRYPTION: LiteralString = "SELECT store_id, sealed_at IS NOT NULL FROM encryption"

_REFERENCES: LiteralString = """
SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint
WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conrelid <> confrelid
"""


@dataclass(frozen=True)
class Place:
    """A tenant in one database."""

    url: str
    """Of the service's role, past any pooler."""
    tenant_id: UUID

    def connect(self) -> Connection:
        """Connect, outside a transaction.

        Raises:
            DatabaseUnavailable: nothing answers.
        """
        try:
            connection = psycopg.connect(self.url, autocommit=True, connect_timeout=10)
            connection.execute(_SAME_TEXTS)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable from error
        return connection

    @property
    def values(self) -> dict[str, Any]:
        """The tenant as a statement's value."""
        return {"tenant_id": str(self.tenant_id)}


def under_way(place: Place) -> tuple[int, int]:
    """Count the tenant's turns that run or wait, and its jobs that run."""
    with place.connect() as connection, connection.transaction():
        set_tenant(connection, str(place.tenant_id))
        return cast("tuple[int, int]", _one(connection, _UNDER_WAY, place.values))


def close(place: Place) -> bool:
    """Refuse every further transaction of the tenant, and set its jobs aside; return whether that was possible.

    It is not as long as turns or jobs run. Repeating it changes nothing.
    """
    with place.connect() as connection:
        try:
            with connection.transaction():
                connection.execute(_LOCK_LIMIT)
                connection.execute(_LOCK, place.values)  # waits for transactions that are open
                set_tenant(connection, str(place.tenant_id))
                connection.execute(_PARK, place.values)
                if any(_one(connection, _UNDER_WAY, place.values) or ()):
                    raise psycopg.Rollback
                connection.execute(_CLOSE, {**place.values, "reason": "leaving"})
        except psycopg.errors.LockNotAvailable:
            return False
        return reason_of(connection, place) == "leaving"


def reason_of(connection: Connection, place: Place) -> str | None:
    """Why the database does not serve the tenant; None if it does."""
    row = _one(connection, _REASON, place.values)
    return str(row[0]) if row else None


def reopen(place: Place, reason: str) -> None:
    """Serve the tenant again, and queue its jobs that were set aside, where it was closed for this reason."""
    with place.connect() as connection, connection.transaction():
        connection.execute(_LOCK, place.values)
        if reason_of(connection, place) != reason:
            return
        for (job,) in connection.execute(
            "SELECT job FROM parked_jobs WHERE tenant_id = %(tenant_id)s ORDER BY place", place.values
        ).fetchall():
            connection.execute(_QUEUE, {"job": Jsonb(job)})
        connection.execute(_FORGET_PARKED, place.values)
        connection.execute(_OPEN, {**place.values, "reason": reason})


def leave(place: Place) -> None:
    """Note that the tenant is gone; its jobs are elsewhere now."""
    with place.connect() as connection, connection.transaction():
        connection.execute(_CLOSE, {**place.values, "reason": "gone"})
        connection.execute(_FORGET_PARKED, place.values)


def copy(source: Place, target: Place, *, keeps_tenant: bool, on_table: Callable[[str], None]) -> None:
    """Copy all rows of the tenant in one transaction, in place of those that an earlier try or move left.

    Args:
        source: closed by `close`.
        target: not serving the tenant.
        keeps_tenant: whether the target is the first database, where the tenant itself stays.
        on_table: called with the name of each table before it is copied.

    Raises:
        Conflict: the schemas differ, or the target serves the tenant.
        DatabaseUnavailable: a database does not answer, or broke a connection; nothing was changed.
    """
    try:
        with source.connect() as reading, target.connect() as writing:
            _require_same_schema(reading, writing)
            with writing.transaction():
                writing.execute(_LOCK, target.values)
                if reason_of(writing, target) is None and _holds(writing, target):
                    raise Conflict("The target serves the tenant; nothing was copied.")
                writing.execute(_CLOSE, {**target.values, "reason": "arriving"})
            with writing.transaction(), reading.transaction():
                writing.execute(_LOCK, target.values)
                if reason_of(writing, target) != "arriving":
                    raise Conflict("The target is not waiting for the tenant any more; nothing was copied.")
                set_tenant(reading, str(source.tenant_id))
                set_tenant(writing, str(target.tenant_id))
                _remove_rows(writing, target, keeps_tenant=keeps_tenant)
                for table in _in_order(reading):
                    on_table(table.name)
                    _copy_table(reading, writing, table, source)
                writing.execute(_FORGET_PARKED, target.values)
                for place, job in reading.execute(_PARKED, source.values).fetchall():
                    job_values = {"place": place, "job": Jsonb(job)}
                    writing.execute(_PARK_ONE, target.values | job_values)
                writing.execute(_RAISE_GENERATIONS, target.values)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable from error


def digests(place: Place) -> dict[str, tuple[int, str]]:
    """Number and SHA-256 of the tenant's rows in each table, whatever order they are in."""
    found = {}
    with place.connect() as connection, connection.transaction():
        set_tenant(connection, str(place.tenant_id))
        for table in _in_order(connection):
            digest, rows = hashlib.sha256(), 0
            for line in _lines(connection, table, place):
                digest.update(line)
                rows += line.count(b"\n")
            found[table.name] = (rows, digest.hexdigest())
        jobs = connection.execute(_PARKED, place.values).fetchall()
        listed = repr([(place_, sorted(job.items())) for place_, job in jobs]).encode()
        found["jobs"] = (len(jobs), hashlib.sha256(listed).hexdigest())
    return found


def remove(place: Place, *, keeps_tenant: bool) -> None:
    """Remove the tenant's rows from a database that does not serve it; it goes on refusing the tenant.

    Args:
        place: where; nothing happens if the tenant is served there, or is only leaving.
        keeps_tenant: whether it is the first database, where the tenant itself stays.
    """
    with place.connect() as connection, connection.transaction():
        connection.execute(_LOCK, place.values)
        if reason_of(connection, place) not in {"arriving", "gone"}:
            return
        set_tenant(connection, str(place.tenant_id))
        _remove_rows(connection, place, keeps_tenant=keeps_tenant)
        connection.execute(_FORGET_PARKED, place.values)
        connection.execute(_CLOSE, {**place.values, "reason": "gone"})


def _holds(connection: Connection, place: Place) -> bool:
    set_tenant(connection, str(place.tenant_id))
    row = _one(connection, "SELECT EXISTS (SELECT FROM users WHERE tenant_id = %(tenant_id)s)", place.values)
    return bool(row and row[0])


def _require_same_schema(one: Connection, other: Connection) -> None:
    if (first := revision_of(one)) != (second := revision_of(other)):
        raise Conflict(f"The schemas differ ({first} and {second}). Run: anamnesis migrate")
    if one.execute(_ENCRYPTION).fetchall() != other.execute(_ENCRYPTION).fetchall():
        raise Conflict("One database is encrypted further than the other; see: anamnesis encryption status")


def _remove_rows(connection: Connection, place: Place, *, keeps_tenant: bool) -> None:
    if not keeps_tenant:
        connection.execute("DELETE FROM tenants WHERE id = %(tenant_id)s", place.values)
        return
    # With their users most rows go, and no trigger keeps versions of them.
    connection.execute("DELETE FROM users WHERE tenant_id = %(tenant_id)s", place.values)
    for table in reversed(_in_order(connection)):
        if table.name != "tenants":
            statement = sql.SQL("DELETE FROM {} WHERE tenant_id = {}").format(
                table.identifier, str(place.tenant_id)
            )
            connection.execute(statement)


def _in_order(connection: Connection) -> Sequence[Table]:
    """The tables with rows of tenants, each after those that it refers to."""
    tables = {table.name: table for table in tables_of(connection)}
    wanted = {name for name, table in tables.items() if table.of_tenants and name not in _NOT_COPIED} | {"tenants"}
    needs: dict[str, set[str]] = {name: set() for name in wanted}
    for name, needed in (*connection.execute(_REFERENCES).fetchall(), *_AFTER.items()):
        if name in wanted and needed in wanted:
            needs[name].add(needed)
    ordered: list[Table] = []
    while needs:
        free = sorted(name for name, needed in needs.items() if not needed & needs.keys())
        ordered += [tables[name] for name in free]
        for name in free:
            del needs[name]
    return ordered


def _rows_of(table: Table, place: Place) -> sql.Composed:
    column = "id" if table.name == "tenants" else "tenant_id"
    return sql.SQL("SELECT {} FROM {} WHERE {} = {}").format(
        table.column_list, table.identifier, sql.Identifier(column), str(place.tenant_id)
    )


def _copy_table(reading: Connection, writing: Connection, table: Table, source: Place) -> None:
    """Copy over a temporary table: PostgreSQL has no COPY into a table with row-level security."""
    arriving = sql.Identifier(f"arriving_{table.name}")
    writing.execute(
        sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA").format(
            arriving, table.column_list, table.identifier
        )
    )
    with (
        reading.cursor() as from_source,
        writing.cursor() as to_target,
        from_source.copy(sql.SQL("COPY ({}) TO STDOUT").format(_rows_of(table, source))) as rows,
        to_target.copy(sql.SQL("COPY {} FROM STDIN").format(arriving)) as copied,
    ):
        for block in rows:
            copied.write(block)
    unless_there = sql.SQL(" ON CONFLICT DO NOTHING" if table.name == "tenants" else "")
    writing.execute(
        sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}{}").format(
            table.identifier, table.column_list, table.column_list, arriving, unless_there
        )
    )


def _lines(connection: Connection, table: Table, place: Place) -> Iterator[bytes]:
    """The rows of a table as COPY writes them, sorted by their text: the same in every database."""
    query = sql.SQL('SELECT row::text FROM ({}) AS row ORDER BY row::text COLLATE "C"').format(
        _rows_of(table, place)
    )
    with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY ({}) TO STDOUT").format(query)) as rows:
        for block in rows:
            yield bytes(block)


def _one(connection: Connection, statement: LiteralString, values: dict[str, Any]) -> Any:
    return connection.execute(statement, values).fetchone()
