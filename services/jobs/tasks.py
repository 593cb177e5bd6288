"""Tasks: functions of ids, their retries, the stored reason of a failure, and classes that adapt procrastinate."""

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import procrastinate
import psycopg
import structlog
from procrastinate import exceptions
from procrastinate.connector import BaseConnector, Notify
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.periodic import PeriodicDeferrer, TaskAtTime
from procrastinate.worker import Worker

from services.errors import AnamnesisError, DatabaseUnavailable
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S, Database

SUMMARISE = "update_summary"
"""Task that renews a conversation's rolling summary."""
ARCHIVE = "archive_topics"
"""Task that archives a conversation's topics."""

RETRIES = 3
"""Number of retries of a failed job."""

LONGEST_S = 600.0
"""Seconds after which a try fails."""

WORKER_LOST = "WorkerLost: The process that ran the job ended before the job did."

Ids = UUID | list[UUID]


@dataclass(frozen=True)
class RunningJob:
    """The job for which a task runs. A job may run more than once, so tasks must be idempotent."""

    id: int
    tenant_id: UUID
    _database: Database = field(repr=False)

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        """Open a transaction that sees only the job's tenant; commit at the end."""
        return self._database.tenant(self.tenant_id, statement_s=UNHURRIED_S)


Task = Callable[..., Awaitable[float | None]]
"""Form of a task: `async def task(job: RunningJob, *, conversation_id: UUID, …)`; all its arguments are ids.

It returns the seconds after which it is to run again, or None.
"""


class TryFailed(Exception):
    """A try of a job failed; the failure is already counted and logged."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        super().__init__(f"failed {failures} times")


class Postponed(Exception):
    """A request to run a job later, without counting the try."""

    def __init__(self, wait_s: float | None = None) -> None:
        self.wait_s = wait_s
        """Seconds to wait; None = the usual pause of jobs that make room for turns."""
        super().__init__()


class JobRetries(procrastinate.BaseRetryStrategy):
    """Retries a job after 1, 2 and 4 times `wait_s`, then never; retries a postponed job after its pause."""

    def __init__(self, wait_s: float, postponed_s: float) -> None:
        self._wait_s = wait_s
        self._postponed_s = postponed_s

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> procrastinate.RetryDecision | None:
        """Decide after a failure. A job that is interrupted because its worker stops returns uncounted."""
        if isinstance(exception, asyncio.CancelledError):
            return procrastinate.RetryDecision(retry_at=datetime.now(UTC))
        if isinstance(exception, Postponed):
            wait_s = self._postponed_s if exception.wait_s is None else exception.wait_s
            return procrastinate.RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=wait_s))
        failures = exception.failures if isinstance(exception, TryFailed) else 1
        if failures > RETRIES:
            return None
        wait = timedelta(seconds=self._wait_s * 2 ** (failures - 1))
        return procrastinate.RetryDecision(retry_at=datetime.now(UTC) + wait)


def as_arguments(ids: Mapping[str, Ids]) -> dict[str, Any]:
    """Return ids in the form that a job stores."""
    return {
        name: [str(UUID(str(each))) for each in value] if isinstance(value, list) else str(UUID(str(value)))
        for name, value in ids.items()
    }


def as_ids(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ids that a job stores. Raises `ValueError` if an argument is no id."""
    return {
        name: [UUID(each) for each in value] if isinstance(value, list) else UUID(value)
        for name, value in arguments.items()
    }


def reason_of(error: Exception) -> str:
    """Return what is stored of an error: its class and a fixed text, because its message may quote a user."""
    name = type(error).__name__
    if isinstance(error, AnamnesisError):
        return f"{name}: {(type(error).__doc__ or '').strip().splitlines()[0]}"
    if isinstance(error, TimeoutError):
        return f"{name}: The job, or something that it asked, took too long."
    return f"{name}: Not expected; the log has the place."


