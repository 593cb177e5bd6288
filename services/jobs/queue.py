"""Job queue: procrastinate on the service's own PostgreSQL.

A job is queued in the transaction that causes it, so none is lost and none refers to data that do not exist. It
holds only ids. A job runs at least once: if its worker is lost, it runs again.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import Any, LiteralString
from uuid import UUID

import procrastinate
import structlog
from opentelemetry.trace import SpanKind
from procrastinate import exceptions
from procrastinate.job_context import AbortReason
from psycopg.types.json import Jsonb

from services.errors import DatabaseUnavailable, Unavailable
from services.jobs import tasks
from services.jobs.records import JobRecords
from services.jobs.tasks import Outcomes, QueueConnector, ScheduledWorker
from services.platform import span_names as names
from services.platform.authorship import authoring_job
from services.platform.connections import Connection
from services.platform.metrics import JOB_SECONDS
from services.platform.postgres import Database
from services.platform.tracing import Attributes, causes, span, taken_causes
from services.usage.ledger import Spender, UsageMeter

_KEEP_FINISHED_HOURS = 72
_KEPT_AT_MOST = 20_000
"""Maximum number of succeeded jobs that are kept: millions of rows would slow down taking the next job."""
_KEEP_FAILED_HOURS = 30 * 24
_AT_ONCE = 2
_BEFORE_ANOTHER_START_S = 1.0
_MOST_POSTPONEMENTS = 120
"""Maximum number of postponements, ten minutes in total; then a job runs even if the process is busy."""
_FIRST = 100  # priority of the queue's own maintenance

# The library's own statement fails if a job is already waiting, and would need a savepoint: two more round trips.
_ONE_WAITS: LiteralString = "ON CONFLICT (queueing_lock) WHERE status = 'todo'"
IF_NONE_WAITS: LiteralString = f"{_ONE_WAITS} DO NOTHING"
"""End of a statement that queues a job: it does nothing if a job with the same queueing lock is waiting."""
_DEFER: LiteralString = f"""
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
VALUES (%(queue)s, %(task)s, %(priority)s, %(lock)s, %(queueing_lock)s, %(arguments)s, %(scheduled_at)s)
{_ONE_WAITS}
"""  # noqa: S608 — our own text only
_DEFER_ONCE = f"{_DEFER} DO NOTHING RETURNING true"
# Only while traces are kept: it locks the waiting job until the caller's transaction ends.
_DEFER_OR_LINK = f"""{_DEFER} DO UPDATE
SET args = jsonb_set(procrastinate_jobs.args, '{{traceparents}}',
    coalesce(procrastinate_jobs.args->'traceparents', '[]') || (excluded.args->'traceparents'))
