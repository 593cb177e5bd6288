"""Capacity of PostgreSQL's notifications and the job queue: writes of turns without any model, at fixed rates.

`python -m benchmarks.job_queue [--rates 50,200,1000] [--seconds 5] [--workers 1] [--jobs 2]`

Each write is what the end of a turn causes at most: its last events in Redis, a notification to other processes
and one job, in one transaction. The processes: PostgreSQL with its usual durability, a Redis server, one that
writes, workers whose jobs do nothing, and this one, which listens. A job waits from its record to its start. A
write is refused when it waits 5 s for a connection. `--silent` switches the queue's own notifications off: workers
then only poll.
"""

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager
from pathlib import Path
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row
from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

from benchmarks.load import percentile
from benchmarks.processes import child, free_port
from services.conversations.event_log import EventLog
from services.errors import DatabaseUnavailable
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.platform import redis
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from services.platform.patience import CircuitBreaker
from services.platform.postgres import Database
from state.events import TurnEvent

_TASK = "do_nothing"
_CHANNEL = "benchmark"
_SETTLE_S = 30.0
_TRIGGER = "ALTER TABLE procrastinate_jobs {} TRIGGER procrastinate_jobs_notify_queue_job_inserted_v1"

_WAITS = """
SELECT extract(epoch FROM started.at - deferred.at)::float * 1000
FROM procrastinate_jobs j
JOIN procrastinate_events deferred ON deferred.job_id = j.id AND deferred.type = 'deferred'
JOIN procrastinate_events started ON started.job_id = j.id AND started.type = 'started'
WHERE j.task_name = 'do_nothing'
"""
_LEFT = "SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'do_nothing' AND status IN ('todo', 'doing')"
_CLEAR = "DELETE FROM procrastinate_jobs WHERE task_name = 'do_nothing'"


async def _work(database_url: str, jobs_at_once: int) -> None:
    """Run jobs until standard input ends."""
    async with _opened(database_url) as database:
        jobs = JobQueue(database, at_once=jobs_at_once)

        @jobs.task(_TASK)
        async def do_nothing(job: RunningJob, *, turn_id: UUID) -> None:
            pass

        await jobs.open()
        jobs.start_worker()
        _say("ready")
        await asyncio.to_thread(sys.stdin.read)
        await jobs.close()


async def _write(database_url: str, redis_url: str) -> None:
    """For each line of rate and seconds, write at that rate and print what it took."""
    async with _opened(database_url) as database:
        jobs = JobQueue(database)
        await jobs.open()
        client = redis.connect(SecretStr(redis_url))
        events = EventLog(client, CircuitBreaker("Redis"), keep_s=60)
        _say("ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            rate, seconds = json.loads(line)
            took: list[float] = []
            begun = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                for number in range(int(rate * seconds)):
                    due = begun + number / rate
                    if (wait := due - time.perf_counter()) > 0:
                        await asyncio.sleep(wait)
                    group.create_task(_end_of_turn(database, jobs, events, due, took))
            _say(json.dumps({"elapsed_s": time.perf_counter() - begun, "took_ms": took}))
        await redis.close(client)


async def _end_of_turn(
    database: Database, jobs: JobQueue, events: EventLog, due: float, took: list[float]
) -> None:
    now = UUID(int=time.time_ns())
    try:
        async with database.tenant(DEFAULT_TENANT) as connection:
            await connection.execute("SELECT pg_notify('benchmark', %s)", [str(now)])
            await jobs.defer(connection, _TASK, tenant_id=DEFAULT_TENANT, turn_id=now)
    except DatabaseUnavailable:
        return  # it waited too long for a connection
    await events.append({now: [TurnEvent(1, "token", "Hello"), TurnEvent(2, "done", {})]})
    took.append((time.perf_counter() - due) * 1000)


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Database]:
    database = Database(url)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _measure(
    rate: float, seconds: float, writer: "subprocess.Popen[str]", database: Database
) -> Sequence[str]:
    """One row of the table."""
    if writer.stdin is None or writer.stdout is None:
        raise AssertionError("the writer is piped")
    heard: list[float] = []

    async def listen(ready: asyncio.Event) -> None:
        async with aclosing(database.notifications(_CHANNEL)) as notifications:
            async for text in notifications:
                ready.set()
                if text:
                    heard.append((time.time_ns() - UUID(text).int) / 1e6)

    ready = asyncio.Event()
    listening = asyncio.create_task(listen(ready))
    await ready.wait()
    writer.stdin.write(json.dumps([rate, seconds]) + "\n")
    writer.stdin.flush()
    written = json.loads(await asyncio.to_thread(writer.stdout.readline))
    begun = time.perf_counter()
    while (left := (await database.fetch_without_tenant(_LEFT, {}, tuple_row))[0][0]) > 0:
        if time.perf_counter() - begun > _SETTLE_S:
            break
        await asyncio.sleep(0.1)
    settled_s = time.perf_counter() - begun
    listening.cancel()
    waits = [row[0] for row in await database.fetch_without_tenant(_WAITS, {}, tuple_row)]
    await database.fetch_without_tenant(f"{_CLEAR} RETURNING 1", {}, tuple_row)
    took, elapsed_s = written["took_ms"], written["elapsed_s"]
    return (
        f"{rate:.0f}",
        f"{len(took) / elapsed_s:.0f}",
        f"{int(rate * seconds) - len(took)}",
        f"{statistics.median(took):.1f} / {percentile(took, 0.99):.0f}",
        f"{statistics.median(heard):.1f} / {percentile(heard, 0.99):.0f}",
        f"{statistics.median(waits):.0f} / {percentile(waits, 0.99):.0f}" if waits else "-",
        f"{len(waits) / (elapsed_s + settled_s):.0f}",
        f"{left}",
    )