def place_of(error: Exception) -> str:
    """Return where an error was raised, without its message."""
    return "".join(traceback.format_tb(error.__traceback__)).rstrip()


_RECONNECT_S = 1.0


class QueueConnector(procrastinate.PsycopgConnector):
    """procrastinate's connector; its own `listen_notify` would connect to the address of the pool."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Pass on notifications without end; while there are none, polling finds the jobs."""
        (channel,) = channels
        while True:
            with contextlib.suppress(DatabaseUnavailable):
                async with aclosing(self._database.notifications(channel)) as notifications:
                    async for payload in notifications:
                        if payload:  # the first one is empty and says that it listens
                            await on_notification(channel=channel, payload=payload)
            await asyncio.sleep(_RECONNECT_S)


class DueTicks(PeriodicDeferrer):
    """Defers each periodic task for its last tick only.

    procrastinate defers a task for every tick since the last one. Setting a clock forward by a day would then cost
    tens of thousands of statements, and setting it back would stop all periodic tasks for as long.
    """

    def get_previous_tasks(self, at: float) -> Iterable[TaskAtTime]:
        """Return the tasks whose last tick before `at`, in seconds since 1970, has not been deferred yet."""
        for key, periodic in self.registry.periodic_tasks.items():
            tick = round(periodic.croniter.get_prev(ret_type=float, start_time=at))
            deferred = self.last_defers.get(key)
            if tick == deferred or (deferred is None and at - tick > self.max_delay):
                continue
            self.last_defers[key] = tick
            yield periodic, tick


class ScheduledWorker(Worker):
    """procrastinate's worker with `DueTicks` as its schedule."""

    async def _periodic_deferrer(self) -> None:
        await DueTicks(registry=self.app.periodic_registry).worker()


log = structlog.get_logger(__name__)

_WAITS_S = (0.2, 1.0, 3.0)
_STRANGE_S = 10.0
"""Seconds until a job with a task that this version lacks is offered again: a rolling upgrade may be under way."""
_MOST_STRANGE_TRIES = 360
"""Maximum tries of such a job, an hour in all; then it fails."""


class Outcomes(JobManager):
    """procrastinate's job manager with retries, because two of its methods give up at once. A live worker whose
    result could not be stored would otherwise keep its job, and no other worker would take it."""

    def __init__(self, connector: BaseConnector, tasks: Container[str]) -> None:
        """Take the names of the tasks that this version has."""
        super().__init__(connector)
        self._tasks = tasks

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """Store that a job has ended; put one whose task this version lacks back, for another worker."""
        if status is Status.FAILED and job.task_name not in self._tasks and job.attempts < _MOST_STRANGE_TRIES:
            await self.retry_job(job, retry_at=datetime.now(UTC) + timedelta(seconds=_STRANGE_S))
            return
        await _with_patience(job, lambda: super(Outcomes, self).finish_job(job, status, delete_job))

    async def retry_job(self, job: Job, *arguments: Any, **options: Any) -> None:
        """Put a job back, or end it if another job is already waiting with its queueing lock."""
        try:
            await _with_patience(job, lambda: super(Outcomes, self).retry_job(job, *arguments, **options))
        except exceptions.UniqueViolation:
            await self.finish_job(job, Status.ABORTED, delete_job=False)


async def _with_patience(job: Job, store: Callable[[], Awaitable[None]]) -> None:
    for wait_s in (*_WAITS_S, None):
        try:
            return await store()
        except exceptions.ConnectorException as error:
            if isinstance(error.__cause__, psycopg.errors.RaiseException):
                # procrastinate's functions raise this for a job that is not running: it was erased, or requeued.
                log.info("job had ended already", job_id=job.id, task=job.task_name)
                return None
            if wait_s is None or not isinstance(
                error.__cause__, psycopg.OperationalError | psycopg.InterfaceError
            ):
                raise
        await asyncio.sleep(wait_s)
    return None
