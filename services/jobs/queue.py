"""The job queue: procrastinate on the service's own PostgreSQL.

Jobs are deferred in the transaction that causes them, so none is lost and none is for data that does
not exist. They carry ids only.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from uuid import UUID

import procrastinate
from procrastinate import builtin_tasks

from services.platform.postgres import Connection, Database

AFTER_TURN: tuple[str, ...] = ()
"""Names of the tasks that every completed turn causes."""

_KEEP_FINISHED_HOURS = 72
_STOP_SECONDS = 2.0


class JobQueue:
    """Defers jobs and, in a process that is a worker, runs them."""

    def __init__(self, database: Database, *, after_turn: Sequence[str] = AFTER_TURN) -> None:
        self._database = database
        self._after_turn = tuple(after_turn)
        self._worker: asyncio.Task[None] | None = None
        self.app = procrastinate.App(connector=procrastinate.PsycopgConnector())
        self.app.periodic(cron="17 4 * * *")(
            self.app.task(name="remove_finished_jobs", queueing_lock="remove_finished_jobs", pass_context=True)(
                _remove_finished_jobs
            )
        )

    async def open(self) -> None:
        """Use the database's connections."""
        await self.app.open_async(self._database.pool)

    async def defer_after_turn(
        self, connection: Connection, *, tenant_id: UUID, conversation_id: UUID, turn_id: UUID
    ) -> None:
        """Defer, in the caller's transaction, the jobs that a completed turn causes."""
        for name in self._after_turn:
            await self.app.configure_task(name, connection=connection).defer_async(
                tenant_id=str(tenant_id), conversation_id=str(conversation_id), turn_id=str(turn_id)
            )

    def start_worker(self) -> None:
        """Run jobs in this process, beside whatever else it does."""
        self._worker = asyncio.create_task(
            self.app.run_worker_async(
                install_signal_handlers=False,
                concurrency=2,
                fetch_job_polling_interval=30.0,  # for notifications that were missed
                shutdown_graceful_timeout=_STOP_SECONDS,
            ),
            name="worker",
        )

    async def worker_ended(self) -> None:
        """Wait until the worker stops by itself, which it does only when it fails."""
        if self._worker is not None:
            await asyncio.wait({self._worker})

    @property
    def worker_state(self) -> str:
        """`running`, `stopped` after a failure, or `external` when another process does the work."""
        if self._worker is None:
            return "external"
        return "stopped" if self._worker.done() else "running"

    async def close(self) -> None:
        """Stop the worker; jobs that do not end within two seconds are aborted, and tried again if they retry."""
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker


async def _remove_finished_jobs(context: procrastinate.JobContext, timestamp: int) -> None:  # noqa: ARG001
    await builtin_tasks.remove_old_jobs(context, max_hours=_KEEP_FINISHED_HOURS)