def run(rates: Sequence[float], seconds: float, workers: int, jobs: int, *, silent: bool) -> list[Sequence[str]]:
    """Measure every rate, over engines that are started for it."""
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("no redis-server on this machine; install the system's package")
    with asyncio.Runner() as runner, ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="anamnesis-bench-")))
        folder.chmod(0o755)  # root's embedded PostgreSQL runs under another account
        postgres = EmbeddedPostgres(folder)
        runner.run(postgres.start())
        stack.callback(lambda: runner.run(postgres.stop()))
        owner_url, url = postgres.url(OWNER_ROLE), postgres.url(SERVICE_ROLE)
        migrate(owner_url, SERVICE_ROLE)
        if silent:
            with psycopg.connect(owner_url, autocommit=True) as owner:
                owner.execute(_TRIGGER.format("DISABLE"))
        port = free_port()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        server = stack.enter_context(subprocess.Popen([program, *options], stdout=subprocess.DEVNULL))
        stack.callback(server.terminate)
        own = ["-m", "benchmarks.job_queue", "--database-url", url]
        writing = [*own, "--redis-url", f"redis://127.0.0.1:{port}/0"]
        children = [
            stack.enter_context(child(arguments, piped=True))
            for arguments in (writing, *([[*own, "--jobs", str(jobs)]] * workers))
        ]
        for process in children:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("a process of the benchmark did not start")

        async def all_rates() -> list[Sequence[str]]:
            async with _opened(url) as database:
                return [await _measure(rate, seconds, children[0], database) for rate in rates]

        return runner.run(all_rates())


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.job_queue", description=__doc__)
    parser.add_argument("--rates", default="50,200,1000", help="writes a second")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each rate")
    parser.add_argument("--workers", type=int, default=1, help="processes that run jobs")
    parser.add_argument("--jobs", type=int, default=2, help="jobs at once in each")
    parser.add_argument("--silent", action="store_true", help="without the queue's own notifications")
    parser.add_argument("--database-url", help=argparse.SUPPRESS)
    parser.add_argument("--redis-url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.redis_url:
        asyncio.run(_write(options.database_url, options.redis_url))
        return
    if options.database_url:
        asyncio.run(_work(options.database_url, options.jobs))
        return
    rates = [float(rate) for rate in options.rates.split(",")]
    rows = run(rates, options.seconds, options.workers, options.jobs, silent=options.silent)
    announced = "not announced" if options.silent else "announced"
    table = Table(title=f"{options.workers} workers, {options.jobs} jobs at once in each, {announced}")
    headings = (
        "offered/s",
        "written/s",
        "refused",
        "write p50 / p99 ms",
        "heard p50 / p99 ms",
        "job waited p50 / p99 ms",
        "jobs/s",
        "jobs left",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
