"""The queue library's parts as the service needs them: connections, ticks of periodic jobs, ends of jobs."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Container, Iterable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import procrastinate
import psycopg
import structlog
from procrastinate import exceptions
from procrastinate.connector import BaseConnector, Notify
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.periodic import PeriodicDeferrer, TaskAtTime
from procrastinate.worker import Worker

from services.errors import DatabaseUnavailable
from services.platform.postgres import Database

_RECONNECT_S = 1.0


class QueueConnector(procrastinate.PsycopgConnector):
    """The library's connector, which would listen at the pool's own address."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Pass on notifications without end; while they cannot be had, jobs are found by polling."""
        (channel,) = channels
        while True:
            with contextlib.suppress(DatabaseUnavailable):
                async with aclosing(self._database.notifications(channel)) as notifications:
                    async for payload in notifications:
                        if payload:  # the first one is empty: it listens
                            await on_notification(channel=channel, payload=payload)
            await asyncio.sleep(_RECONNECT_S)


class DueTicks(PeriodicDeferrer):
    """Defers each periodic task for its last tick.

    The library defers for every tick since the one before. A clock that is set forward by a day would then cost
    tens of thousands of statements, and one that is set back would stop all periodic tasks for as long.
    """

    def get_previous_tasks(self, at: float) -> Iterable[TaskAtTime]:
        """The tasks whose last tick before `at`, in seconds since 1970, differs from the one that was deferred."""
        for key, periodic in self.registry.periodic_tasks.items():
            tick = round(periodic.croniter.get_prev(ret_type=float, start_time=at))
            deferred = self.last_defers.get(key)
            if tick == deferred or (deferred is None and at - tick > self.max_delay):
                continue
            self.last_defers[key] = tick
            yield periodic, tick


class ScheduledWorker(Worker):
    """The library's worker, with this schedule."""

    async def _periodic_deferrer(self) -> None:
        await DueTicks(registry=self.app.periodic_registry).worker()


log = structlog.get_logger(__name__)

_WAITS_S = (0.2, 1.0, 3.0)
_STRANGE_S = 10.0
"""Seconds until a job whose task this version lacks is offered again: a rolling upgrade may be under way."""
_MOST_STRANGE_TRIES = 360
"""An hour of them; then it fails."""


class Outcomes(JobManager):
    """The library's manager with retries; its own two methods give up at once.

    A live worker would keep a job whose end it could not store, and no other worker would take it.
    """

    def __init__(self, connector: BaseConnector, tasks: Container[str]) -> None:
        """Take the names of the tasks that this version has."""
        super().__init__(connector)
        self._tasks = tasks

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """Store that a job has ended; put one of another version's tasks back, for a worker of that version."""
        if status is Status.FAILED and job.task_name not in self._tasks and job.attempts < _MOST_STRANGE_TRIES:
            await self.retry_job(job, retry_at=datetime.now(UTC) + timedelta(seconds=_STRANGE_S))
            return
        await _with_patience(job, lambda: super(Outcomes, self).finish_job(job, status, delete_job))

    async def retry_job(self, job: Job, *arguments: Any, **options: Any) -> None:
        """Put a job back, or end it if another one with its queueing lock is waiting already."""
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
                # The library's functions raise this for a job that is not running: it was erased, or requeued.
                log.info("job had ended already", job_id=job.id, task=job.task_name)
                return None
            if wait_s is None or not isinstance(
                error.__cause__, psycopg.OperationalError | psycopg.InterfaceError
            ):
                raise
        await asyncio.sleep(wait_s)
    return None
