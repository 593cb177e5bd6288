"""Undoes runs exactly; and removes the undo data after the configured time."""

from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import tuple_row

from services.compression import sql, undo_sql
from services.compression.store import compression_trigger
from services.errors import Conflict, NotFound
from services.jobs.queue import JobQueue
from services.memory.episodes.store import FORGET
from services.memory.operations import Operation, OperationLog
from services.platform.database_errors import again_if_contended
from services.platform.postgres import UNHURRIED_S, Database

_RUNS_AT_ONCE = 100


class CompressionUndo:
    """Undoes runs."""

    def __init__(self, database: Database, log: OperationLog, jobs: JobQueue) -> None:
        self._database = database
        self._log = log
        self._jobs = jobs

    @again_if_contended
    async def undo(self, tenant_id: UUID, user_id: UUID, run_id: UUID) -> int:
        """Restore what a run superseded, and remove what it made; return how many were restored.

        What was removed since stays removed.

        Raises:
            NotFound: the user has no such run.
            Conflict: it has changed nothing, was undone, is too old, or a later run builds on what it made.
            DatabaseUnavailable: the database does not answer.
        """
        values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "run_id": run_id}
        async with self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            await connection.execute(sql.LOCK_USER, values)
            run = await (await connection.execute(undo_sql.LOCK_RUN, values)).fetchone()
            if run is None:
                raise NotFound(f"There is no run of compression {run_id}.")
            status, dry_run, forgotten, expert_id = run
            _refuse(status, dry_run=dry_run, forgotten=forgotten)
            await connection.execute(undo_sql.LOCK_EPISODES, values)
            built_on = await (await connection.execute(undo_sql.BUILT_ON, values)).fetchone()
            if built_on is not None:
                raise Conflict(f"The later run {built_on[0]} builds on what this one made; undo that one first.")
            restored = (await connection.execute(undo_sql.RESTORE, values)).rowcount
            restored += (await connection.execute(undo_sql.RESTORE_RETIRED, values)).rowcount
            removed = [row[0] for row in await (await connection.execute(undo_sql.REMOVE_MADE, values)).fetchall()]
            await connection.execute(undo_sql.UNDONE, values)
            if removed:
                await self._jobs.defer(
                    connection, FORGET, tenant_id=tenant_id, user_id=user_id, episode_ids=removed
                )
            await self._log.append(
                connection,
                tenant_id=tenant_id,
                user_id=user_id,
                operation=Operation(
                    "compression_undo", field=str(run_id), results={"restored": restored, "removed": len(removed)}
                ),
                trigger=compression_trigger(expert_id, run_id),
            )
        return restored

    async def forget_older(self, tenant_id: UUID, before: datetime) -> int:
        """Remove the undo data of the tenant's runs that ended before a time; what they superseded stays so.

        A text that has since been merged itself, and was kept only for undoing, is removed; so is what a lost run
        staged.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {"tenant_id": tenant_id, "before": before, "limit": _RUNS_AT_ONCE}
        async with self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            await connection.execute(undo_sql.STAGED_BY_LOST, values)
        old = await self._database.fetch(tenant_id, undo_sql.OLD, values, tuple_row)
        for run_id, user_id in old:
            await self._forget(tenant_id, user_id, run_id)
        return len(old)

    @again_if_contended
    async def _forget(self, tenant_id: UUID, user_id: UUID, run_id: UUID) -> None:
        values = {"tenant_id": tenant_id, "user_id": user_id, "run_id": run_id}
        async with self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection:
            await connection.execute(sql.LOCK_USER, values)
            if await (await connection.execute(undo_sql.LOCK_OLD, values)).fetchone() is None:
                return
            await connection.execute(undo_sql.LOCK_EPISODES, values)
            await connection.execute(undo_sql.HAND_DOWN, values)
            rows = await (await connection.execute(undo_sql.REMOVE_BETWEEN, values)).fetchall()
            removed = [row[0] for row in rows]
            await connection.execute(undo_sql.FORGET_SOURCES, values)
            await connection.execute(undo_sql.FORGET_DRAFTS, values)
            await connection.execute(undo_sql.FORGOTTEN, values)
            if removed:
                await self._jobs.defer(
                    connection, FORGET, tenant_id=tenant_id, user_id=user_id, episode_ids=removed
                )


def _refuse(status: str, *, dry_run: bool, forgotten: bool) -> None:
    if status == "undone":
        raise Conflict("This run was undone already.")
    if status != "done" or dry_run:
        raise Conflict("This run has changed nothing that could be undone.")
    if forgotten:
        raise Conflict("This run is too old: how to undo it was forgotten.")
