"""Tasks: functions over ids, their retries, and what is recorded of a failure."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import procrastinate
from procrastinate.jobs import Job

from services.errors import AnamnesisError
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S, Database

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
"""`async def task(job: RunningJob, *, conversation_id: UUID, …)`: ids are all that it is given.

It returns the seconds after which it is to run again, if it is."""


class TryFailed(Exception):
    """A try of a job failed; the failure is already counted and logged."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        super().__init__(f"failed {failures} times")


class Postponed(Exception):
    """A job runs later; its try is not counted."""

    def __init__(self, wait_s: float | None = None) -> None:
        self.wait_s = wait_s
        """None = as long as one that makes room for turns."""
        super().__init__()


class JobRetries(procrastinate.BaseRetryStrategy):
    """Retries a job after 1, 2 and 4 times `wait_s`, then never; a postponed one after its pause."""

    def __init__(self, wait_s: float, postponed_s: float) -> None:
        self._wait_s = wait_s
        self._postponed_s = postponed_s

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> procrastinate.RetryDecision | None:
        """Decide after a failure. A job interrupted by its worker's stop goes back at once, uncounted."""
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
    """Ids as a job carries them."""
    return {
        name: [str(UUID(str(each))) for each in value] if isinstance(value, list) else str(UUID(str(value)))
        for name, value in ids.items()
    }


def as_ids(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The ids that a job carries.

    Raises:
        ValueError: something in it is no id.
    """
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
