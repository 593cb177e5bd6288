"""Compression runs in PostgreSQL: read, staged beside the existing episodes, and swapped in one transaction."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.compression import sql
from services.compression.models import Member, MergedText, Report
from services.compression.run import LostRun, Reason, Run, StoredRun
from services.encryption.marks import Words, WordsInJson
from services.identity.tenants import user_id_of
from services.jobs.queue import JobQueue
from services.memory.blocks import Owner
from services.memory.operations import Operation, OperationLog, Trigger
from services.platform.authorship import made_by
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S, Database

COMPRESS = "compress_memory"
"""Task that carries out a run."""
_LEASE = timedelta(minutes=15)
"""Silence after which a run is presumed lost."""
_MOST_EPISODES = 10_000


class CompressionStore:
    """Stores runs, and swaps merged texts for their sources."""

    def __init__(self, database: Database, log: OperationLog, jobs: JobQueue) -> None:
        self._database = database
        self._log = log
        self._jobs = jobs

    async def user_id(self, tenant_id: UUID, user: str) -> UUID:
        """Who is meant by the caller's own name for a user.

        Raises:
            NotFound: the tenant has no such user.
            DatabaseUnavailable: the database does not answer.
        """
        return await user_id_of(self._database, tenant_id, user)

    async def add(
        self, connection: Connection, owner: Owner, *, reason: Reason, dry_run: bool, job: bool
    ) -> UUID | None:
        """Request a run, in the caller's transaction; None if one is in progress, or the user does not exist.

        With `job`, a worker carries it out.
        """
        run_id = uuid7()
        values = {**vars(owner), "id": run_id, "reason": reason, "dry_run": dry_run}
        await connection.execute(sql.END_LOST, values)
        await connection.execute(sql.FORGET_STAGED, values)
        if await (await connection.execute(sql.ADD_RUN, values)).fetchone() is None:
            return None
        if job:
            await self._jobs.defer(
                connection,
                COMPRESS,
                tenant_id=owner.tenant_id,
                lock=f"{COMPRESS}:{owner.tenant_id}",  # beside turns' jobs one is enough
                user_id=owner.user_id,
                run_id=run_id,
            )
        return run_id

    async def take(self, tenant_id: UUID, run_id: UUID) -> Run | None:
        """Start carrying out a run, from its beginning; None if it has ended, or its user was erased.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {"tenant_id": tenant_id, "run_id": run_id, "token": uuid7(), "lease": _LEASE}
        async with (
            self._database.tenant(tenant_id, statement_s=UNHURRIED_S) as connection,
            connection.cursor(row_factory=class_row(Run)) as c,
        ):
            run = await (await c.execute(sql.TAKE, values)).fetchone()
            await connection.execute(sql.FORGET_STAGED_OF, values)
        return run

    async def members(self, run: Run) -> tuple[list[Member], int]:
        """Return the owner's newest 10,000 live episodes, oldest first, and their total number.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {**run.values, "most": _MOST_EPISODES}
        found = await self._database.fetch(run.tenant_id, sql.MEMBERS, values, class_row(Member))
        rows = await self._database.fetch(run.tenant_id, sql.LIVING, values, tuple_row)
        return found, rows[0][0]

    async def keep(self, run: Run) -> None:
        """Send a heartbeat of the run.

        Raises:
            LostRun: it has been taken over.
            DatabaseUnavailable: the database does not answer.
        """
        values = {**run.values, "lease": _LEASE}
        if not await self._database.fetch(run.tenant_id, sql.KEEP, values, tuple_row):
            raise LostRun

    async def stage(self, run: Run, refined: MergedText) -> None:
        """Stage a text beside the episodes that it will replace; it is not recalled yet.

        Raises:
            LostRun: somebody else has taken the run over.
            DatabaseUnavailable: the database does not answer.
        """
        outcomes = refined.outcomes
        values = {
            **run.values,
            "draft_id": uuid7(),
            "content": Words(refined.text),
            "made_by": Jsonb(made_by(actor="compression", run_id=run.id)),
            "ids": [member.id for member, _ in outcomes],
            "outcomes": [outcome for _, outcome in outcomes],
            "counts": [member.source_count for member, _ in outcomes],
            "hashes": [member.content_hash for member, _ in outcomes],
        }
        async with self._database.tenant(run.tenant_id, statement_s=UNHURRIED_S) as connection:
            if await (await connection.execute(sql.STAGE, values)).fetchone() is None:
                raise LostRun
            await connection.execute(sql.STAGE_SOURCES, values)

    async def swap(self, run: Run, report: Report) -> None:
        """Replace the sources by the staged texts: all of it, or nothing.

        A text is left out if a source was changed, superseded or removed since it was read. The report is
        completed and stored.

        Raises:
            LostRun: somebody else has taken the run over, or its user was erased.
            DatabaseUnavailable: the database does not answer; nothing was changed, unless the connection broke
                during the commit.
        """
        values = run.values
        async with self._database.tenant(run.tenant_id, statement_s=UNHURRIED_S) as connection:
            for statement in (sql.LOCK_USER, sql.LOCK_RUN):
                if await (await connection.execute(statement, values)).fetchone() is None:
                    raise LostRun
            await connection.execute(sql.LOCK_SOURCES, values)
            report.changed_meanwhile = (await connection.execute(sql.FORGET_OUTDATED, values)).rowcount
            await connection.execute(sql.CONSOLIDATE, values)
            await connection.execute(sql.SUPERSEDE, values)
            made = await (await connection.execute(sql.MADE, values)).fetchall()
            await connection.execute(sql.UNSTAGE, values)
            _count(report, made)
            left = await (await connection.execute(sql.LIVING, values)).fetchone()
            report.episodes_after = left[0] if left else 0
            await self._note(connection, run, made)
            await connection.execute(sql.FINISH, {**values, "status": "done", "report": _stored(report)})

    async def end(self, run: Run, status: Literal["done", "failed"], report: Report) -> None:
        """End a run that changes nothing; what it staged is removed.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {**run.values, "status": status, "report": _stored(report)}
        async with self._database.tenant(run.tenant_id, statement_s=UNHURRIED_S) as connection:
            ended = await connection.execute(sql.FINISH, values)
            if ended.rowcount:
                await connection.execute(sql.FORGET_STAGED_OF, values)

    async def runs(
        self,
        tenant_id: UUID,
        user_id: UUID,
        *,
        run_id: UUID | None = None,
        after: tuple[datetime, UUID] | None = None,
        limit: int = 1,
    ) -> list[StoredRun]:
        """A user's runs, newest first, or the one of this id.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        at, last = after or (None, None)
        values = {
            "tenant_id": tenant_id,
            "user_id": user_id,
            "run_id": run_id,
            "after_at": at,
            "after_id": last,
            "limit": limit,
        }
        return await self._database.fetch(tenant_id, sql.RUNS, values, class_row(StoredRun))

    async def _note(self, connection: Connection, run: Run, made: Sequence[Any]) -> None:
        """Log only ids, so that an episode's text does not outlive it."""
        sources: dict[UUID, dict[str, list[str]]] = {}
        for draft_id, episode_id, outcome in made:
            sources.setdefault(draft_id, {}).setdefault(outcome, []).append(str(episode_id))
        operations = [
            Operation("episode_consolidate", field=str(draft_id), results=by_outcome)
            for draft_id, by_outcome in sources.items()
        ]
        for operation in operations:
            await self._log.append(
                connection,
                tenant_id=run.tenant_id,
                user_id=run.user_id,
                operation=operation,
                trigger=compression_trigger(run.expert_id, run.id),
            )


def compression_trigger(expert_id: UUID, run_id: UUID) -> Trigger:
    """What changes memory in a run."""
    return Trigger("compression", expert_id=expert_id, details={"run_id": str(run_id)})


def _count(report: Report, made: Sequence[Any]) -> None:
    report.consolidated = len({draft_id for draft_id, _, _ in made})
    report.superseded = len(made)
    report.dropped = [
        {"episode_id": str(episode_id), "reason": outcome}
        for _, episode_id, outcome in made
        if outcome != "represented"
    ]


def _stored(report: Report) -> WordsInJson:
    return WordsInJson(asdict(report), clear=["by"])