WHERE jsonb_array_length(coalesce(procrastinate_jobs.args->'traceparents', '[]')) < 32
RETURNING xmax = 0
"""

_RESCUE = "rescue_lost_jobs"
_REMOVE = "remove_finished_jobs"
_TRIM = "trim_finished_jobs"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class WorkerTimings:
    """Timings of the queue, in seconds."""

    retry_wait_s: float = 2.0
    """Wait before the first retry; doubled before each further one."""
    postponed_s: float = 5.0
    """Wait before a postponed job is tried again."""
    left_out_s: float = 30.0
    """Maximum time for which a periodic task is left out while turns run."""
    poll_s: float = 2.0
    """Interval of polling for due jobs; new jobs are also announced."""
    heartbeat_s: float = 5.0
    stalled_s: float = 25.0
    """Silence after which a worker counts as lost and its jobs run again."""
    rescue: str = "* * * * * */15"
    """Schedule of the search for lost jobs: a cron expression whose last field is seconds."""
    grace_s: float = 1.0
    """Time that running jobs have to end when their worker stops; unfinished ones return to the queue."""
    store_away_s: float = 15.0
    """Pause before a job whose store did not answer is queued again."""
    longest_delay_s: float = 900.0
    """Maximum delay of a job; one that waits longer was queued before a clock was set back."""


class JobQueue:
    """Queues jobs and, in a worker process, runs them."""

    def __init__(
        self,
        database: Database,
        *,
        timings: WorkerTimings | None = None,
        meter: UsageMeter | None = None,
        at_once: int = _AT_ONCE,
    ) -> None:
        """Take the services.

        Args:
            meter: Counts the model calls that jobs cause.
            at_once: Number of jobs that a worker runs at once.
        """
        self._database = database
        self._at_once = at_once
        self._meter = meter or UsageMeter()
        self._timings = timings or WorkerTimings()
        self.records = JobRecords(database, settles_s=self._timings.stalled_s)
        self._worker: asyncio.Task[None] | None = None
        self._runner: ScheduledWorker | None = None
        self._working = False
        self._stopping = False
        self._pressed: Callable[[], bool] = lambda: False
        self.turns_run: Callable[[], bool] = lambda: False
        """Tells whether turns run in this process; periodic tasks that can wait are then left out."""
        self.app = procrastinate.App(connector=QueueConnector(database))
        self.app.job_manager = Outcomes(self.app.connector, self.app.tasks)
        self.periodic(_RESCUE, self._timings.rescue)(self._rescue_lost_jobs)
        self.periodic(_REMOVE, "17 4 * * *")(self._remove_finished_jobs)
        self.periodic(_TRIM, "*/10 * * * *")(self._trim_finished_jobs)

    async def open(self) -> None:
        """Start using the database's connections."""
        await self.app.open_async(self._database.pool)

    def postpone_while(self, pressed: Callable[[], bool]) -> None:
        """Postpone jobs that can wait while `pressed` returns true."""
        self._pressed = pressed

    def task(
        self, name: str, *, longest_s: float = tasks.LONGEST_S, can_wait: bool = False, priority: int = 0
    ) -> Callable[[tasks.Task], tasks.Task]:
        """Register a task with three retries, and `longest_s` seconds for each try.

        While many turns run in its process, a task that `can_wait` is postponed, for at most ten minutes. A job
        that is interrupted because its worker stops returns to the queue and keeps its tries. Jobs of a higher
        `priority` run first.
        """

        def register(task: tasks.Task) -> tasks.Task:
            async def run(context: procrastinate.JobContext, arguments: dict[str, Any]) -> None:
                if can_wait and self._pressed() and context.job.attempts < _MOST_POSTPONEMENTS:
                    raise tasks.Postponed
                with taken_causes(arguments) as links:
                    ids = tasks.as_ids(arguments)
                    job = tasks.RunningJob(_id_of(context), ids.pop("tenant_id"), self._database)
                    about: Attributes = {names.TENANT: str(job.tenant_id), names.JOB: job.id}
                    with (
                        span(f"job {name}", about, kind=SpanKind.CONSUMER, links=links),
                        self._meter.spending(_spender(name, job.tenant_id, ids)),
                        authoring_job(name, job.id),
                    ):
                        again_s = await task(job, **ids)
                if again_s is not None:
                    raise tasks.Postponed(again_s)

            self._register(name, run, longest_s, priority=priority)
            return task

        return register

    def periodic(
        self, name: str, cron: str, *, can_wait: bool = False
    ) -> Callable[[Callable[[], Awaitable[None]]], None]:
        """Register a task without a tenant that runs by `cron`, once for all processes; only its last run is kept.

        A task that `can_wait` is left out, for at most half a minute, while turns run in the worker's process.
        """

        def register(task: Callable[[], Awaitable[None]]) -> None:
            last_run = monotonic()

            async def run(context: procrastinate.JobContext, _: dict[str, Any]) -> None:
                nonlocal last_run
                if can_wait and self.turns_run() and monotonic() - last_run < self._timings.left_out_s:
                    return
                last_run = monotonic()
                await task()
                await self.records.remove_older(name, _id_of(context))

            # A queueing lock, because a lost job would keep a lock: only one run may wait.
            registered = self._register(name, run, tasks.LONGEST_S, queueing_lock=name, priority=_FIRST)
            self.app.periodic(cron=cron)(registered)

        return register

    async def defer(
        self,
        connection: Connection,
        task_name: str,
        *,
        tenant_id: UUID,
        lock: str | None = None,
        queueing_lock: str | None = None,
        one_of: UUID | None = None,
        delay_s: float = 0,
        **ids: tasks.Ids,
    ) -> bool:
        """Queue a job in the caller's transaction; return whether there is a new one.

        Args:
            connection: Connection with an open transaction.
            lock: Jobs with the same lock run one after the other.
            queueing_lock: While a job with the same one is waiting, no other is added.
            one_of: Id whose jobs of this task run one after the other; only one may wait.
            delay_s: Minimum seconds before the job runs.
            **ids: Arguments of the task.
        """
        if one_of is not None:
            lock = queueing_lock = f"{task_name}:{one_of}"
        schedule: dict[str, Any] = {"schedule_in": {"seconds": delay_s}} if delay_s else {}
        deferrer = self.app.configure_task(task_name, lock=lock, queueing_lock=queueing_lock, **schedule)
        job = deferrer.make_new_job(**(tasks.as_arguments({"tenant_id": tenant_id, **ids}) | (traced := causes())))
        values = {
            "queue": job.queue,
            "task": job.task_name,
            "priority": job.priority,
            "lock": job.lock,
            "queueing_lock": job.queueing_lock,
            "arguments": Jsonb(job.task_kwargs),
            "scheduled_at": job.scheduled_at,
        }
        cursor = await connection.execute(_DEFER_OR_LINK if traced else _DEFER_ONCE, values)
        row = await cursor.fetchone()
        return row is not None and row[0]

    @contextlib.asynccontextmanager
    async def until_done(
        self, job: tasks.RunningJob, task_name: str, left: str, **ids: Any
    ) -> AsyncIterator[None]:
        """Guard work in a store that may be away for longer than a job is retried; if it is away, queue the task
        again.

        Args:
            left: Work that is not done yet, for the log.
            **ids: Arguments of the task that is queued again.

        Raises:
            DatabaseUnavailable: The database does not answer; the job itself is retried.
        """
        try:
            yield
        except DatabaseUnavailable:
            raise
        except Unavailable as error:
            log.warning(left, job_id=job.id, reason=error.message)
            async with job.transaction() as connection:
                delay_s = self._timings.store_away_s
                await self.defer(connection, task_name, tenant_id=job.tenant_id, delay_s=delay_s, **ids)

    def start_worker(self) -> None:
        """Run jobs in this process, concurrently with its other work."""
        self._working = True
        self._worker = asyncio.create_task(self._work(), name="worker")

    async def worker_ended(self) -> None:
        """Wait until the worker has ended for good, which only a defect causes."""
        if self._worker is not None:
            await asyncio.wait({self._worker})

    @property
    def worker_state(self) -> str:
        """Tell `running`, `stopped` between a failure and the next start, or `external`: not in this process."""
        if self._worker is None:
            return "external"
        return "running" if self._working and not self._worker.done() else "stopped"

    async def close(self) -> None:
        """Stop the worker; jobs that do not end within the grace period return to the queue."""
        self._stopping = True  # a worker that cannot report its end to the database loses its cancellation
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker

    def _register(
        self,
        name: str,
        run: Callable[[procrastinate.JobContext, dict[str, Any]], Awaitable[None]],
        longest_s: float,
        **options: Any,
    ) -> Any:
        async def one_try(context: procrastinate.JobContext, /, **arguments: Any) -> None:
            begun, outcome = perf_counter(), "succeeded"
            try:
                async with asyncio.timeout(longest_s):
                    await run(context, arguments)
            except asyncio.CancelledError:
                outcome = "cancelled"
                if context.abort_reason() is AbortReason.USER_REQUEST:
                    raise exceptions.JobAborted from None
                raise
            except tasks.Postponed:
                outcome = "postponed"
                raise
            except Exception as error:  # the edge of a job
                outcome = "failed"
                await self._failed(context, error)
            finally:
                JOB_SECONDS.labels(name, outcome).observe(perf_counter() - begun)

        retries = tasks.JobRetries(self._timings.retry_wait_s, self._timings.postponed_s)
        return self.app.task(name=name, pass_context=True, retry=retries, **options)(one_try)

    async def _failed(self, context: procrastinate.JobContext, error: Exception) -> None:
        job_id, reason = _id_of(context), tasks.reason_of(error)
        failures = await self.records.count_failure(job_id, reason)
        if failures is None:  # it was erased
            raise exceptions.JobAborted from None
        write = log.warning if failures <= tasks.RETRIES else log.error
        write(
            "job failed", task=context.job.task_name, job_id=job_id, failures=failures, reason=reason,
            place=tasks.place_of(error),
        )  # fmt: skip
        raise tasks.TryFailed(failures) from None

    async def _work(self) -> None:
        """Run the worker; restart it whenever it ends because the database was away for a moment."""
        while not self._stopping:
            self._working = True
            try:
                self._runner = ScheduledWorker(
                    self.app,
                    install_signal_handlers=False,
                    concurrency=self._at_once,
                    fetch_job_polling_interval=self._timings.poll_s,
                    update_heartbeat_interval=self._timings.heartbeat_s,
                    stalled_worker_timeout=self._timings.stalled_s,
                    shutdown_graceful_timeout=self._timings.grace_s,
                )
                await self._runner.run()  # type: ignore[no-untyped-call]
            except Exception as error:  # jobs must go on, whatever the reason
                log.warning("worker stopped", reason=tasks.reason_of(error), place=tasks.place_of(error))
            self._working = False
            if not self._stopping:
                await asyncio.sleep(_BEFORE_ANOTHER_START_S)

    async def _rescue_lost_jobs(self) -> None:
        asking = self._runner.worker_id if self._runner else None
        for task in await self.records.requeue_stalled(stalled_s=self._timings.stalled_s, asking=asking):
            log.warning("job lost its worker", task=task)
        await self.records.bring_forward(longest_delay_s=self._timings.longest_delay_s)

    async def _remove_finished_jobs(self) -> None:
        remove = self.app.job_manager.delete_old_jobs
        await remove(nb_hours=_KEEP_FINISHED_HOURS, include_cancelled=True, include_aborted=True)
        await remove(nb_hours=_KEEP_FAILED_HOURS, include_failed=True)

    async def _trim_finished_jobs(self) -> None:
        await self.records.trim(_KEPT_AT_MOST)


def _spender(task: str, tenant_id: UUID, ids: Mapping[str, Any]) -> Spender:
    known = ("user_id", "expert_id", "turn_id", "conversation_id", "visit_id")
    return Spender(tenant_id, task, **{name: ids[name] for name in known if isinstance(ids.get(name), UUID)})


def _id_of(context: procrastinate.JobContext) -> int:
    assert context.job.id is not None  # noqa: S101 — it comes from the database
    return context.job.id
